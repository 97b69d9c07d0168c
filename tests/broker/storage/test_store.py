"""The state that records add up to, and a store whose copies share no container."""

from pulsar_sansio.broker.policies import Policies
from pulsar_sansio.broker.records import (
    AcknowledgedInTransaction,
    BrokerStarted,
    CursorDeleted,
    CursorSaved,
    EntryAdded,
    GrantsSaved,
    LedgerOpened,
    LedgersDeleted,
    NamespaceDeleted,
    PartitionsSaved,
    PendingAcksEnded,
    PoliciesSaved,
    PropertiesSaved,
    Record,
    SequenceSaved,
    TenantDeleted,
    TenantSaved,
    TopicCompacted,
    TopicDeleted,
    TopicSaved,
    TransactionEnded,
    TransactionJoined,
    TransactionOpened,
)
from pulsar_sansio.broker.storage.store import MemoryStore, StoredState

TOPIC = "persistent://public/default/t"
SAVED = TopicSaved(TOPIC, 3, None)
OPENED = LedgerOpened(TOPIC, 5, first_offset=10, opened_at=7, first_index=100)
ENTRY = EntryAdded(TOPIC, 5, 0, 1, 9, b"data")
CURSOR = CursorSaved(TOPIC, "s", 10, (), ())


def state(*records: Record) -> StoredState:
    store = MemoryStore()
    store.write(records)
    return store.load()


def test_a_topic_has_ledgers_with_entries() -> None:
    found = state(SAVED, OPENED, ENTRY)
    topic = found.topics[TOPIC]
    assert topic.topic_epoch == 3
    ledger = topic.ledgers[5]
    assert (ledger.first_offset, ledger.opened_at, ledger.first_index) == (10, 7, 100)
    assert ledger.entries == [ENTRY]


def test_a_ledger_id_is_never_used_again() -> None:
    assert state(SAVED, OPENED, LedgersDeleted(TOPIC, (5,))).next_ledger_id == 6
    assert state(SAVED, OPENED, TopicDeleted(TOPIC)).next_ledger_id == 6
    compacted = TopicCompacted(TOPIC, 8, 10, (10,), (ENTRY,))
    found = state(SAVED, OPENED, compacted, LedgerOpened(TOPIC, 6, 11, 7))
    assert found.next_ledger_id == 9
    assert found.topics[TOPIC].compacted == compacted


def test_a_topic_that_is_saved_again_keeps_its_contents() -> None:
    found = state(SAVED, OPENED, ENTRY, CURSOR, TopicSaved(TOPIC, 4, 99)).topics[TOPIC]
    assert (found.topic_epoch, found.terminated_at) == (4, 99)
    assert (list(found.ledgers), list(found.cursors)) == ([5], ["s"])


def test_the_last_cursor_and_the_last_sequence_id_count() -> None:
    moved = CursorSaved(TOPIC, "s", 12, (), ())
    sequences = [SequenceSaved(TOPIC, "p", 1), SequenceSaved(TOPIC, "p", 5), SequenceSaved(TOPIC, "q", 2)]
    found = state(SAVED, CURSOR, moved, *sequences, SequenceSaved(TOPIC, "q", None)).topics[TOPIC]
    assert found.cursors == {"s": moved}
    assert found.sequences == {"p": 5}
    assert state(SAVED, CURSOR, CursorDeleted(TOPIC, "s")).topics[TOPIC].cursors == {}


def test_with_a_topic_goes_what_administrators_kept_for_it() -> None:
    kept: list[Record] = [
        SAVED,
        PoliciesSaved(TOPIC, Policies(max_producers=1)),
        PropertiesSaved(TOPIC, (("a", "b"),)),
        GrantsSaved(TOPIC, (("role", ("produce",)),)),
    ]
    assert state(*kept).policies[TOPIC].max_producers == 1
    ends: list[Record] = [TopicDeleted(TOPIC), PartitionsSaved(TOPIC, 0), NamespaceDeleted(TOPIC)]
    for deleted in ends:
        found = state(*kept, deleted)
        assert (found.policies, found.properties, found.grants) == ({}, {}, {})


def test_empty_properties_and_grants_are_none() -> None:
    found = state(
        PropertiesSaved(TOPIC, (("a", "b"),)),
        PropertiesSaved(TOPIC, ()),
        GrantsSaved(TOPIC, (("role", ("produce",)),)),
        GrantsSaved(TOPIC),
    )
    assert (found.properties, found.grants) == ({}, {})


def test_partitions_tenants_and_starts() -> None:
    found = state(PartitionsSaved(TOPIC, 3), PartitionsSaved(TOPIC, 5), TenantSaved("a"), BrokerStarted(4))
    assert (found.partitions, found.tenants, found.incarnation) == ({TOPIC: 5}, {"a": ()}, 4)
    assert state(TenantSaved("a"), TenantDeleted("a"), TenantDeleted("b")).tenants == {}


def test_what_was_loaded_is_the_callers_own() -> None:
    store = MemoryStore()
    store.write([SAVED, OPENED, ENTRY, CURSOR, SequenceSaved(TOPIC, "p", 1)])
    first, second = store.load(), store.load()
    assert first == second
    topic = first.topics[TOPIC]
    topic.ledgers[5].entries.clear()
    topic.cursors.clear()
    topic.sequences.clear()
    first.topics["other"] = topic
    first.policies["x"] = Policies()
    assert store.load() == second


def test_a_transaction_that_ended_leaves_only_its_number() -> None:
    opened = TransactionOpened(1, 7, "role", 5000, 9)
    joined = TransactionJoined(1, 7, (TOPIC,), ((TOPIC, "s"),))
    found = state(opened, joined)
    assert (found.transactions[1, 7].opened, found.transactions[1, 7].joined) == (opened, [joined])
    ended = state(opened, joined, TransactionEnded(1, 7))
    assert (ended.transactions, ended.next_transactions) == ({}, {1: 8})


def test_pending_acknowledgements_go_with_their_transaction_or_subscription() -> None:
    mine = AcknowledgedInTransaction(TOPIC, "s", (1, 7), ((10, 1),))
    other = AcknowledgedInTransaction(TOPIC, "s", (1, 8), (), (11, None))
    assert state(SAVED, CURSOR, mine, other).topics[TOPIC].pending_acks == {"s": [mine, other]}
    one = state(SAVED, CURSOR, mine, other, PendingAcksEnded(TOPIC, "s", (1, 7)))
    assert one.topics[TOPIC].pending_acks == {"s": [other]}
    assert state(SAVED, CURSOR, mine, PendingAcksEnded(TOPIC, "s", (1, 7))).topics[TOPIC].pending_acks == {}
    assert state(SAVED, CURSOR, mine, CursorDeleted(TOPIC, "s")).topics[TOPIC].pending_acks == {}


def test_a_copy_shares_no_container_of_transactions() -> None:
    store = MemoryStore()
    mine = AcknowledgedInTransaction(TOPIC, "s", (1, 7), ((10, 1),))
    store.write([SAVED, CURSOR, TransactionOpened(1, 7, "", 5000, 9), mine])
    copy = store.load()
    copy.topics[TOPIC].pending_acks["s"].clear()
    copy.transactions[1, 7].joined.append(TransactionJoined(1, 7))
    copy.next_transactions.clear()
    kept = store.load()
    assert kept.topics[TOPIC].pending_acks == {"s": [mine]}
    assert (kept.transactions[1, 7].joined, kept.next_transactions) == ([], {1: 8})
