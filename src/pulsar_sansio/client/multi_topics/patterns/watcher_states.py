"""The states of the watcher of a pattern's topics.

idle ──► finding ──► connecting ──► asking ──► watching
  ▲         │            │            │            │
  └─────────┴────────────┴────────────┴────────────┘  any failure; `ensure`, or a wait, begins anew
"""

from dataclasses import dataclass
from enum import Enum, auto

from ....core.transitions import Transitions
from ...connecting.connection import Connection
from ...connecting.pool import Waiter
from ...lookup.questions import Query


@dataclass(slots=True)
class Idle:
    pass


@dataclass(slots=True)
class Finding:
    query: Query | None = None


@dataclass(slots=True)
class Connecting:
    waiter: Waiter | None = None


@dataclass(slots=True)
class Asking:
    connection: Connection
    request_id: int


@dataclass(slots=True)
class Watching:
    connection: Connection


WatcherState = Idle | Finding | Connecting | Asking | Watching


class WatcherInput(Enum):
    BEGIN = auto()
    FOUND = auto()
    CONNECTED = auto()
    ACCEPTED = auto()
    STOP = auto()


TRANSITIONS = Transitions(
    "watch of a pattern",
    {
        (Idle, WatcherInput.BEGIN): Finding,
        (Finding, WatcherInput.FOUND): Connecting,
        (Connecting, WatcherInput.CONNECTED): Asking,
        (Asking, WatcherInput.ACCEPTED): Watching,
        (Finding, WatcherInput.STOP): Idle,
        (Connecting, WatcherInput.STOP): Idle,
        (Asking, WatcherInput.STOP): Idle,
        (Watching, WatcherInput.STOP): Idle,
    },
)
