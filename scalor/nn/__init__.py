"""What every system is made of: distributions, gradients, records of tensors, and what a system must offer."""
