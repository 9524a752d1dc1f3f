"""Place workloads on the machines you already have, over plain SSH, and prove what runs where."""

__version__ = "0.1.0"
