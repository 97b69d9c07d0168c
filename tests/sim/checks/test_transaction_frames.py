"""The frames of a client with transactions: which are legal, given those before."""

from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any, cast

import pytest

from pulsar_sansio.model.config import SubscriptionType
from pulsar_sansio.model.transaction_id import TransactionId
from pulsar_sansio.wire import CUMULATIVE, INDIVIDUAL, Ack, MessageCommand, Send, SendReceipt, proto
from pulsar_sim.checks.transaction_frames import TransactingBrokerWatch, TransactingClientWatch
from pulsar_sim.engine.clock import Clock
from pulsar_sim.engine.failures import ViolationError
from pulsar_sim.engine.network import Wire
from pulsar_sim.model.transactions.durable_transactions import DurableTransactions
from pulsar_sim.model.transactions.subscription_account import SubscriptionAccount
from pulsar_sim.model.transactions.transaction_account import TransactionAccount
from pulsar_sim.model.transactions.transaction_record import SentMessage, TransactionOutcome

T = proto.BaseCommand
X = "persistent://public/default/x0"
TIMEOUT = 1000
FIRST, SECOND = (0, 0, 0), (0, 0, 1)


class Scene:
    """One wire, one subscription, one open transaction, and a batch of two messages."""

    def __init__(self, *, batch_index: bool = True) -> None:
        self.account = TransactionAccount([X])
        self.subscription = SubscriptionAccount("s", X, SubscriptionType.SHARED)
        self.account.subscriptions["s"] = self.subscription
        self.transaction = self.account.opened(TransactionId(0, 7), 0, TIMEOUT)
        self.open: set[TransactionId] = set()
        self.client = TransactingClientWatch(self.account)
        self.broker = TransactingBrokerWatch(
            self.account, batch_index, lambda: DurableTransactions(self.open, False, {})
        )
        self.clock = Clock(0)
        self.wire = cast(
            Wire,
            SimpleNamespace(
                number=1, client=SimpleNamespace(name="client"), network=SimpleNamespace(clock=self.clock)
            ),
        )
        subscribe = proto.CommandSubscribe(topic=X, subscription="s", consumer_id=0, consumer_name="x0.1")
        self.client.wrote(self.wire, T.SUBSCRIBE, subscribe)
        self.broker.got(self.wire, T.SUBSCRIBE, subscribe)
        for index in range(2):
            message = self.account.sends(X, 1, None, None)
            self.account.is_at(message, X, (0, 0, index))

    @property
    def ids(self) -> dict[str, Any]:
        return {"txnid_most_bits": 0, "txnid_least_bits": 7}

    def send(self, message: SentMessage, *, inside: bool = True, sequence_id: int = 0) -> None:
        bits: dict[str, Any] = self.ids if inside else {}
        self.client.wrote(self.wire, T.SEND, Send(0, sequence_id, payload=message.payload, **bits))

    def ack(self, *ids: tuple[int, int, int | None], inside: bool = True, kind: int = INDIVIDUAL) -> Ack:
        bits: dict[str, Any] = self.ids if inside else {}
        ack = Ack(0, kind, list(ids), request_id=5 if inside else None, **bits)
        self.client.wrote(self.wire, T.ACK, ack)
        return ack

    def confirm(self, error: int | None = None) -> None:
        self.client.got(self.wire, T.ACK_RESPONSE, self._ack_response(error))

    @staticmethod
    def _ack_response(error: int | None = None) -> Any:
        answer = proto.CommandAckResponse(consumer_id=0, request_id=5)
        if error is not None:
            answer.error = error  # type: ignore[assignment]
        return answer

    def taken(self, ack: Ack) -> None:
        """The broker takes an ACK in a transaction, and confirms it."""
        self.broker.got(self.wire, T.ACK, ack)
        self.broker.wrote(self.wire, T.ACK_RESPONSE, self._ack_response())

    def end(self, commits: bool = True) -> None:
        if commits:
            self.transaction.outcome = TransactionOutcome.COMMITTING
        self.client.wrote(self.wire, T.END_TXN, self._end(commits))

    def _end(self, commits: bool) -> Any:
        action = proto.COMMIT if commits else proto.ABORT
        return proto.CommandEndTxn(request_id=9, txn_action=action, **self.ids)

    def ended(self, commits: bool = True) -> None:
        """The broker takes END_TXN, and answers it."""
        self.broker.got(self.wire, T.END_TXN, self._end(commits))
        self.broker.wrote(self.wire, T.END_TXN_RESPONSE, proto.CommandEndTxnResponse(request_id=9))

    def deliver(self, *messages: SentMessage, entry: int = 0, ack_set: int | None = None) -> None:
        payload = b"".join(each.payload for each in messages)
        command = MessageCommand(0, 0, entry, -1, payload=payload, ack_set=ack_set)
        self.broker.wrote(self.wire, T.MESSAGE, command)

    def breaks(self, rule: str, action: Callable[[], object]) -> None:
        with pytest.raises(ViolationError) as violation:
            action()
        assert violation.value.rule == rule

    def acknowledge(self, *positions: tuple[int, int, int]) -> None:
        for each in positions:
            self.subscription.acknowledges(each, self.transaction)


