"""A package small enough to know what becomes of each of its mutants."""
