"""The schemas of a world: definitions, which of them reads which, and the values that must arrive."""
