"""A directory becomes a package: described, built, signed by others, verified, kept by hash."""
