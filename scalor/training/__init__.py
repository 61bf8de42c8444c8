"""Training: one optimiser step, the loop over steps, and the folder of a run."""
