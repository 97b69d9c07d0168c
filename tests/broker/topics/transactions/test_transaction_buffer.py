"""Open transactions of one topic, and what its consumers may read."""

from hypothesis import given
from hypothesis import strategies as st

from pulsar_sansio.broker.records import EntryAdded
from pulsar_sansio.broker.storage.entry_cache import EntryCache
from pulsar_sansio.broker.storage.managed_ledger import ManagedLedger
from pulsar_sansio.broker.storage.stored_bytes import StoredBytes
from pulsar_sansio.broker.topics.transactions.transaction_buffer import TransactionBuffer
from pulsar_sansio.model.transaction_id import TransactionId

ONE, TWO = TransactionId(0, 1), TransactionId(0, 2)


class Topic:
    """A ledger with a buffer. `durable`: every entry is durable at once."""

    def __init__(self) -> None:
        self.log = ManagedLedger("t", EntryCache(StoredBytes(0), 0, None))
        self.log.roll(0, 0)
        self.buffer = TransactionBuffer(self.log)

    def add(
        self, transaction: TransactionId | None = None, commits: bool | None = None, durable: bool = True
    ) -> EntryAdded:
        entry = self.log.append(b"", 1, 0, transaction=transaction, commits=commits)
        if transaction is not None:
            offset = self.log.end - 1
            self.buffer.added(offset, self.log.transactional[offset])
        if durable:
            self.make_durable()
        return entry

    def make_durable(self) -> bool:
        self.log.durable_end = self.log.end
        return self.buffer.settle()

    def restored(self) -> TransactionBuffer:
        """The buffer of a broker that starts with these entries."""
        return TransactionBuffer(self.log)


def test_the_first_open_transaction_limits_reading() -> None:
    topic = Topic()
    topic.add()
    topic.add(ONE)
    topic.add(TWO)
    assert (topic.buffer.read_end, topic.buffer.ongoing) == (1, 2)
    topic.add(TWO, commits=True)
    assert topic.buffer.read_end == 1
    topic.add(ONE, commits=True)
    assert (topic.buffer.read_end, topic.buffer.ongoing) == (5, 0)
    assert list(topic.buffer.hidden) == [3, 4]


def test_a_marker_has_no_effect_before_it_is_durable() -> None:
    topic = Topic()
    topic.add(ONE)
    topic.add(ONE, commits=False, durable=False)
    assert (topic.buffer.settle(), topic.buffer.read_end, list(topic.buffer.hidden)) == (False, 0, [])
    assert topic.make_durable()
    assert (topic.buffer.read_end, list(topic.buffer.hidden)) == (2, [1, 0])
    assert (topic.buffer.committed, topic.buffer.aborted) == (0, 1)


def test_what_is_not_durable_is_not_read() -> None:
    topic = Topic()
    topic.add()
    topic.add(durable=False)
    assert topic.buffer.read_end == 1


def test_the_last_visible_entry() -> None:
    topic = Topic()
    assert topic.buffer.last_visible == -1
    topic.add()
    topic.add(ONE)
    topic.add(ONE, commits=False)
    assert topic.buffer.last_visible == 0


def test_removed_ledgers_leave_no_offsets() -> None:
    topic = Topic()
    topic.add(ONE)
    topic.add(ONE, commits=False)
    topic.log.roll(1, 0)
    topic.add(TWO)
    topic.add(TWO, commits=True)
    assert topic.log.trim(2, None) == (0,)
    topic.buffer.trimmed()
    assert list(topic.buffer.hidden) == [3]
    assert list(topic.log.transactional) == [2, 3]


@given(st.lists(st.tuples(st.integers(0, 4), st.sampled_from([None, None, True, False])), max_size=40))
def test_a_restart_makes_no_difference(steps: list[tuple[int, bool | None]]) -> None:
    """The topic's entries are all that the buffer needs."""
    topic = Topic()
    for number, commits in steps:
        transaction = TransactionId(0, number)
        if number == 0:
            topic.add()
        elif commits is None or topic.buffer.has_entries_of(transaction):
            topic.add(transaction, commits)
    ours, restored = topic.buffer, topic.restored()
    assert (ours.read_end, set(ours.hidden), ours.ongoing) == (
        restored.read_end,
        set(restored.hidden),
        restored.ongoing,
    )


def test_a_restart_counts_ended_transactions_from_zero() -> None:
    """As all counters of a topic do, also those of a Java broker."""
    topic = Topic()
    topic.add(ONE)
    topic.add(ONE, commits=False)
    topic.add(TWO)
    topic.add(TWO, commits=True)
    assert (topic.buffer.committed, topic.buffer.aborted, topic.buffer.stored_aborts) == (1, 1, 1)
    restored = topic.restored()
    assert (restored.committed, restored.aborted, restored.stored_aborts) == (0, 0, 1)
    assert restored.in_use


def test_what_is_known_of_a_transaction() -> None:
    topic = Topic()
    assert not topic.buffer.in_use
    topic.add()
    topic.add(ONE)
    topic.add(TWO)
    topic.add(ONE)
    assert (topic.buffer.first_of(ONE), topic.buffer.first_of(TWO)) == (1, 2)
    topic.add(ONE, commits=False, durable=False)
    assert (topic.buffer.first_of(ONE), topic.buffer.has_aborted(ONE)) == (1, False)
    assert [topic.buffer.is_aborted(offset) for offset in range(5)] == [None, *[False] * 4]
    topic.make_durable()
    topic.add(TWO, commits=True)
    assert (topic.buffer.first_of(ONE), topic.buffer.first_of(TWO)) == (None, None)
    assert (topic.buffer.has_aborted(ONE), topic.buffer.has_aborted(TWO)) == (True, False)
    found = [topic.buffer.is_aborted(offset) for offset in range(6)]
    assert found == [None, True, False, True, True, False]


class Counting(dict[int, None]):
    """Counts the questions for members."""

    asked = 0

    def __contains__(self, key: object) -> bool:
        self.asked += 1
        return super().__contains__(key)


def test_the_last_visible_message_is_not_looked_for_again() -> None:
    """A client could ask for it behind a million entries of aborted transactions."""
    topic = Topic()
    topic.add()
    for _ in range(1000):
        topic.add(ONE)
    topic.add(ONE, commits=False)
    buffer = topic.buffer
    assert buffer.last_visible == 0
    buffer.hidden = counting = Counting(buffer.hidden)
    assert buffer.last_visible == 0
    topic.add(TWO)
    assert buffer.last_visible == 0
    topic.add(TWO, commits=False)
    assert buffer.last_visible == 0
    assert counting.asked < 10
    topic.add()
    assert buffer.last_visible == topic.log.end - 1


@given(st.lists(st.tuples(st.sampled_from(["add", "commit", "abort"]), st.sampled_from([None, ONE, TWO]))))
def test_the_last_visible_message_is_that_of_a_new_start(
    steps: list[tuple[str, TransactionId | None]],
) -> None:
    topic = Topic()
    for what, transaction in steps:
        topic.add(transaction, None if what == "add" or transaction is None else what == "commit")
        assert topic.buffer.last_visible == topic.restored().last_visible
