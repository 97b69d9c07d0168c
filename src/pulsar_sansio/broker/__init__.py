"""The broker machines: a real, small, single-node Pulsar broker without a socket.

`Broker` is the root; `outputs` is what it says, `store` what survives it. Nothing here imports the client.
"""

from . import outputs
from .admin import AlreadyThere, NoSuchThing
from .broker import Broker
from .config import BrokerConfig
from .policies import Policies
from .store import MemoryStore, Store, StoredState

__all__ = [
    "AlreadyThere",
    "Broker",
    "BrokerConfig",
    "MemoryStore",
    "NoSuchThing",
    "Policies",
    "Store",
    "StoredState",
    "outputs",
]
