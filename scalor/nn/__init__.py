"""Parts shared by all systems: distributions, gradient clipping, tensor records, schedules, compiling, interface."""
