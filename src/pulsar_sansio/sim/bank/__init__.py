"""The bug bank: mistakes that real clients and brokers made, planted on purpose, to test the simulator.

Each is a named mutation that replaces a few methods of a machine while its context lasts. A mutation that no
seed notices means that a fault or a check is missing: that is a bug of the simulator.
"""

from . import (
    access,
    acknowledgements,
    brokers,
    chunks,
    connections,
    consumers,
    endings,
    flow,
    groups,
    interceptors,
    keys,
    letters,
    neighbours,
    partitions,
    positions,
    producers,
    tables,
    timeouts,
)
from .mutation import BANK, Mutation, Patches
from .needs import suitable

__all__ = [
    "BANK",
    "Mutation",
    "Patches",
    "access",
    "acknowledgements",
    "brokers",
    "chunks",
    "connections",
    "consumers",
    "endings",
    "interceptors",
    "flow",
    "groups",
    "keys",
    "letters",
    "neighbours",
    "partitions",
    "positions",
    "producers",
    "suitable",
    "tables",
    "timeouts",
]
