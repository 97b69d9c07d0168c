"""A world: the run of one seed, with its administrator, auditor and faults."""
