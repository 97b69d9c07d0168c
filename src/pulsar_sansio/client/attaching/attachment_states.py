"""The states of an attachment.

                    ┌────────────────────────── backing off ◄─────────────────────┐ any failure, any loss
                    ▼                                                             │
    idle ─► checking partitions ─► looking up ─► connecting ─► opening ─► attached ┤
                                                     ▲                            │
                                                     └──── assigned by the broker ┘

Every state leads to `Closed` when the application closes the owner. A partition of a producer or consumer
that could not be opened passes through `Leaving` first. A permanent error leads to `Failed`.
"""

from dataclasses import dataclass
from enum import Enum, auto
from typing import TYPE_CHECKING

from ...core.transitions import Transitions
from ...model.errors import PulsarError
from ..connecting.connection import Connection
from ..connecting.pool import Waiter

if TYPE_CHECKING:
    from ..lookup.questions import Query, Withdrawable


@dataclass(slots=True)
class Idle:
    """Not started."""


@dataclass(slots=True)
class CheckingPartitions:
    query: "Query | None" = None


@dataclass(slots=True)
class LookingUp:
    query: "Query | None" = None


@dataclass(slots=True)
class Connecting:
    waiter: Waiter | None = None
    question: "Withdrawable | None" = None
    """The owner's question to the broker before it opens there; None where nothing has to be asked."""


@dataclass(slots=True)
class Opening:
    """PRODUCER or SUBSCRIBE is on its way."""

    connection: Connection
    request_id: int


@dataclass(slots=True)
class Queued(Opening):
    """The broker queued the producer for exclusive access, and will answer the open request once more."""


@dataclass(slots=True)
class Leaving(Opening):
    """Opening was cancelled; close once the broker answers or the operation timeout expires."""


@dataclass(slots=True)
class Attached:
    connection: Connection


@dataclass(slots=True)
class BackingOff:
    cause: PulsarError


@dataclass(slots=True)
class Closing:
    """CLOSE_PRODUCER or CLOSE_CONSUMER is on its way."""

    connection: Connection
    request_id: int


@dataclass(slots=True)
class Closed:
    """The application closed the owner, or partition owners replaced this attachment."""


@dataclass(slots=True)
class Failed:
    error: PulsarError


AttachmentState = (
    Idle
    | CheckingPartitions
    | LookingUp
    | Connecting
    | Opening
    | Queued
    | Leaving
    | Attached
    | BackingOff
    | Closing
    | Closed
    | Failed
)


class AttachmentInput(Enum):
    """The events that move an attachment from state to state."""

    START = auto()
    NOT_PARTITIONED = auto()
    PARTITIONED = auto()
    """The topic is partitioned; one attachment for each partition replaces this one."""
    FOUND = auto()
    CONNECTED = auto()
    OPENED = auto()
    QUEUED = auto()
    RETRY = auto()
    """The attempt failed or the attachment was lost; another attempt follows after the backoff."""
    ASSIGNED = auto()
    """The broker closed the owner and named the broker to connect to."""
    CHECK_AGAIN = auto()
    LOOK_UP_AGAIN = auto()
    GIVE_UP = auto()
    LEAVE = auto()
    """Close once the broker has answered the open request."""
    CLOSE = auto()
    """Close without a command to the broker."""
    SEND_CLOSE = auto()
    """Close by a command to the broker, and wait for its answer."""
    ANSWERED = auto()
    """The broker answered CLOSE, the request timed out, or the connection was lost."""


TRANSITIONS = Transitions(
    "attachment",
    {
        (Idle, AttachmentInput.START): CheckingPartitions,
        (Idle, AttachmentInput.NOT_PARTITIONED): LookingUp,
        (Idle, AttachmentInput.GIVE_UP): Failed,
        (Idle, AttachmentInput.CLOSE): Closed,
        (CheckingPartitions, AttachmentInput.NOT_PARTITIONED): LookingUp,
        (CheckingPartitions, AttachmentInput.PARTITIONED): Closed,
        (CheckingPartitions, AttachmentInput.RETRY): BackingOff,
        (CheckingPartitions, AttachmentInput.GIVE_UP): Failed,
        (CheckingPartitions, AttachmentInput.CLOSE): Closed,
        (LookingUp, AttachmentInput.FOUND): Connecting,
        (LookingUp, AttachmentInput.RETRY): BackingOff,
        (LookingUp, AttachmentInput.GIVE_UP): Failed,
        (LookingUp, AttachmentInput.CLOSE): Closed,
        (Connecting, AttachmentInput.CONNECTED): Opening,
        (Connecting, AttachmentInput.RETRY): BackingOff,
        (Connecting, AttachmentInput.GIVE_UP): Failed,
        (Connecting, AttachmentInput.CLOSE): Closed,
        (Opening, AttachmentInput.OPENED): Attached,
        (Opening, AttachmentInput.QUEUED): Queued,
        (Opening, AttachmentInput.RETRY): BackingOff,
        (Opening, AttachmentInput.ASSIGNED): Connecting,
        (Opening, AttachmentInput.GIVE_UP): Failed,
        (Opening, AttachmentInput.LEAVE): Leaving,
        (Opening, AttachmentInput.SEND_CLOSE): Closing,
        (Queued, AttachmentInput.OPENED): Attached,
        (Queued, AttachmentInput.RETRY): BackingOff,
        (Queued, AttachmentInput.ASSIGNED): Connecting,
        (Queued, AttachmentInput.GIVE_UP): Failed,
        (Queued, AttachmentInput.SEND_CLOSE): Closing,
        (Leaving, AttachmentInput.SEND_CLOSE): Closing,
        (Leaving, AttachmentInput.CLOSE): Closed,
        (Attached, AttachmentInput.RETRY): BackingOff,
        (Attached, AttachmentInput.ASSIGNED): Connecting,
        (Attached, AttachmentInput.GIVE_UP): Failed,
        (Attached, AttachmentInput.SEND_CLOSE): Closing,
        (Attached, AttachmentInput.CLOSE): Closed,
        (BackingOff, AttachmentInput.CHECK_AGAIN): CheckingPartitions,
        (BackingOff, AttachmentInput.LOOK_UP_AGAIN): LookingUp,
        (BackingOff, AttachmentInput.GIVE_UP): Failed,
        (BackingOff, AttachmentInput.CLOSE): Closed,
        (Closing, AttachmentInput.ANSWERED): Closed,
    },
)
