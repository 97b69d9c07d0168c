"""The states of a transaction.

    open ─► committing ─► committed
     ││         ▼
     │└───► aborting ───► aborted
     └────► released

A committing transaction turns to aborting when one of its messages or acknowledgements has failed. One whose
commit was asked for and never answered ends in doubt: it may be committed or aborted. A released one stays
open at its coordinator, and another client ends it.
"""

from dataclasses import dataclass
from enum import Enum, auto

from ...core.transitions import Transitions


@dataclass(slots=True)
class Open:
    """Messages and acknowledgements may join."""


@dataclass(slots=True)
class Committing:
    """The application has asked for the commit."""


@dataclass(slots=True)
class Committed:
    """All of it has taken effect."""


@dataclass(slots=True)
class Aborting:
    """The application has asked for the abort, or the commit is impossible."""


@dataclass(slots=True)
class Aborted:
    """Nothing of it takes effect."""


@dataclass(slots=True)
class InDoubt:
    """The coordinator did not answer the commit; all of it has taken effect, or nothing of it will."""


@dataclass(slots=True)
class Released:
    """Another client commits or aborts it."""


TransactionState = Open | Committing | Committed | Aborting | Aborted | InDoubt | Released


class TransactionInput(Enum):
    COMMIT = auto()
    ABORT = auto()
    RELEASE = auto()
    ENDED = auto()
    """The coordinator has done what it was asked to do."""
    GONE = auto()
    """The coordinator has aborted the transaction, because its timeout was over."""
    LOST = auto()
    """The coordinator did not answer within the operation timeout, or an answer was lost."""


TRANSITIONS = Transitions(
    "transaction",
    {
        (Open, TransactionInput.COMMIT): Committing,
        (Open, TransactionInput.ABORT): Aborting,
        (Open, TransactionInput.GONE): Aborted,
        (Open, TransactionInput.RELEASE): Released,
        (Committing, TransactionInput.ABORT): Aborting,
        (Committing, TransactionInput.ENDED): Committed,
        (Committing, TransactionInput.GONE): Aborted,
        (Committing, TransactionInput.LOST): InDoubt,
        (Aborting, TransactionInput.ENDED): Aborted,
        (Aborting, TransactionInput.GONE): Aborted,
        (Aborting, TransactionInput.LOST): Aborted,
    },
)
