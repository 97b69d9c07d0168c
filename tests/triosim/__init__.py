"""pulsar_trio under a deterministic trio: seeded scheduler, virtual time, links in memory.

The simulator shakes the core; here it is the adapter's tasks, cancel scopes and sockets that are shaken. The
same seed gives the same run. `python -m tests.triosim --seeds 200` runs many seeds.
"""
