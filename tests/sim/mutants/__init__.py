"""Tests of `pulsar_sansio.sim.mutants` and of the command that uses it."""