# --- the client's end -------------------------------------------------------------------------------------


def test_a_message_is_sent_in_its_transaction() -> None:
    """INV-T4"""
    s = Scene()
    message = s.account.sends(X, 1, None, s.transaction)
    s.breaks("INV-T4", lambda: s.send(message, inside=False))
    s.send(message)
    s.breaks("INV-T4", lambda: s.send(s.account.sends(X, 1, None, None)))


def test_a_commit_follows_every_receipt() -> None:
    """INV-T1"""
    s = Scene()
    s.send(s.account.sends(X, 1, None, s.transaction))
    s.breaks("INV-T1", s.end)
    s.client.got(s.wire, T.SEND_RECEIPT, SendReceipt(0, 0, 0, 1))
    s.end()


def test_a_commit_follows_the_answer_to_every_ack() -> None:
    s = Scene()
    s.acknowledge(FIRST)
    s.ack((0, 0, 0b10))
    s.breaks("INV-T1", s.end)
    s.confirm(error=proto.TransactionConflict)
    s.breaks("INV-T1", s.end)
    s.confirm()
    s.end()


def test_a_commit_follows_the_ack_of_every_message() -> None:
    s = Scene()
    s.acknowledge(FIRST, SECOND)
    s.ack((0, 0, 0b10))
    s.confirm()
    s.breaks("INV-T1", s.end)


def test_a_commit_needs_the_command_of_the_application() -> None:
    s = Scene()
    s.breaks("INV-T1", lambda: s.client.wrote(s.wire, T.END_TXN, s._end(True)))


def test_a_failed_message_prevents_the_commit() -> None:
    s = Scene()
    s.account.sends(X, 1, None, s.transaction).outcome = "failed"
    s.breaks("INV-T1", s.end)
    s.end(commits=False)


def test_an_end_is_repeated_and_not_changed() -> None:
    """INV-T3"""
    s = Scene()
    s.end()
    s.end()
    s.breaks("INV-T3", lambda: s.end(commits=False))


def test_an_ack_in_a_transaction_has_its_messages() -> None:
    """INV-T2"""
    s = Scene()
    s.acknowledge(FIRST)
    s.breaks("INV-T2", lambda: s.ack((0, 0, None)))
    s.ack((0, 0, 0b10))


def test_an_ack_in_a_transaction_may_name_what_was_acknowledged_of_the_batch_before() -> None:
    s = Scene()
    s.subscription.plain.add(SECOND)
    s.acknowledge(FIRST)
    s.ack((0, 0, None))


def test_an_ack_outside_of_transactions_has_no_message_of_one() -> None:
    s = Scene()
    s.subscription.plain.add(FIRST)
    s.acknowledge(SECOND)
    s.ack((0, 0, 0b10), inside=False)
    s.breaks("INV-T2", lambda: s.ack((0, 0, None), inside=False))
    s.transaction.outcome = TransactionOutcome.COMMITTED
    s.ack((0, 0, None), inside=False)


def test_chunks_of_another_copy_are_acknowledged_outside_of_transactions() -> None:
    """INV-T2: the message was taken with the chunks of one copy; of the other one the last did not come."""
    scene = Scene()
    message = scene.account.sends(X, 1, None, None, chunks=2, chunk_size=10)
    copy, other = [(0, 3, 0), (0, 4, 0)], [(0, 7, 0)]
    for position in (*copy, *other):
        scene.account.is_at(message, X, position)
    scene.subscription.receives(copy[-1], message)
    scene.acknowledge(copy[-1])
    scene.ack((0, 3, None), (0, 4, None))
    scene.ack((0, 7, None), inside=False)
    for position in copy:
        scene.breaks("INV-T2", partial(scene.ack, (*position[:2], None), inside=False))


