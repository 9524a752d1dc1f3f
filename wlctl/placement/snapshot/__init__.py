"""A fleet as a file: what a decision was made from, to replay it, attach it, or try changes."""
