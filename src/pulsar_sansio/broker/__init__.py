"""The broker machines: a real, small, single-node Pulsar broker without a socket.

`Broker` is the root; `outputs` is what it says, `store` what survives it. Nothing here imports the client.
"""

from . import outputs
from .broker import Broker
from .config import BrokerConfig
from .inspection import StatsOptions
from .mistakes import AlreadyThere, NoSuchThing, StillInUse, WrongKind
from .ownership import Elsewhere, Owner
from .policies import BACKLOG_QUOTA_POLICIES, BacklogQuota, Policies
from .store import MemoryStore, Store, StoredState
from .subscription_admin import BacklogAnalysis, StoredMessage

__all__ = [
    "BACKLOG_QUOTA_POLICIES",
    "AlreadyThere",
    "BacklogAnalysis",
    "BacklogQuota",
    "Broker",
    "BrokerConfig",
    "Elsewhere",
    "MemoryStore",
    "NoSuchThing",
    "Owner",
    "Policies",
    "StatsOptions",
    "StillInUse",
    "Store",
    "StoredMessage",
    "StoredState",
    "WrongKind",
    "outputs",
]
