"""`ObservedRequest`: a question that waits for its answer."""

from typing import Any

from ..memory import Position, TransactionMemory


class ObservedRequest:
    """A question that waits for its answer."""

    __slots__ = (
        "acknowledged",
        "again",
        "command",
        "followed",
        "frame",
        "kind",
        "transaction",
        "up_to",
        "waiting",
    )

    def __init__(self, kind: int, command: Any, frame: int) -> None:
        self.kind = kind
        self.command = command
        self.frame = frame
        self.waiting = False
        """A PRODUCER that was told to wait for exclusive access, and gets a second answer."""
        self.again = False
        """A PRODUCER or SUBSCRIBE for an id that is open: a broker confirms what there is."""
        self.followed = 0
        """A LOOKUP: how many redirects led to it."""
        self.acknowledged: list[Position] = []
        """An ACK's entries that it acknowledges completely."""
        self.up_to: Position | None = None
        self.transaction: TransactionMemory | None = None
        """The transaction of an ACK."""
