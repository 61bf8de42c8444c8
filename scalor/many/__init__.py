"""Many videos: worker processes or a Ray cluster track them, and one store holds all results."""
