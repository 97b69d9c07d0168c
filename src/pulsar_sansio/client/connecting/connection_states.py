"""The states of a connection to a broker.

    opening ─► authenticating ─► handshaking ─► ready ─► closed
       └──────── credentials at hand ──▲

Every state leads to `Closed`, which keeps the cause.
"""

from dataclasses import dataclass
from enum import Enum, auto

from ...core.transitions import Transitions
from ...model.errors import PulsarError


@dataclass(slots=True)
class Opening:
    """The driver was asked for a link and has not answered."""


@dataclass(slots=True)
class Authenticating:
    """The link is open, and CONNECT waits for the credentials."""


@dataclass(slots=True)
class Handshaking:
    """CONNECT is sent."""


@dataclass(slots=True)
class Ready:
    """CONNECTED has come; the pool may share the connection (rule CONN-05)."""


@dataclass(slots=True)
class Closed:
    cause: PulsarError


ConnectionState = Opening | Authenticating | Handshaking | Ready | Closed


class ConnectionInput(Enum):
    OPENED = auto()
    CREDENTIALS_WANTED = auto()
    CONNECTED = auto()
    CLOSE = auto()


TRANSITIONS = Transitions(
    "connection",
    {
        (Opening, ConnectionInput.OPENED): Handshaking,
        (Opening, ConnectionInput.CREDENTIALS_WANTED): Authenticating,
        (Authenticating, ConnectionInput.OPENED): Handshaking,
        (Authenticating, ConnectionInput.CLOSE): Closed,
        (Opening, ConnectionInput.CLOSE): Closed,
        (Handshaking, ConnectionInput.CONNECTED): Ready,
        (Handshaking, ConnectionInput.CLOSE): Closed,
        (Ready, ConnectionInput.CLOSE): Closed,
    },
)
