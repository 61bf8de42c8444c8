"""Reproduction of the paper's tables: train missing models, measure them, store the results, write the results page."""
