"""`TransactionBuffer`: the entries of transactions in one topic, and how far consumers may read.

An entry of a transaction is stored at once, among all others. Consumers read up to the first entry of an open
transaction, the maximum read position, so that each of them sees entries in order. A marker at the end of the
topic commits or aborts a transaction. Markers and entries of aborted transactions are hidden: dispatchers
acknowledge them in place of delivering them.

The entries of the topic, markers included, are all that the buffer needs after a restart.
"""

from collections import deque
from typing import TYPE_CHECKING

from ....model.transaction_id import TransactionId
from ...records import EntryAdded

if TYPE_CHECKING:
    from ...storage.ledger import ManagedLedger


class TransactionBuffer:
    """The transactions of one topic."""

    __slots__ = ("_log", "_markers", "_open", "aborted", "committed", "hidden")

    def __init__(self, log: "ManagedLedger") -> None:
        self._log = log
        self._open: dict[TransactionId, list[int]] = {}
        """Open transaction -> offsets of its entries. The order is that of the first entries."""
        self._markers: deque[tuple[int, TransactionId, bool]] = deque()
        """Offsets of markers that are not durable, with the transaction and whether it commits."""
        self.hidden: dict[int, None] = {}
        """Offsets that no consumer receives, in no particular order."""
        self.committed = 0
        self.aborted = 0
        for offset, entry in log.transactional.items():
            self.added(offset, entry)
            self.settle()

    @property
    def ongoing(self) -> int:
        """The number of open transactions that have entries in the topic."""
        return len(self._open)

    @property
    def read_end(self) -> int:
        """The offset after the last entry that consumers may receive."""
        end = self._log.durable_end
        if self._open:
            return min(end, next(iter(self._open.values()))[0])
        return end

    @property
    def last_visible(self) -> int:
        """The offset of the last entry that consumers may receive, or an offset before the first entry."""
        offset = self.read_end - 1
        while offset in self.hidden:
            offset -= 1
        return offset

    def has_entries_of(self, transaction: TransactionId) -> bool:
        return transaction in self._open

    def added(self, offset: int, entry: EntryAdded) -> None:
        """Take an entry of a transaction, or a marker, which takes effect once it is durable."""
        assert entry.transaction is not None
        transaction = TransactionId(*entry.transaction)
        if entry.commits is None:
            self._open.setdefault(transaction, []).append(offset)
        else:
            self._markers.append((offset, transaction, entry.commits))

    def settle(self) -> bool:
        """End the transactions whose markers are durable. Return True where that changed anything."""
        markers = self._markers
        ended = False
        while markers and markers[0][0] < self._log.durable_end:
            offset, transaction, commits = markers.popleft()
            ended = True
            self.hidden[offset] = None
            offsets = self._open.pop(transaction, [])
            if commits:
                self.committed += 1
            else:
                self.aborted += 1
                self.hidden.update(dict.fromkeys(offsets))
        return ended

    def trimmed(self) -> None:
        """Discard offsets of ledgers that were removed."""
        first = self._log.first
        if self.hidden:
            self.hidden = {offset: None for offset in self.hidden if offset >= first}
