"""Coverage-guided fuzzing of every parser of SCALOR."""
