"""What SCALOR costs: `python -m benchmarks cpu` (two minutes on two cores) and `python -m benchmarks gpu`."""
