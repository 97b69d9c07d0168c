"""Runs of the simulator: campaigns of seeds, sweeps, recall, shrinking, and their reports."""
