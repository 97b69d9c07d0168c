"""`TransactionAccount`: what consumers may receive, which outcomes are true, and what the logs must hold."""

from collections.abc import Callable

import pytest

from pulsar_sansio.model.config import SubscriptionType
from pulsar_sansio.model.errors import (
    ConnectionLost,
    PulsarError,
    TransactionConflict,
    TransactionOutcomeUnknown,
    TransactionTimedOut,
)
from pulsar_sansio.model.transaction_id import TransactionId
from pulsar_sim.engine.failures import ViolationError
from pulsar_sim.model.transactions.durable_transactions import DurableTransactions, LogEntry
from pulsar_sim.model.transactions.subscription_account import SubscriptionAccount
from pulsar_sim.model.transactions.transaction_account import TransactionAccount
from pulsar_sim.model.transactions.transaction_record import (
    SentMessage,
    TransactionOutcome,
    TransactionRecord,
)

X, Y = "persistent://public/default/x0", "persistent://public/default/x1"
TIMEOUT = 1000


class Scene:
    """Two topics, a subscription of the first, and their logs."""

    def __init__(self) -> None:
        self.account = TransactionAccount([X, Y])
        self.subscription = SubscriptionAccount("s", X, SubscriptionType.EXCLUSIVE)
        self.account.subscriptions["s"] = self.subscription
        self.logs: dict[str, list[LogEntry]] = {X: [], Y: []}
        self.held: dict[TransactionId, None] = {}
        self.holds_acks = False

    def transaction(self, number: int = 0) -> TransactionRecord:
        return self.account.opened(TransactionId(0, number), 0, TIMEOUT)

    def stored(self, transaction: TransactionRecord | None = None, topic: str = X) -> SentMessage:
        """Return a message that is sent, confirmed and stored."""
        message = self.account.sends(topic, 1, None, transaction)
        self.append(message)
        self.account.confirms(message, (0, len(self.logs[topic]) - 1, 0))
        return message

    def append(self, message: SentMessage) -> None:
        transaction = message.transaction
        log = self.logs[message.topic]
        id_ = None if transaction is None else transaction.id
        log.append(LogEntry((0, len(log)), b"header" + message.payload, id_, None))

    def end(self, transaction: TransactionRecord, commits: bool, topic: str = X) -> None:
        log = self.logs[topic]
        log.append(LogEntry((0, len(log)), b"", transaction.id, commits))

    def receive(self, message: SentMessage) -> None:
        assert message.position is not None
        self.account.receives(self.subscription, message.position, message.payload)

    def check(self) -> None:
        self.account.check_rest(DurableTransactions(set(self.held), self.holds_acks, self.logs))

    def breaks(self, rule: str, action: Callable[[], object]) -> None:
        with pytest.raises(ViolationError) as violation:
            action()
        assert violation.value.rule == rule


def test_a_committed_transaction() -> None:
    s = Scene()
    transaction = s.transaction()
    messages = [s.stored(), s.stored(transaction), s.stored(transaction, Y)]
    transaction.outcome, transaction.answered = TransactionOutcome.COMMITTING, True
    s.end(transaction, True)
    s.end(transaction, True, Y)
    for message in messages[:2]:
        s.receive(message)
    s.account.done(transaction)
    s.check()


@pytest.mark.parametrize(
    "outcome", [TransactionOutcome.OPEN, TransactionOutcome.ABORTING, TransactionOutcome.ABORTED]
)
def test_no_message_of_an_open_or_aborted_transaction_is_received(outcome: TransactionOutcome) -> None:
    """INV-T4"""
    s = Scene()
    transaction = s.transaction()
    message = s.stored(transaction)
    transaction.outcome = outcome
    s.breaks("INV-T4", lambda: s.receive(message))


def test_a_message_of_an_aborted_transaction_that_was_received_before() -> None:
    s = Scene()
    transaction = s.transaction()
    message = s.stored(transaction)
    transaction.outcome = TransactionOutcome.UNKNOWN
    s.receive(message)
    s.end(transaction, False)
    s.breaks("INV-T4", s.check)


def test_a_transaction_ends_in_all_topics_alike() -> None:
    s = Scene()
    transaction = s.transaction()
    for topic, commits in ((X, True), (Y, False)):
        s.stored(transaction, topic)
        s.end(transaction, commits, topic)
    s.breaks("INV-T4", s.check)


