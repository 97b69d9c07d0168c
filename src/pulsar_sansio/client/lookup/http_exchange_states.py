"""The states of an HTTP exchange.

opening ─► authenticating ─► asking ─► ended
   └──────── no credentials ───┘
"""

from dataclasses import dataclass
from enum import Enum, auto

from ...core.transitions import Transitions


@dataclass(slots=True)
class Opening:
    """The driver was asked for a link and has not answered."""


@dataclass(slots=True)
class Authenticating:
    """The link is open, and the request waits for the credentials."""


@dataclass(slots=True)
class Asking:
    """The request is written."""


@dataclass(slots=True)
class Ended:
    """The exchange has an outcome, or was abandoned."""


HttpExchangeState = Opening | Authenticating | Asking | Ended


class HttpExchangeInput(Enum):
    CREDENTIALS_WANTED = auto()
    ASK = auto()
    END = auto()


TRANSITIONS = Transitions(
    "HTTP exchange",
    {
        (Opening, HttpExchangeInput.CREDENTIALS_WANTED): Authenticating,
        (Opening, HttpExchangeInput.ASK): Asking,
        (Opening, HttpExchangeInput.END): Ended,
        (Authenticating, HttpExchangeInput.ASK): Asking,
        (Authenticating, HttpExchangeInput.END): Ended,
        (Asking, HttpExchangeInput.END): Ended,
    },
)
