"""Baselines that SCALOR is compared with: SQAIR, VRNN and a sequential VAE."""
