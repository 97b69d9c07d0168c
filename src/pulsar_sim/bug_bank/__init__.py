"""The bug bank: mistakes that real clients and brokers made, planted on purpose to test the simulator.

Each planted bug has a name and replaces a few methods of a machine while its context lasts. When no seed
notices a planted bug, a fault or a check is missing: that is a bug of the simulator.
"""

from . import (
    access,
    brokers,
    chunks,
    connections,
    credentials,
    encryption,
    endings,
    failover,
    http_lookups,
    interceptors,
    partitions,
    producers,
    schemas,
    transactions,
)
from .consuming import (
    acknowledgements,
    consumers,
    flow,
    keys,
    letters,
    neighbours,
    positions,
    timeouts,
)
from .consuming import (
    multi_topics as groups,
)
from .consuming import (
    table_views as tables,
)
from .planted_bug import BANK, Patches, PlantedBug
from .preconditions.general import suitable

__all__ = [
    "BANK",
    "PlantedBug",
    "Patches",
    "access",
    "acknowledgements",
    "brokers",
    "chunks",
    "connections",
    "consumers",
    "credentials",
    "encryption",
    "endings",
    "failover",
    "http_lookups",
    "interceptors",
    "flow",
    "groups",
    "keys",
    "letters",
    "neighbours",
    "partitions",
    "positions",
    "producers",
    "schemas",
    "suitable",
    "tables",
    "timeouts",
    "transactions",
]
