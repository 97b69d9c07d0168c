"""`LetterAccount`: the dead letters of one subscription of the application with transactions (INV-C10).

Owns the messages that may become dead letters, and those whose copies are stored. Copies are sent outside of
transactions. Frames and the store show what happens; the account asks neither.
"""

from collections.abc import Iterable

from ...engine.failures import ViolationError
from .transaction_record import SentMessage, TransactionOutcome


class LetterAccount:
    """One dead-letter topic, over all consumers and partitions of its subscription. `most`: redeliveries of a
    message that is no dead letter yet, at most."""

    def __init__(self, topic: str, most: int) -> None:
        self.topic = topic
        self.most = most
        self.due: set[SentMessage] = set()
        """Messages that were delivered too often, or that the application wants to have copied."""
        self.stored: set[SentMessage] = set()
        """Messages with a copy whose receipt the client has read."""

    def is_delivered(self, messages: Iterable[SentMessage], redelivery_count: int) -> None:
        """The broker delivers the messages of an entry."""
        if redelivery_count > self.most:
            self.due.update(messages)

    def is_copied(self, message: SentMessage) -> None:
        """INV-C10: the client writes a copy, which must be due. INV-T4: it has the message, so its
        transaction is committed."""
        if message not in self.due:
            raise ViolationError("INV-C10", f"{message} becomes a letter in {self.topic} too early")
        hidden = (TransactionOutcome.OPEN, TransactionOutcome.ABORTING, TransactionOutcome.ABORTED)
        if message.transaction is not None and message.transaction.outcome in hidden:
            raise ViolationError("INV-T4", f"{message} becomes a letter and is not committed")

    def check_rest(self, found: Iterable[SentMessage]) -> None:
        """INV-C10 at rest: the topic holds every copy that was confirmed. `found`: the messages in it."""
        if lost := self.stored.difference(found):
            message = min(lost, key=lambda each: each.number)
            raise ViolationError("INV-C10", f"{self.topic} does not hold {message}")