def test_a_cumulative_ack_reaches_as_far_as_the_application_said() -> None:
    s = Scene()
    s.acknowledge(FIRST)
    s.transaction.acknowledges_through("s", "x0.1", FIRST)
    s.transaction.acknowledges_through("s", "x0.2", (0, 0, 1))  # another consumer reaches further
    s.breaks("INV-T2", lambda: s.ack((0, 0, None), kind=CUMULATIVE))
    s.breaks("INV-T2", lambda: s.ack((0, 0, 0b10), kind=CUMULATIVE, inside=False))
    s.ack((0, 0, 0b10), kind=CUMULATIVE)


def test_a_message_that_is_wanted_once_is_sent_once() -> None:
    """INV-T5"""
    s = Scene()
    message = s.account.sends(X, 1, None, s.transaction)
    s.send(message)
    s.send(message)
    s.transaction.exactly_once = True
    s.breaks("INV-T5", lambda: s.send(message))


def test_with_exactly_once_each_entry_has_an_ack_of_its_own() -> None:
    """INV-T2"""
    s = Scene()
    s.transaction.exactly_once = True
    s.acknowledge(FIRST, (0, 1, 0))
    s.account.is_at(s.account.sends(X, 1, None, None), X, (0, 1, 0))
    s.breaks("INV-T2", lambda: s.ack((0, 0, 0b10), (0, 1, None)))
    s.ack((0, 1, None))


# --- the broker's end -------------------------------------------------------------------------------------


def test_no_message_is_delivered_before_its_commit_has_arrived() -> None:
    s = Scene()
    message = s.account.sends(X, 1, None, s.transaction)
    s.breaks("INV-T4", lambda: s.deliver(message, entry=1))
    s.ended()
    s.deliver(message, entry=1)


def test_what_a_committed_transaction_acknowledged_is_not_delivered_again() -> None:
    """INV-T6"""
    s = Scene()
    first, second = s.account.messages
    s.acknowledge(FIRST)
    s.ended()
    s.deliver(first, second, ack_set=0b10)
    s.breaks("INV-T6", lambda: s.deliver(first, second))


def test_a_broker_without_index_acknowledgement_may_deliver_a_whole_batch_again() -> None:
    s = Scene(batch_index=False)
    first, second = s.account.messages
    s.acknowledge(FIRST)
    s.ended()
    s.deliver(first, second)
    s.subscription.committed.add(SECOND)
    s.breaks("INV-T6", lambda: s.deliver(first, second))


def test_what_an_open_transaction_acknowledged_is_withheld() -> None:
    s = Scene()
    first, second = s.account.messages
    s.acknowledge(FIRST)
    s.taken(s.ack((0, 0, 0b10)))
    s.breaks("INV-T6", lambda: s.deliver(first, second))
    s.deliver(first, second, ack_set=0b10)
    s.clock.now = TIMEOUT
    s.deliver(first, second)


def test_what_an_aborted_transaction_acknowledged_is_delivered_again() -> None:
    s = Scene()
    s.acknowledge(FIRST)
    s.taken(s.ack((0, 0, 0b10)))
    s.ended(commits=False)
    s.deliver(*s.account.messages)


def test_an_acknowledgement_that_is_confirmed_behind_the_end_withholds_nothing() -> None:
    """INV-T6: the client gave it up with its consumer, and asked for the abort meanwhile."""
    s = Scene()
    s.acknowledge(FIRST)
    s.broker.got(s.wire, T.ACK, s.ack((0, 0, 0b10)))
    s.broker.got(s.wire, T.END_TXN, s._end(commits=False))
    s.broker.wrote(s.wire, T.ACK_RESPONSE, s._ack_response())
    s.deliver(*s.account.messages)


def test_an_end_is_answered_when_it_is_durable() -> None:
    """INV-T7"""
    s = Scene()
    s.open.add(s.transaction.id)
    s.breaks("INV-T7", s.ended)
    s.open.clear()
    s.ended()
    assert s.transaction.answered
    s.breaks("INV-T7", s.ended)
