"""The states of one producer or consumer that is made of several parts.

    opening ──► ready ◄─► unsubscribing ──► closing ──► over
       │          └───────────┬───────────────────────────▲
       └──────► failing ──────┴───────────────────────────┘

Only a consumer unsubscribes.
"""

from dataclasses import dataclass
from enum import Enum, auto

from ...core.transitions import Transitions
from ...model.errors import PulsarError


@dataclass(slots=True)
class Opening:
    """Some parts are not open yet, and none has failed."""


@dataclass(slots=True)
class Ready:
    """The application knows that the whole is open."""


@dataclass(slots=True)
class Failing:
    """One part could not be opened; the others are being closed."""

    error: PulsarError


@dataclass(slots=True)
class Unsubscribing:
    """All parts were asked to unsubscribe, and none has refused yet."""

    request: int


@dataclass(slots=True)
class Closing:
    """The application closes the whole; `was_ready` before that."""

    was_ready: bool


@dataclass(slots=True)
class Over:
    """All parts have ended."""


JointState = Opening | Ready | Failing | Unsubscribing | Closing | Over


class JointInput(Enum):
    """The events that move the whole from state to state."""

    ALL_READY = auto()
    PART_FAILED = auto()
    UNSUBSCRIBE = auto()
    REFUSED = auto()
    CLOSE = auto()
    ALL_GONE = auto()


TRANSITIONS = Transitions(
    "several as one",
    {
        (Opening, JointInput.ALL_READY): Ready,
        (Opening, JointInput.PART_FAILED): Failing,
        (Opening, JointInput.CLOSE): Closing,
        (Ready, JointInput.UNSUBSCRIBE): Unsubscribing,
        (Ready, JointInput.CLOSE): Closing,
        (Ready, JointInput.ALL_GONE): Over,
        (Unsubscribing, JointInput.REFUSED): Ready,
        (Unsubscribing, JointInput.CLOSE): Closing,
        (Unsubscribing, JointInput.ALL_GONE): Over,
        (Failing, JointInput.ALL_GONE): Over,
        (Closing, JointInput.ALL_GONE): Over,
    },
)
