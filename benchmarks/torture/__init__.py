"""`make torture`: hostile inputs, kills and exhausted machines, seeded and counted."""
