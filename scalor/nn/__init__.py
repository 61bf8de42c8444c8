"""Parts shared by all systems: distributions, gradient clipping, records of tensors, ranks, the interface."""
