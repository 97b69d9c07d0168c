"""Faults for tests of applications: rules that make the broker refuse, delay, drop or damage commands."""
