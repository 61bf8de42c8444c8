"""SCALOR, the world model of the paper, and the lessons beside its bound."""
