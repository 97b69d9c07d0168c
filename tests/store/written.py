"""Sequences of records as a broker may write them, drawn by hypothesis: all kinds, values at their bounds."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from hypothesis import strategies as st

from pulsar_sansio import (
    SCHEMA_STRATEGIES,
    SUBSCRIPTION_TYPES,
    BacklogQuota,
    InactiveTopics,
    MessageRate,
    Policies,
    SubscribeRate,
    SubscriptionRates,
)
from pulsar_sansio import broker_records as records

DrawnT = TypeVar("DrawnT")

TOPICS = [f"persistent://public/default/t{number}" for number in range(3)]
NAMES = st.sampled_from(["s", "p 1", "ü", "with\0zero", "half \ud800 pair", ""])
NUMBERS = st.one_of(st.integers(0, 9), st.sampled_from([2**31, 2**63 - 1, 2**63, 2**64 - 1]))
"""Numbers that peers choose: 64 bits without a sign."""

SIGNED = st.one_of(st.integers(-1, 9), st.sampled_from([2**31 - 1, 2**62]))
BITS = st.one_of(st.integers(1, 300), st.just((1 << 20_000) - 3))
PAIRS = st.lists(st.tuples(NAMES, NAMES), max_size=2).map(tuple)
TRANSACTIONS = st.tuples(st.sampled_from([0, 5, 2**64 - 1]), st.integers(0, 2))

POLICIES = st.builds(
    Policies,
    deduplication=st.sampled_from([None, True, False]),
    message_ttl=st.sampled_from([None, 0, 1.5, 2**63 - 1]),
    max_producers=st.sampled_from([None, 0, 2**63 - 1]),
    subscription_types=st.sampled_from([None, (), SUBSCRIPTION_TYPES]),
    schema_compatibility=st.sampled_from([None, *SCHEMA_STRATEGIES]),
    backlog_quota_size=st.sampled_from([None, BacklogQuota("producer_exception", 7)]),
    inactive_topics=st.sampled_from([None, InactiveTopics(True, 5)]),
    publish_rate=st.sampled_from([None, MessageRate(1, 2, 3)]),
    dispatch_rate=st.sampled_from([None, MessageRate(1, relative=True)]),
    dispatch_rates=st.sampled_from([None, SubscriptionRates((("s", MessageRate(1)), ("", MessageRate())))]),
    subscribe_rate=st.sampled_from([None, SubscribeRate(4)]),
)


@dataclass
class _Topic:
    """The parts of a topic on which its next records depend."""

    ledgers: dict[int, int] = field(default_factory=dict)
    """Ledger id -> the number of its entries."""
    end: int = 0
    cursors: list[str] = field(default_factory=list)
    pending: list[tuple[str, tuple[int, int]]] = field(default_factory=list)


class Scribe:
    """Draws one record after the other, each of them possible after those before it."""

    def __init__(self, draw: Callable[..., object]) -> None:
        self._draw: Callable[..., object] = draw
        self._topics: dict[str, _Topic] = {}
        self._next_ledger = 0
        self._transactions: set[tuple[int, int]] = set()
        self._next_transaction: dict[int, int] = {}
        self._kinds: list[Callable[[], list[records.Record]]] = [
            self._entries,
            self._entries,
            self._entries,
            self._cursor,
            self._cursor_deleted,
            self._sequence,
            self._topic_saved,
            self._topic_deleted,
            self._ledger_opened,
            self._ledgers_deleted,
            self._compacted,
            self._pending_ack,
            self._pending_acks_ended,
            self._transaction_opened,
            self._transaction_joined,
            self._transaction_ended,
            self._metadata,
            self._metadata,
        ]

    def some(self) -> list[records.Record]:
        """Return a few records of one kind; none where that kind is not possible now."""
        return self._of(st.sampled_from(self._kinds))()

    def _of(self, strategy: st.SearchStrategy[DrawnT]) -> DrawnT:
        return self._draw(strategy)  # type: ignore[return-value]

    def _topic(self) -> str | None:
        return self._of(st.sampled_from(sorted(self._topics))) if self._topics else None

    def _entry(self, topic: str, ledger_id: int, entry_id: int) -> records.EntryAdded:
        entry = records.EntryAdded(
            topic, ledger_id, entry_id, self._of(SIGNED), self._of(NUMBERS), self._of(st.binary(max_size=9))
        )
        entry.last_index = self._of(SIGNED)
        entry.received_at = self._of(SIGNED)
        if self._of(st.integers(0, 3)) == 0:
            entry.deliver_at = self._of(st.one_of(st.just(-1), NUMBERS))
            entry.chunk_of = self._of(st.one_of(st.none(), NAMES))
            entry.transaction = self._of(st.one_of(st.none(), st.tuples(NUMBERS, NUMBERS)))
            if entry.transaction is not None:
                entry.commits = self._of(st.sampled_from([None, True, False]))
        return entry

    def _entries(self) -> list[records.Record]:
        topic = self._topic()
        if topic is None or not self._topics[topic].ledgers:
            return self._ledger_opened()
        known = self._topics[topic]
        ledger_id = max(known.ledgers)
        added: list[records.Record] = []
        for _ in range(self._of(st.sampled_from([1, 2, 3, 7]))):
            added.append(self._entry(topic, ledger_id, known.ledgers[ledger_id]))
            known.ledgers[ledger_id] += 1
            known.end += 1
        return added

    def _topic_saved(self) -> list[records.Record]:
        topic = self._of(st.sampled_from(TOPICS))
        self._topics.setdefault(topic, _Topic())
        urls = st.one_of(st.none(), NAMES)
        migrated = self._of(st.one_of(st.none(), st.builds(records.MigratedTo, urls, urls)))
        epoch = self._of(st.one_of(st.none(), NUMBERS))
        return [records.TopicSaved(topic, epoch, self._of(st.one_of(st.none(), SIGNED)), migrated)]

    def _topic_deleted(self) -> list[records.Record]:
        topic = self._of(st.sampled_from(TOPICS))
        self._topics.pop(topic, None)
        return [records.TopicDeleted(topic)]

    def _ledger_opened(self) -> list[records.Record]:
        topic = self._topic()
        if topic is None:
            return self._topic_saved()
        known = self._topics[topic]
        known.ledgers[self._next_ledger] = 0
        self._next_ledger += 1
        return [records.LedgerOpened(topic, self._next_ledger - 1, known.end, self._of(SIGNED), 3)]

    def _ledgers_deleted(self) -> list[records.Record]:
        topic = self._topic()
        if topic is None:
            return []
        known = self._topics[topic]
        deleted = tuple(sorted(known.ledgers)[: self._of(st.integers(0, 2))])
        for ledger_id in deleted:
            del known.ledgers[ledger_id]
        return [records.LedgersDeleted(topic, deleted)]

    def _cursor(self) -> list[records.Record]:
        topic = self._topic()
        if topic is None:
            return []
        saved: list[records.Record] = []
        for _ in range(self._of(st.integers(1, 3))):
            name = self._of(NAMES)
            self._topics[topic].cursors.append(name)
            ranges = self._of(st.lists(st.tuples(SIGNED, SIGNED), max_size=3).map(tuple))
            partly = self._of(st.lists(st.tuples(SIGNED, BITS), max_size=2).map(tuple))
            saved.append(records.CursorSaved(topic, name, self._of(SIGNED), ranges, partly, self._of(PAIRS)))
        return saved

    def _cursor_deleted(self) -> list[records.Record]:
        topic = self._topic()
        if topic is None:
            return []
        known, name = self._topics[topic], self._of(NAMES)
        known.pending = [each for each in known.pending if each[0] != name]
        return [records.CursorDeleted(topic, name)]

    def _sequence(self) -> list[records.Record]:
        topic = self._topic()
        if topic is None:
            return []
        return [
            records.SequenceSaved(topic, self._of(NAMES), self._of(st.one_of(st.none(), NUMBERS)))
            for _ in range(self._of(st.integers(1, 3)))
        ]

    def _compacted(self) -> list[records.Record]:
        topic = self._topic()
        if topic is None:
            return []
        offsets = tuple(range(self._of(st.integers(0, 3))))
        entries = tuple(self._entry(topic, self._of(SIGNED), each) for each in offsets)
        self._next_ledger += 1
        return [records.TopicCompacted(topic, self._next_ledger - 1, self._of(SIGNED), offsets, entries)]

    def _pending_ack(self) -> list[records.Record]:
        topic = self._topic()
        if topic is None:
            return []
        name, transaction = self._of(NAMES), self._of(TRANSACTIONS)
        self._topics[topic].pending.append((name, transaction))
        individual = self._of(st.lists(st.tuples(SIGNED, BITS), max_size=2).map(tuple))
        cumulative = self._of(st.one_of(st.none(), st.tuples(SIGNED, st.one_of(st.none(), BITS))))
        return [records.AcknowledgedInTransaction(topic, name, transaction, individual, cumulative)]

    def _pending_acks_ended(self) -> list[records.Record]:
        topic = self._topic()
        if topic is None or not self._topics[topic].pending:
            return []
        known = self._topics[topic]
        name, transaction = self._of(st.sampled_from(known.pending))
        known.pending = [each for each in known.pending if each != (name, transaction)]
        return [records.PendingAcksEnded(topic, name, transaction)]

    def _transaction_opened(self) -> list[records.Record]:
        coordinator, number = self._of(TRANSACTIONS)
        self._transactions.add((coordinator, number))
        return [
            records.TransactionOpened(
                coordinator, number, self._of(NAMES), self._of(NUMBERS), self._of(SIGNED)
            )
        ]

    def _transaction_joined(self) -> list[records.Record]:
        if not self._transactions:
            return self._transaction_opened()
        coordinator, number = self._of(st.sampled_from(sorted(self._transactions)))
        topics = self._of(st.lists(NAMES, max_size=2).map(tuple))
        return [records.TransactionJoined(coordinator, number, topics, self._of(PAIRS))]

    def _transaction_ended(self) -> list[records.Record]:
        if not self._transactions:
            return []
        key = self._of(st.sampled_from(sorted(self._transactions)))
        self._transactions.discard(key)
        return [records.TransactionEnded(*key)]

    def _metadata(self) -> list[records.Record]:
        scope = self._of(st.sampled_from([*TOPICS, "public/default", "half \ud800/pair"]))
        topic = self._of(st.sampled_from(TOPICS))
        roles = st.lists(st.tuples(NAMES, st.lists(NAMES, max_size=2).map(tuple)), max_size=2).map(tuple)
        return [
            self._of(
                st.one_of(
                    st.builds(records.PoliciesSaved, st.just(scope), POLICIES),
                    st.builds(records.PropertiesSaved, st.just(topic), PAIRS),
                    st.builds(records.GrantsSaved, st.just(scope), roles, roles),
                    st.builds(records.PartitionsSaved, st.just(topic), st.integers(0, 3)),
                    st.builds(records.TenantSaved, NAMES, st.lists(NAMES, max_size=2).map(tuple)),
                    st.builds(records.TenantDeleted, NAMES),
                    st.builds(records.NamespaceDeleted, st.just(scope)),
                    st.builds(
                        records.SchemaSaved,
                        st.just(topic),
                        st.integers(0, 3),
                        SIGNED,
                        NAMES,
                        st.binary(max_size=5),
                        PAIRS,
                        SIGNED,
                        st.booleans(),
                    ),
                    st.builds(records.SchemaDeleted, st.just(topic)),
                    st.builds(records.BrokerStarted, st.integers(0, 9)),
                )
            )
        ]


@st.composite
def batches(draw: Callable[..., object]) -> list[list[records.Record]]:
    """Batches of records, as a broker gives them to its store."""
    scribe = Scribe(draw)
    return [
        [record for _ in range(scribe._of(st.integers(0, 6))) for record in scribe.some()]
        for _ in range(scribe._of(st.integers(1, 8)))
    ]
