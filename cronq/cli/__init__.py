"""The command line: what an operator types."""
