"""`TakenMessages`: the messages that open transactions of one consumer have acknowledged.

A broker may deliver them again before it knows: their ACK waits for the end of the transaction. They are
duplicates then. When the transaction is aborted, they are requested, unless they were acknowledged outside of
it meanwhile.
"""

from collections.abc import Iterable

from ...model.message_id import EntryPosition

AckId = tuple[int, int, int | None]
"""Ledger id, entry id, and the bits of the messages that stay unacknowledged (None: none of the entry)."""


def reach(id_: AckId) -> tuple[int, int, int]:
    """Order cumulative acknowledgements by how far they reach: fewer bits stay unacknowledged (ACK-14)."""
    ledger_id, entry_id, bits = id_
    return ledger_id, entry_id, -(bits or 0)


class AcknowledgedMessages:
    """The messages that one transaction has acknowledged."""

    __slots__ = ("cumulative", "entries", "unconfirmed")

    def __init__(self) -> None:
        self.entries: dict[EntryPosition, int] = {}
        """Position -> bits of the messages that were acknowledged individually."""
        self.unconfirmed: dict[EntryPosition, int] = {}
        """The part of `entries` of which the broker does not know, or which it has refused. After an abort it
        delivers the others again by itself. Messages that were acknowledged outside of the transaction are
        not in it."""
        self.cumulative: AckId | None = None
        """The end of the cumulative acknowledgement that reaches furthest."""

    def confirm(self, position: EntryPosition, bits: int) -> None:
        """The broker has these messages in the transaction."""
        left = self.unconfirmed.pop(position, 0) & ~bits
        if left:
            self.unconfirmed[position] = left


class TakenMessages:
    """The messages of all open transactions."""

    __slots__ = ("_dropped", "_ending", "_entries", "_open")

    def __init__(self) -> None:
        self._open: dict[AcknowledgedMessages, None] = {}
        self._ending: dict[AcknowledgedMessages, None] = {}
        """The messages of transactions whose abort was asked for, and not answered."""
        self._entries: dict[EntryPosition, int] = {}
        """Position -> bits of the messages that were acknowledged individually."""
        self._dropped: dict[EntryPosition, int] = {}
        """Position -> bits of the messages that were delivered again and dropped."""

    def __bool__(self) -> bool:
        return bool(self._open)

    @property
    def may_return(self) -> bool:
        """True when a transaction may be aborted that has acknowledged messages."""
        return bool(self._open or self._ending)

    def take(self, messages: AcknowledgedMessages, position: EntryPosition, bits: int) -> None:
        """A transaction acknowledges messages of an entry."""
        self._open[messages] = None
        for entries in (self._entries, messages.entries, messages.unconfirmed):
            entries[position] = entries.get(position, 0) | bits

    def take_through(self, messages: AcknowledgedMessages, id_: AckId) -> None:
        """A transaction acknowledges cumulatively."""
        self._open[messages] = None
        messages.cumulative = max(messages.cumulative or id_, id_, key=reach)

    def remove(self, messages: AcknowledgedMessages) -> None:
        """The transaction has ended, or its abort is asked for. Messages that were dropped meanwhile are not
        confirmed: the coordinator may have aborted it before, and the broker does not deliver them twice."""
        if self._open.pop(messages, self) is self:
            return
        self._ending[messages] = None
        for position, bits in messages.entries.items():
            dropped = self._dropped.pop(position, 0) & bits
            if dropped:
                messages.unconfirmed[position] = messages.unconfirmed.get(position, 0) | dropped
            left = self._entries.pop(position, 0) & ~bits
            if left:
                self._entries[position] = left

    def forget(self, messages: AcknowledgedMessages) -> None:
        """The transaction is over."""
        self.remove(messages)
        self._ending.pop(messages, None)

    def acknowledged(self, position: EntryPosition, bits: int) -> None:
        """Messages were acknowledged outside of transactions: an abort does not bring them back (INV-C9)."""
        for messages in (*self._open, *self._ending):
            messages.confirm(position, bits)
        dropped = self._dropped.pop(position, 0) & ~bits
        if dropped:
            self._dropped[position] = dropped

    def clear(self) -> None:
        """The subscription was moved: everything that comes is wanted."""
        self._open.clear()
        self._ending.clear()
        self._entries.clear()
        self._dropped.clear()

    def bits(self, position: EntryPosition, size: int) -> int:
        """Return the bits of the messages that were taken of an entry of `size` messages."""
        everything = (1 << size) - 1
        found = self._entries.get(position, 0)
        for messages in self._open:
            through = messages.cumulative
            if through is not None and position <= through[:2]:
                found |= everything if position < through[:2] else everything & ~(through[2] or 0)
        return found & everything

    def drop(self, position: EntryPosition, bits: int) -> None:
        """Messages that were taken were delivered again, and are dropped."""
        bits &= self._entries.get(position, 0)
        if bits:
            self._dropped[position] = self._dropped.get(position, 0) | bits

    def has_whole(self, position: EntryPosition, size: int) -> bool:
        return self.bits(position, size) == (1 << size) - 1

    def has_any(self, positions: Iterable[EntryPosition]) -> bool:
        """True where one of these entries of one message was taken."""
        return any(self.bits(position, 1) for position in positions)
