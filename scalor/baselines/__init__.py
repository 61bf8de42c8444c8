"""The systems that SCALOR is compared with, each readable from top to bottom in its own file."""
