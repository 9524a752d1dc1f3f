"""package."""