def test_an_entry_belongs_to_the_transaction_of_its_messages() -> None:
    s = Scene()
    transaction = s.transaction()
    message = s.account.sends(X, 1, None, None)
    s.logs[X].append(LogEntry((0, 0), message.payload, transaction.id, None))
    s.end(transaction, True)
    transaction.outcome = TransactionOutcome.COMMITTED
    s.breaks("INV-T4", s.check)


def test_all_that_is_committed_is_received() -> None:
    """INV-T5"""
    s = Scene()
    transaction = s.transaction()
    message = s.stored(transaction)
    s.end(transaction, True)
    transaction.outcome = TransactionOutcome.COMMITTED
    s.breaks("INV-T5", s.check)
    s.receive(message)
    s.check()


def test_a_confirmed_message_is_in_the_log() -> None:
    s = Scene()
    message = s.account.sends(X, 1, None, None)
    s.account.confirms(message, None)
    s.breaks("INV-T5", s.check)


def test_messages_are_stored_in_the_order_of_their_producer() -> None:
    s = Scene()
    first, second = (s.account.sends(X, 1, None, None) for _ in range(2))
    for message in (second, first):
        s.append(message)
    s.breaks("INV-T5", s.check)


def test_batches_by_key_keep_the_order_of_each_key() -> None:
    s = Scene()
    s.account.by_key = True
    first, second = (s.account.sends(X, 1, key, None) for key in "ab")
    for entry, message in enumerate((second, first)):
        s.append(message)
        s.account.receives(s.subscription, (0, entry, 0), message.payload)
    s.check()


def test_a_copy_may_be_behind_later_messages() -> None:
    s = Scene()
    messages = [s.stored(), s.stored()]
    s.append(messages[0])
    for entry, message in enumerate([*messages, messages[0]]):
        s.account.receives(s.subscription, (0, entry, 0), message.payload)
    s.check()


def test_what_an_aborted_transaction_acknowledged_comes_back() -> None:
    """INV-T6"""
    s = Scene()
    transaction = s.transaction()
    message = s.stored()
    s.receive(message)
    assert message.position is not None
    s.subscription.acknowledges(message.position, transaction)
    transaction.outcome = TransactionOutcome.ABORTED
    s.breaks("INV-T6", s.check)


@pytest.mark.parametrize("outcome", [TransactionOutcome.COMMITTED, TransactionOutcome.ABORTED])
def test_the_reported_outcome_is_that_of_the_coordinator(outcome: TransactionOutcome) -> None:
    """INV-T7"""
    s = Scene()
    transaction = s.transaction()
    s.stored(transaction)
    transaction.outcome = outcome
    s.end(transaction, outcome is TransactionOutcome.ABORTED)
    s.breaks("INV-T7", s.check)


def test_a_commit_is_done_when_a_broker_says_so_and_every_message_is_confirmed() -> None:
    """INV-T1"""
    s = Scene()
    transaction = s.transaction()
    transaction.outcome = TransactionOutcome.COMMITTING
    s.breaks("INV-T7", lambda: s.account.done(transaction))
    transaction.answered = True
    s.account.sends(X, 1, None, transaction)
    s.breaks("INV-T1", lambda: s.account.done(transaction))


@pytest.mark.parametrize(
    ("error", "now", "calm", "legal"),
    [
        (TransactionTimedOut("late"), TIMEOUT, True, True),
        (TransactionTimedOut("late"), TIMEOUT - 1, False, False),
        (TransactionConflict("taken"), 0, False, False),
        (ConnectionLost("gone"), 0, False, True),
        (ConnectionLost("gone"), 0, True, False),
        (TransactionOutcomeUnknown("silent"), 0, False, False),
    ],
)
def test_a_commit_fails_for_a_reason(error: PulsarError, now: int, calm: bool, legal: bool) -> None:
    s = Scene()
    transaction = s.transaction()
    transaction.outcome = TransactionOutcome.COMMITTING
    if legal:
        s.account.failed(transaction, error, now, calm)
        assert transaction.outcome is TransactionOutcome.ABORTED
    else:
        s.breaks("INV-T7", lambda: s.account.failed(transaction, error, now, calm))


