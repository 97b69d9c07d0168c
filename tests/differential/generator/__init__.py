"""Makes a conversation of a seed: clients publish, consume and administer, in good and in wrong order."""
