"""What an instance may do next, and what proves that it ended."""
