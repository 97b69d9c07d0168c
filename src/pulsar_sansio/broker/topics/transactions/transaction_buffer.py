"""`TransactionBuffer`: the entries of transactions in one topic, and how far consumers may read.

An entry of a transaction is stored at once, among all others. Consumers read up to the first entry of an open
transaction, the maximum read position, so that each of them sees entries in order. A marker at the end of the
topic commits or aborts a transaction. Markers and entries of aborted transactions are hidden: dispatchers
acknowledge them in place of delivering them.

The entries of the topic, markers included, are all that the buffer needs after a restart.
"""

from typing import TYPE_CHECKING

from ....model.transaction_id import TransactionId
from ...storage.store import SpecialEntry

if TYPE_CHECKING:
    from ...storage.managed_ledger import ManagedLedger


class TransactionBuffer:
    """The transactions of one topic."""

    __slots__ = ("_last_visible", "_log", "_markers", "_open", "aborted", "committed", "hidden")

    def __init__(self, log: "ManagedLedger") -> None:
        self._log = log
        self._open: dict[TransactionId, list[int]] = {}
        """Open transaction -> offsets of its entries. The order is that of the first entries."""
        self._markers: list[tuple[int, TransactionId, bool]] = []
        """Offsets of markers that are not durable, with the transaction and whether it commits."""
        self.hidden: dict[int, None] = {}
        """Offsets that no consumer receives, in no particular order."""
        self._last_visible = log.first, log.first - 1
        """A read end, and the last visible offset before it, which stays that: transactions that end later
        have no entries before that read end."""
        self.committed = self.aborted = 0
        for offset, entry in log.transactional.items():
            self.added(offset, entry)
            self.settle()
        self.committed = self.aborted = 0
        """The numbers of transactions that ended since the broker serves the topic."""

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
        end = self.read_end
        known_end, known = self._last_visible
        offset = end - 1
        while offset >= known_end and offset in self.hidden:
            offset -= 1
        if offset < known_end:
            offset = known
        self._last_visible = end, offset
        return offset

    @property
    def in_use(self) -> bool:
        """True where the topic has, or had since the broker serves it, entries of transactions."""
        return bool(self._log.transactional or self.committed or self.aborted)

    @property
    def stored_aborts(self) -> int:
        """The number of aborted transactions whose markers are stored."""
        return sum(self._is_abort(*each) for each in self._log.transactional.items())

    def _is_abort(self, offset: int, entry: SpecialEntry) -> bool:
        return entry.commits is False and offset in self.hidden

    def has_entries_of(self, transaction: TransactionId) -> bool:
        return transaction in self._open

    def first_of(self, transaction: TransactionId) -> int | None:
        """Return the offset of the first entry of an open transaction; None for any other one."""
        offsets = self._open.get(transaction)
        return None if offsets is None else offsets[0]

    def has_aborted(self, transaction: TransactionId) -> bool:
        """True for an aborted transaction whose marker is stored."""
        return any(
            entry.transaction == transaction and self._is_abort(offset, entry)
            for offset, entry in self._log.transactional.items()
        )

    def is_aborted(self, offset: int) -> bool | None:
        """True for an entry of an aborted transaction, and for its marker; None for one of no transaction."""
        entry = self._log.transactional.get(offset)
        if entry is None:
            return None
        return offset in self.hidden and entry.commits is not True

    def added(self, offset: int, entry: SpecialEntry) -> None:
        """Take an entry of a transaction, or a marker, which takes effect once it is durable."""
        assert entry.transaction is not None
        transaction = TransactionId(*entry.transaction)
        if entry.commits is None:
            self._open.setdefault(transaction, []).append(offset)
        else:
            self._markers.append((offset, transaction, entry.commits))

    def settle(self) -> bool:
        """End the transactions whose markers are durable. Return True where that changed anything."""
        ended = 0
        for offset, transaction, commits in self._markers:
            if offset >= self._log.durable_end:
                break
            ended += 1
            self.hidden[offset] = None
            offsets = self._open.pop(transaction, [])
            if commits:
                self.committed += 1
            else:
                self.aborted += 1
                self.hidden.update(dict.fromkeys(offsets))
        del self._markers[:ended]
        return ended > 0

    def trimmed(self) -> None:
        """Discard offsets of ledgers that were removed."""
        first = self._log.first
        if self.hidden:
            self.hidden = {offset: None for offset in self.hidden if offset >= first}
