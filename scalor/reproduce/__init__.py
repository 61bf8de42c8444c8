"""The paper's tables made again: train what is missing, measure it, keep the figures, write the page of results."""
