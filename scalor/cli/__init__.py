"""The command line: one module per command, named after it."""
