"""Tests of `pulsar_sim.mutants` and of the command that uses it."""
