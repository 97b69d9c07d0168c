"""`PendingAcks`: the acknowledgements of open transactions on one subscription.

An acknowledgement in a transaction takes effect when the transaction is committed. Until then the messages
are withheld from consumers, and no other transaction may acknowledge them. When the transaction is aborted,
they are delivered again.

The module decides by offsets and bits. The subscription knows consumers, the cursor and the journal.
"""

from collections.abc import Iterable

from ....model.errors import TransactionConflict
from ....model.transaction_id import TransactionId
from ...records import AcknowledgedInTransaction


class TransactionAcks:
    """The acknowledgements of one transaction: offset -> bits of the messages."""

    __slots__ = ("cumulative", "individual")

    def __init__(self) -> None:
        self.individual: dict[int, int] = {}
        self.cumulative: tuple[int, int | None] | None = None
        """(offset, bits that remain of it), or None."""


class PendingAcks:
    """The pending acknowledgements of one subscription."""

    __slots__ = ("_cumulative_of", "by_transaction", "in_use", "taken")

    def __init__(self, stored: Iterable[AcknowledgedInTransaction]) -> None:
        self.by_transaction: dict[TransactionId, TransactionAcks] = {}
        self.taken: dict[int, int] = {}
        """Offset -> bits of the messages that open transactions acknowledged."""
        self._cumulative_of: TransactionId | None = None
        """The transaction that has acknowledged cumulatively."""
        self.in_use = False
        """True once a transaction has acknowledged. A restart forgets transactions that ended before it."""
        for record in stored:
            transaction = TransactionId(*record.transaction)
            if record.cumulative is not None:
                self.acknowledge_cumulative(transaction, *record.cumulative)
            self.acknowledge(transaction, dict(record.individual))

    def check(self, messages: dict[int, int]) -> None:
        """Raise `TransactionConflict` where a transaction has acknowledged one of the messages."""
        for offset, bits in messages.items():
            if self.taken.get(offset, 0) & bits:
                raise TransactionConflict("A transaction that is open acknowledges the message")

    def acknowledge(self, transaction: TransactionId, messages: dict[int, int]) -> None:
        """Take checked messages: offset -> bits."""
        acks = self._acks(transaction)
        for offset, bits in messages.items():
            acks.individual[offset] = acks.individual.get(offset, 0) | bits
            self.taken[offset] = self.taken.get(offset, 0) | bits

    def check_cumulative(self, transaction: TransactionId, offset: int) -> None:
        """Raise `TransactionConflict` unless this is the first transaction that acknowledges cumulatively, or
        it has done so up to an earlier offset."""
        if self._cumulative_of is None:
            return
        before = self.by_transaction[self._cumulative_of].cumulative
        if self._cumulative_of != transaction or (before is not None and before[0] > offset):
            raise TransactionConflict("Another transaction that is open acknowledges cumulatively")

    def has_acknowledged_up_to(self, transaction: TransactionId, offset: int, remaining: int | None) -> bool:
        """True where the transaction has acknowledged as much of this entry already, or more."""
        acks = self.by_transaction.get(transaction)
        if acks is None or acks.cumulative is None or acks.cumulative[0] != offset:
            return False
        before = acks.cumulative[1]
        return before is None or (remaining is not None and before & ~remaining == 0)

    def acknowledge_cumulative(
        self, transaction: TransactionId, offset: int, remaining: int | None
    ) -> int | None:
        """Take a checked cumulative acknowledgement; of the entry at `offset` the bits `remaining` are not
        acknowledged. Return those that are not after all of the transaction: they only become fewer."""
        self._cumulative_of = transaction
        acks = self._acks(transaction)
        if remaining is not None and acks.cumulative is not None and acks.cumulative[0] == offset:
            remaining &= acks.cumulative[1] or 0
        acks.cumulative = offset, remaining
        return remaining

    def end(self, transaction: TransactionId) -> TransactionAcks | None:
        """Forget a transaction, and return what it acknowledged."""
        acks = self.by_transaction.pop(transaction, None)
        if acks is None:
            return None
        if self._cumulative_of == transaction:
            self._cumulative_of = None
        for offset, bits in acks.individual.items():
            left = self.taken[offset] & ~bits
            if left:
                self.taken[offset] = left
            else:
                del self.taken[offset]
        return acks

    def _acks(self, transaction: TransactionId) -> TransactionAcks:
        acks = self.by_transaction.get(transaction)
        if acks is None:
            acks = self.by_transaction[transaction] = TransactionAcks()
            self.in_use = True
        return acks
