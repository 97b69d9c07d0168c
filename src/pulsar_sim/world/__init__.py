"""A world: one seed brought to life, with its administrator, auditor and faults."""
