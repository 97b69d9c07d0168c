"""The ground of a run: trio's scheduler from a seed, sockets in memory, and the checks of the bytes."""