def test_an_outcome_is_unknown_after_the_question_for_the_end() -> None:
    s = Scene()
    transaction = s.transaction()
    transaction.outcome, transaction.ended_with = TransactionOutcome.COMMITTING, True
    s.account.failed(transaction, TransactionOutcomeUnknown("silent"), 0, False)
    assert transaction.outcome is TransactionOutcome.UNKNOWN


def test_a_transaction_is_open_until_its_timeout() -> None:
    s = Scene()
    transaction = s.transaction()
    s.breaks("INV-T7", lambda: s.account.not_open(transaction, TIMEOUT - 1))
    s.account.not_open(transaction, TIMEOUT)
    assert transaction.outcome is TransactionOutcome.ABORTED


def test_an_id_is_used_once() -> None:
    s = Scene()
    s.transaction()
    s.breaks("INV-T7", s.transaction)


def test_nothing_of_a_transaction_is_left() -> None:
    """INV-T8"""
    s = Scene()
    transaction = s.transaction()
    s.held[transaction.id] = None
    s.breaks("INV-T8", s.check)
    s.held.clear()
    s.holds_acks = True
    s.breaks("INV-T8", s.check)
    s.holds_acks = False
    s.stored(transaction)
    s.breaks("INV-T8", s.check)


def test_two_messages_have_two_places() -> None:
    s = Scene()
    first, second = (s.account.sends(X, 1, None, None) for _ in range(2))
    s.account.confirms(first, (0, 0, 0))
    s.breaks("INV-C2", lambda: s.account.confirms(second, (0, 0, 0)))


def test_a_flush_is_done_when_all_is_confirmed() -> None:
    """INV-T1"""
    s = Scene()
    transaction = s.transaction()
    message = s.account.sends(X, 1, None, transaction)
    s.breaks("INV-T1", lambda: s.account.flushed(transaction, [message]))
    transaction.written.add((message.number, 0))
    transaction.unconfirmed.add(("client", 0, 0))
    s.breaks("INV-T1", lambda: s.account.flushed(transaction, [message]))
    transaction.unconfirmed.clear()
    s.account.flushed(transaction, [message])
    transaction.unanswered_acks.add((1, 5))
    s.breaks("INV-T1", lambda: s.account.flushed(transaction, []))


def test_with_exactly_once_the_end_is_over_when_it_is_reported() -> None:
    """INV-T7"""
    s = Scene()
    transaction = s.transaction()
    s.breaks(
        "INV-T7", lambda: s.account.check_over(transaction, DurableTransactions({transaction.id}, False, {}))
    )
    s.account.check_over(transaction, DurableTransactions(set(), False, {}))


def test_with_exactly_once_a_message_is_stored_once() -> None:
    """INV-T5"""
    s = Scene()
    transaction = s.transaction()
    message = s.stored(transaction)
    s.append(message)
    s.end(transaction, True)
    transaction.outcome = TransactionOutcome.COMMITTED
    s.receive(message)
    message.position = (0, 1, 0)
    s.receive(message)
    s.check()
    transaction.exactly_once = True
    s.breaks("INV-T5", s.check)


def test_the_key_of_a_message_decides_on_its_partition() -> None:
    """INV-ROUTE: or the number of partitions was wrong that a broker answered."""
    partitions = [f"{X}-partition-{each}" for each in range(2)]
    account = TransactionAccount(partitions, partitioned={X: partitions})
    message = account.sends(X, 1, "b", None)  # "b" has the hash 98

    def is_at_another_partition() -> None:
        account.is_at(account.sends(X, 1, "b", None), partitions[1], (0, 0, 0))

    with pytest.raises(ViolationError) as violation:
        is_at_another_partition()
    assert violation.value.rule == "INV-ROUTE"
    account.confirms(message, (0, 0, 0), 0)
    assert message.topic == partitions[0]
    with pytest.raises(ViolationError) as violation:  # it stays there
        account.is_at(message, partitions[1], (0, 1, 0))
    assert violation.value.rule == "INV-C2"
    account = TransactionAccount(partitions, partitioned={X: partitions})
    account.wrong_counts.append(1)
    account.is_at(account.sends(X, 1, "a", None), partitions[0], (0, 0, 0))  # "a" has the hash 97
