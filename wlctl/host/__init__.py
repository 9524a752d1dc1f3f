"""What reaches a node: ways there, the scripts that are sent, and how their answers are read."""
