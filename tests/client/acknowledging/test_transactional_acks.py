"""Acknowledgements in transactions: when they are sent, what fails the transaction, what follows its end."""

from typing import Any

import pytest

from pulsar_sansio.client.acknowledging.transactional_acks import GROUP_SIZE
from pulsar_sansio.client.outputs import RequestDone, RequestFailed
from pulsar_sansio.model.config import SubscriptionType
from pulsar_sansio.model.errors import (
    ClosedError,
    ConnectionLost,
    LocalProtocolError,
    PulsarError,
    ServerError,
    TransactionConflict,
    TransactionNotFound,
    TransactionNotOpen,
)
from pulsar_sansio.model.interceptors import ConsumerInterceptor
from pulsar_sansio.model.message_id import MessageId
from pulsar_sansio.model.topic_name import TopicName
from pulsar_sansio.model.transaction_id import TransactionId
from pulsar_sansio.wire import CUMULATIVE, INDIVIDUAL, proto
from tests.client.broker_script import ConsumerScript, entry_bytes

SHARED, EXCLUSIVE = SubscriptionType.SHARED, SubscriptionType.EXCLUSIVE


class Scene(ConsumerScript):
    """A consumer and an open transaction."""

    def __init__(
        self,
        kind: SubscriptionType = SHARED,
        timeout: float = 60.0,
        *,
        exactly_once: bool = False,
        **spec: Any,
    ) -> None:
        super().__init__(transactions=True, subscription_type=kind, **spec)
        self.accept()
        request = self.client.begin_transaction(self.now, timeout, exactly_once=exactly_once)
        self.pump()
        [introduced] = [each for name, each in self.frames() if name == "TC_CLIENT_CONNECT_REQUEST"]
        self.say(
            "TC_CLIENT_CONNECT_RESPONSE",
            proto.CommandTcClientConnectResponse(request_id=introduced.request_id),
        )
        self._begun(request)

    def begin(self) -> None:
        """Open another transaction once the first has ended. It has the same id."""
        request = self.client.begin_transaction(self.now, 60.0)
        self.pump()
        self._begun(request)

    def _begun(self, request: int) -> None:
        [asked] = self.expect("NEW_TXN")
        self.say(
            "NEW_TXN_RESPONSE",
            proto.CommandNewTxnResponse(request_id=asked.request_id, txnid_least_bits=7, txnid_most_bits=0),
        )
        assert RequestDone(request, TransactionId(0, 7)) in self.outputs()
        self.id = TransactionId(0, 7)

    def ack(self, what: Any) -> None:
        self.client.acknowledge(self.now, self.consumer, what, self.id)
        self.pump()

    def joined(self, error: int | None = None) -> None:
        [asked] = self.expect("ADD_SUBSCRIPTION_TO_TXN")
        [joined] = asked.subscription
        assert (joined.topic, joined.subscription) == ("persistent://public/default/t", "s")
        answer = proto.CommandAddSubscriptionToTxnResponse(request_id=asked.request_id)
        if error is not None:
            answer.error = error  # type: ignore[assignment]
        self.say("ADD_SUBSCRIPTION_TO_TXN_RESPONSE", answer)

    def end(self, command: str = "commit") -> int:
        request: int = getattr(self.client, command)(self.now, self.id)
        self.pump()
        return request

    def confirm(self, ack: Any, error: int | None = None) -> None:
        assert (ack.txnid_most_bits, ack.txnid_least_bits) == (0, 7)
        answer = proto.CommandAckResponse(consumer_id=0, request_id=ack.request_id)
        if error is not None:
            answer.error = error  # type: ignore[assignment]
        self.say("ACK_RESPONSE", answer)

    def ack_in_transaction(self) -> Any:
        """Return the one ACK in the transaction."""
        [ack] = [each for name, each in self.frames() if name == "ACK" and each.txnid_least_bits == 7]
        return ack

    def ended(self) -> None:
        """Answer END_TXN."""
        [asked] = self.expect("END_TXN")
        self.say("END_TXN_RESPONSE", proto.CommandEndTxnResponse(request_id=asked.request_id))

    def outcome(self, request: int) -> Any:
        """Return None for a request that is done, else its error."""
        for output in self.outputs():
            if isinstance(output, RequestDone) and output.request == request:
                return None
            if isinstance(output, RequestFailed) and output.request == request:
                return output.error
        raise AssertionError("the request has no outcome")


def test_acknowledgements_go_together_before_the_commit() -> None:
    """TXN-01: the subscription joins first, and the commit waits for the answer."""
    s = Scene()
    for entry in range(3):
        s.message(entry)
    for message in s.take():
        s.ack(message)
    s.joined()
    s.expect()
    request = s.end()
    [ack] = s.expect("ACK")
    assert (ack.ack_type, ack.message_ids) == (INDIVIDUAL, [(1, 0, None), (1, 1, None), (1, 2, None)])
    s.confirm(ack)
    s.ended()
    assert s.outcome(request) is None
    s.flush()
    s.expect()


def test_a_full_group_is_sent_before_the_end() -> None:
    s = Scene(receiver_queue_size=10_000)
    for entry in range(GROUP_SIZE + 1):
        s.message(entry)
    messages = s.take()
    s.ack(messages)
    s.joined()
    ack, rest = s.expect("ACK", "ACK")
    assert len(ack.message_ids) == GROUP_SIZE
    assert rest.message_ids == [(1, GROUP_SIZE, None)]
    s.end()
    s.confirm(ack)
    s.expect()
    s.confirm(rest)
    s.ended()


def test_a_flush_does_not_wait_for_later_acknowledgements() -> None:
    """TXN-01: they are sent with the next flush, or before the end."""
    s = Scene()
    for entry in range(2):
        s.message(entry)
    first, second = s.take()
    s.ack(first)
    s.joined()
    request = s.client.flush_transaction(s.now, s.id)
    s.pump()
    [ack] = s.expect("ACK")
    s.ack(second)
    s.confirm(ack)
    assert s.outcome(request) is None
    request = s.end()
    [ack] = s.expect("ACK")
    assert ack.message_ids == [(1, 1, None)]
    s.confirm(ack)
    s.ended()
    assert s.outcome(request) is None


def test_a_transaction_with_acknowledgements_is_not_released() -> None:
    """INV-T1: not while one is collected, nor when it is confirmed. Its consumer waits for the outcome."""
    s = Scene(receiver_queue_size=10_000)
    for entry in range(GROUP_SIZE):
        s.message(entry)
    s.ack(s.take())
    s.joined()
    [ack] = s.expect("ACK")
    with pytest.raises(LocalProtocolError, match="not confirmed"):
        s.client.release_transaction(s.now, s.id)
    s.confirm(ack)
    with pytest.raises(LocalProtocolError, match="has acknowledgements, which end in this client"):
        s.client.release_transaction(s.now, s.id)


def test_messages_of_a_batch_are_named_by_bits() -> None:
    """INV-T2: the bits are those that this ACK leaves."""
    s = Scene()
    s.batch(0, 4)
    s.batch(1, 2)
    messages = s.take()
    s.ack(messages[0])
    s.ack([messages[2], messages[4], messages[5]])
    s.joined()
    request = s.end()
    [ack] = s.expect("ACK")
    assert ack.message_ids == [(1, 0, 0b1010), (1, 1, None)]
    assert ack.position_rest == {0: b"\x30\x04"}, "batch_size, without which a Pulsar broker sees no conflict"
    s.confirm(ack)
    s.ended()
    assert s.outcome(request) is None
    s.acknowledge([messages[1], messages[3]])
    s.flush()
    [rest] = s.expect("ACK")
    assert rest.message_ids == [(1, 0, None)], "the others were acknowledged by the transaction"


def test_all_chunks_of_a_message() -> None:
    """INV-T2"""
    s = Scene()
    header: dict[str, Any] = {"uuid": "u", "num_chunks_from_msg": 2, "total_chunk_msg_size": 4}
    for chunk in range(2):
        s.deliver(chunk, entry_bytes(b"ab", chunk_id=chunk, **header))
    [message] = s.take()
    s.ack(message.message_id)
    s.joined()
    s.end()
    [ack] = s.expect("ACK")
    assert ack.message_ids == [(1, 0, None), (1, 1, None)]


def test_acknowledgements_outside_of_the_transaction_keep_their_order() -> None:
    """TXN-01: the broker refuses the second acknowledgement of a message, whichever it is."""
    s = Scene(acknowledgement_group_time=10.0)
    s.message(0)
    message = s.receive()
    s.acknowledge(message)
    s.ack(message)
    s.joined()
    s.end()
    plain, ack = s.expect("ACK", "ACK")
    assert (plain.txnid_least_bits, ack.txnid_least_bits) == (None, 7)
    assert plain.message_ids == ack.message_ids == [(1, 0, None)]


def test_a_conflict_aborts_the_commit() -> None:
    s = Scene()
    s.message(0)
    s.ack(s.receive())
    s.joined()
    request = s.end()
    [ack] = s.expect("ACK")
    s.confirm(ack, ServerError.TransactionConflict)
    [asked] = s.expect("END_TXN")
    assert asked.txn_action == proto.ABORT
    s.say("END_TXN_RESPONSE", proto.CommandEndTxnResponse(request_id=asked.request_id))
    assert isinstance(s.outcome(request), TransactionConflict)


def test_a_subscription_that_cannot_join_fails_the_commit() -> None:
    s = Scene()
    s.message(0)
    s.ack(s.receive())
    s.joined(ServerError.TransactionNotFound)
    request = s.end()
    s.ended()
    assert isinstance(s.outcome(request), TransactionNotFound)


def test_an_acknowledgement_that_may_be_lost_fails_the_commit() -> None:
    """A second ACK would be refused where the first one arrived."""
    s = Scene()
    s.message(0)
    s.ack(s.receive())
    s.joined()
    request = s.end()
    s.expect("ACK")
    s.lose()
    s.pass_time(1_000_000_000)
    frames = dict(s.frames())
    s.say("SUCCESS", proto.CommandSuccess(request_id=frames["SUBSCRIBE"].request_id))
    introduced = frames["TC_CLIENT_CONNECT_REQUEST"]
    s.frames()
    s.say(
        "TC_CLIENT_CONNECT_RESPONSE",
        proto.CommandTcClientConnectResponse(request_id=introduced.request_id),
    )
    [asked] = s.expect("END_TXN")
    assert asked.txn_action == proto.ABORT
    s.say("END_TXN_RESPONSE", proto.CommandEndTxnResponse(request_id=asked.request_id))
    error = s.outcome(request)
    assert isinstance(error, ConnectionLost)
    assert "may be lost" in str(error)


def test_acknowledgements_wait_for_the_connection() -> None:
    s = Scene()
    s.message(0)
    message = s.receive()
    s.ack(message)
    s.joined()
    s.close_by_broker()
    request = s.end()
    s.expect()
    s.pass_time(1_000_000_000)
    s.accept()
    [ack] = [command for name, command in s.frames() if name == "ACK"]
    s.confirm(ack)
    s.ended()
    assert s.outcome(request) is None


def test_the_broker_redelivers_by_itself_on_a_shared_subscription() -> None:
    s = Scene()
    s.message(0)
    s.ack(s.receive())
    s.joined()
    request = s.end("abort")
    [ack] = s.expect("ACK")
    s.confirm(ack)
    s.ended()
    assert s.outcome(request) is None
    s.expect()
    s.message(0, redelivery_count=1)
    assert s.receive().redelivery_count == 1


def test_everything_is_asked_for_again_on_other_subscriptions() -> None:
    s = Scene(EXCLUSIVE)
    for entry in range(3):
        s.message(entry)
    s.ack(s.receive())
    s.joined()
    s.end("abort")
    [ack] = s.expect("ACK")
    s.confirm(ack)
    s.ended()
    asked, *_ = s.frames()
    assert asked[0] == "REDELIVER_UNACKNOWLEDGED_MESSAGES"
    assert s.receive() is None, "the queue is empty until they come in order"


def test_a_cumulative_acknowledgement() -> None:
    s = Scene(EXCLUSIVE, batch_index_acknowledgement=True)
    s.message(0)
    s.batch(1, 3)
    messages = s.take()
    s.client.acknowledge_cumulative(s.now, s.consumer, messages[2], s.id)
    s.joined()
    s.end()
    [ack] = s.expect("ACK")
    assert (ack.ack_type, ack.message_ids) == (CUMULATIVE, [(1, 1, 0b100)])
    assert ack.position_rest == {0: b"\x30\x03"}


def test_a_shared_subscription_has_no_cumulative_acknowledgement() -> None:
    s = Scene()
    s.message(0)
    with pytest.raises(LocalProtocolError, match="cumulative"):
        s.client.acknowledge_cumulative(s.now, s.consumer, s.receive(), s.id)
    s.expect()


def test_closing_the_consumer_fails_what_was_not_sent() -> None:
    s = Scene()
    s.message(0)
    s.ack(s.receive())
    s.joined()
    s.close()
    s.frames()
    request = s.end()
    s.ended()
    assert isinstance(s.outcome(request), ClosedError)


@pytest.mark.parametrize("command", ["commit", "abort"])
def test_a_transaction_ends_after_its_consumer_was_closed(command: str) -> None:
    """TXN-01: the broker has the acknowledgement, and nothing of it is left in the client."""
    s = Scene(EXCLUSIVE)
    machine = s.machine
    s.message(0)
    s.client.acknowledge_cumulative(s.now, s.consumer, s.receive(), s.id)
    s.joined()
    request = s.end(command)
    [ack] = s.expect("ACK")
    s.close()
    s.frames()
    s.confirm(ack)
    s.ended()
    assert s.outcome(request) is None
    assert not machine._acknowledgements.tracker.taken
    s.expect()


def test_a_subscription_that_joins_after_the_consumer_was_closed() -> None:
    s = Scene()
    s.message(0)
    s.ack(s.receive())
    [asked] = s.expect("ADD_SUBSCRIPTION_TO_TXN")
    s.close()
    request = s.end()
    s.frames()
    s.say(
        "ADD_SUBSCRIPTION_TO_TXN_RESPONSE",
        proto.CommandAddSubscriptionToTxnResponse(request_id=asked.request_id),
    )
    s.ended()
    assert isinstance(s.outcome(request), ClosedError)


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0)])
def test_the_cumulative_acknowledgement_that_reaches_furthest_counts(order: tuple[int, ...]) -> None:
    """ACK-14"""
    s = Scene(EXCLUSIVE, batch_index_acknowledgement=True)
    s.message(0)
    s.batch(1, 3)
    messages = s.take()
    for each in order:
        s.client.acknowledge_cumulative(s.now, s.consumer, messages[each], s.id)
    s.joined()
    s.end()
    [ack] = s.expect("ACK")
    assert ack.message_ids == [(1, 1, 0b100)]


def test_a_transaction_that_is_over_takes_no_acknowledgement() -> None:
    s = Scene()
    s.message(0)
    message = s.receive()
    s.end()
    with pytest.raises(TransactionNotOpen):
        s.client.acknowledge(s.now, s.consumer, message, s.id)


def test_an_acknowledged_message_does_not_time_out() -> None:
    s = Scene(acknowledgement_timeout=2.0)
    s.message(0)
    s.message(1)
    first, _ = s.take()
    s.ack(first)
    s.joined()
    s.pass_time(5_000_000_000)
    [asked] = [command for name, command in s.frames() if name == "REDELIVER_UNACKNOWLEDGED_MESSAGES"]
    assert [each.entryId for each in asked.message_ids] == [1]


def test_a_batch_that_a_commit_completes_is_acknowledged() -> None:
    """ACK-04: the application acknowledged the other message outside of the transaction."""
    s = Scene()
    s.batch(0, 2)
    zero, one = s.take()
    s.ack(zero)
    s.joined()
    s.acknowledge(one)
    s.end()
    [ack] = s.expect("ACK")
    assert ack.message_ids == [(1, 0, 0b10)]
    s.confirm(ack)
    s.ended()
    s.flush()
    assert [each.message_ids for each in s.expect("ACK")] == [[(1, 0, None)]]


@pytest.mark.parametrize("before", [False, True])
def test_a_batch_that_a_commit_completes_with_index_acknowledgement(before: bool) -> None:
    """ACK-05: the other message is acknowledged by its index, once."""
    s = Scene(batch_index_acknowledgement=True)
    s.batch(0, 2)
    zero, one = s.take()
    s.ack(zero)
    s.joined()
    if before:
        s.acknowledge(one)
    s.end()
    *plain, ack = [command for _, command in s.frames()]
    assert [each.message_ids for each in plain] == [[(1, 0, 0b01)]] * before
    assert ack.message_ids == [(1, 0, 0b10)]
    if not before:
        s.acknowledge(one)
    s.confirm(ack)
    s.ended()
    s.pass_time(1_000_000_000)
    left = [command.message_ids for name, command in s.frames() if name == "ACK"]
    assert left == ([] if before else [[(1, 0, None)]])


def test_a_committed_message_is_not_acknowledged_again_in_another_transaction() -> None:
    """TXN-01: the broker left out a message, which an open transaction of another client has."""
    s = Scene()
    s.batch(0, 2, ack_set=0b10)
    s.ack(s.receive())
    s.joined()
    s.end()
    s.confirm(s.ack_in_transaction())
    s.ended()
    s.batch(0, 2, ack_set=0b01, redelivery_count=1)
    s.frames()
    s.begin()
    s.ack(s.receive())
    s.joined()
    s.end()
    assert s.ack_in_transaction().message_ids == [(1, 0, 0b10)]


# --- deliveries again, while the transaction is open --------------------------------------------------


@pytest.mark.parametrize("index", [False, True], ids=["entries", "index"])
@pytest.mark.parametrize("again", [False, True], ids=["first delivery", "delivered again"])
def test_the_message_behind_committed_ones_completes_its_batch(index: bool, again: bool) -> None:
    """TXN-01: the consumer acknowledges it after the commit, outside of the transaction."""
    s = Scene(batch_index_acknowledgement=index)
    s.batch(0, 3)
    if again:
        s.take()
        s.batch(0, 3, redelivery_count=1)
    zero, one, two = s.take()
    s.ack(zero)
    s.joined()
    s.end()
    s.confirm(s.ack_in_transaction())
    s.ended()
    s.acknowledge([one, two])
    s.flush()
    [ack] = s.expect("ACK")
    assert ack.message_ids == [(1, 0, None)]


@pytest.mark.parametrize("kind", [SHARED, EXCLUSIVE])
def test_an_acknowledged_message_that_is_delivered_again_is_a_duplicate(kind: SubscriptionType) -> None:
    """TXN-01: its ACK waits for the end, so the broker delivers it again over a new connection."""
    s = Scene(kind)
    s.message(0)
    s.message(1)
    s.ack(s.take())
    s.joined()
    s.reconnect()
    s.frames()
    s.message(0, redelivery_count=1)
    s.message(1, redelivery_count=1)
    s.batch(2, 2)
    assert [each.data for each in s.take()] == [b"2.0", b"2.1"]


def test_acknowledged_messages_of_a_batch_that_is_delivered_again() -> None:
    s = Scene()
    s.batch(0, 3)
    messages = s.take()
    s.ack(messages[1])
    s.joined()
    s.reconnect()
    s.batch(0, 3, redelivery_count=1)
    assert [each.data for each in s.take()] == [b"0.0", b"0.2"]


def test_an_earlier_delivery_is_acknowledged_while_a_later_one_waits() -> None:
    s = Scene()
    s.message(0)
    message = s.receive()
    s.reconnect()
    s.message(0, redelivery_count=1)
    s.ack(message)
    assert s.receive() is None


def test_nothing_below_a_cumulative_acknowledgement_is_delivered() -> None:
    s = Scene(EXCLUSIVE, batch_index_acknowledgement=True)
    s.message(0)
    s.batch(1, 3)
    _, _, two, _ = s.take()
    s.close_by_broker()
    s.pass_time(1_000_000_000)
    s.accept()
    s.message(0, redelivery_count=1)
    s.client.acknowledge_cumulative(s.now, s.consumer, two, s.id)
    s.batch(1, 3, redelivery_count=1)
    s.message(2)
    assert [each.data for each in s.take()] == [b"1.2", b"m"]
    request = s.end()
    asked = dict(s.frames())["ADD_SUBSCRIPTION_TO_TXN"]
    s.say(
        "ADD_SUBSCRIPTION_TO_TXN_RESPONSE",
        proto.CommandAddSubscriptionToTxnResponse(request_id=asked.request_id),
    )
    [ack] = s.expect("ACK")
    assert ack.message_ids == [(1, 1, 0b100)]
    s.confirm(ack)
    s.ended()
    assert s.outcome(request) is None
    s.batch(1, 3, redelivery_count=2)
    assert [each.data for each in s.take()] == [b"1.2"]


def test_messages_below_a_cumulative_acknowledgement_do_not_time_out() -> None:
    s = Scene(EXCLUSIVE, acknowledgement_timeout=2.0)
    s.message(0)
    s.message(1)
    s.client.acknowledge_cumulative(s.now, s.consumer, s.take()[1], s.id)
    s.joined()
    s.pass_time(5_000_000_000)
    assert "REDELIVER_UNACKNOWLEDGED_MESSAGES" not in dict(s.frames())


def test_an_aborted_cumulative_acknowledgement() -> None:
    """A broker leaves the messages with the consumer, which asks for them."""
    s = Scene(EXCLUSIVE)
    s.message(0)
    s.message(1)
    s.client.acknowledge_cumulative(s.now, s.consumer, s.take()[1], s.id)
    s.joined()
    s.end("abort")
    [ack] = s.expect("ACK")
    s.confirm(ack)
    s.ended()
    asked, *_ = s.frames()
    assert (asked[0], asked[1].consumer_epoch) == ("REDELIVER_UNACKNOWLEDGED_MESSAGES", 1)
    s.message(0, consumer_epoch=1)
    s.message(1, consumer_epoch=1)
    assert len(s.take()) == 2


def asked_again(s: Scene) -> list[tuple[int, int]]:
    """Return the entries that the consumer asks for."""
    [asked] = s.expect("REDELIVER_UNACKNOWLEDGED_MESSAGES")
    return [(each.ledgerId, each.entryId) for each in asked.message_ids]


def test_what_the_broker_does_not_have_in_an_aborted_transaction_is_asked_for() -> None:
    """TXN-01: the broker delivers again by itself only what it has."""
    s = Scene()
    for entry in range(3):
        s.message(entry)
    messages = s.take()
    s.ack(messages[0])
    s.joined(ServerError.TransactionNotFound)
    s.end("abort")
    s.ended()
    assert asked_again(s) == [(1, 0)]


def test_a_refused_acknowledgement_is_asked_for_after_the_abort() -> None:
    s = Scene(negative_acknowledgement_delay=1.0)
    s.message(0)
    s.batch(1, 2)
    messages = s.take()
    s.ack([messages[0], messages[2]])
    s.joined()
    request = s.end()
    [ack] = s.expect("ACK")
    s.confirm(ack, ServerError.TransactionConflict)
    s.ended()
    assert asked_again(s) == [(1, 0)]
    assert isinstance(s.outcome(request), TransactionConflict)
    s.negative_acknowledge(messages[1])
    s.pass_time(1_000_000_000)
    assert asked_again(s) == [(1, 1)], "a batch is asked for when its other messages are settled"


@pytest.mark.parametrize("sent", ["before the abort", "before its answer", "later"])
@pytest.mark.parametrize("size", [1, 2])
def test_what_is_acknowledged_outside_of_an_aborted_transaction_is_not_asked_for(
    size: int, sent: str
) -> None:
    """INV-C9: the broker has no such message any more, whatever becomes of the transaction."""
    s = Scene(acknowledgement_group_time=0.1)
    for entry in range(2):
        s.batch(entry, size) if size > 1 else s.message(entry)
    messages = s.take()
    s.ack(messages)
    s.joined(ServerError.TransactionNotFound)
    s.client.acknowledge(s.now, s.consumer, messages[:size])
    if sent == "before the abort":
        s.pass_time(100_000_000)
        s.expect("ACK")
    s.end("abort")
    if sent == "before its answer":
        end, *_ = s.frames()
        s.pass_time(100_000_000)
        s.expect("ACK")
        s.say("END_TXN_RESPONSE", proto.CommandEndTxnResponse(request_id=end[1].request_id))
    else:
        s.ended()
    [asked] = [command for name, command in s.frames() if name == "REDELIVER_UNACKNOWLEDGED_MESSAGES"]
    assert [each.entryId for each in asked.message_ids] == [1]


def test_a_refused_message_that_another_transaction_acknowledges_is_asked_for() -> None:
    """TXN-01: a Pulsar broker that refuses it forgets that the consumer has it."""
    s = Scene()
    s.message(0)
    message = s.receive()
    s.ack(message)
    s.joined()
    s.end()
    [ack] = s.expect("ACK")
    s.confirm(ack, ServerError.TransactionConflict)
    s.client.begin_transaction(s.now, 60.0)
    end, opening = s.expect("END_TXN", "NEW_TXN")
    opened = proto.CommandNewTxnResponse(request_id=opening.request_id, txnid_least_bits=8, txnid_most_bits=0)
    s.say("NEW_TXN_RESPONSE", opened)
    s.client.acknowledge(s.now, s.consumer, message, TransactionId(0, 8))
    s.expect("ADD_SUBSCRIPTION_TO_TXN")
    s.say("END_TXN_RESPONSE", proto.CommandEndTxnResponse(request_id=end.request_id))
    assert asked_again(s) == [(1, 0)]


def test_messages_of_a_batch_that_are_acknowledged_outside_are_not_asked_for() -> None:
    """INV-C9"""
    s = Scene()
    s.batch(0, 3)
    messages = s.take()
    s.ack(messages[:2])
    s.joined(ServerError.TransactionNotFound)
    s.client.acknowledge(s.now, s.consumer, messages[:2])
    s.end("abort")
    s.ended()
    s.expect()


def test_messages_that_come_before_the_answer_to_the_abort_are_no_duplicates() -> None:
    s = Scene()
    s.message(0)
    s.ack(s.receive())
    s.joined()
    s.end("abort")
    [ack] = s.expect("ACK")
    s.confirm(ack)
    s.message(0, redelivery_count=1)
    assert s.receive().redelivery_count == 1
    s.ended()
    s.expect()


@pytest.mark.parametrize("size", [1, 2])
def test_messages_that_come_before_the_timeout_of_the_client_are_asked_for(size: int) -> None:
    """TXN-01: the coordinator's clock was faster, and the broker delivers each message again once."""
    s = Scene(timeout=2.0, receiver_queue_size=10 * GROUP_SIZE)
    for entry in range(GROUP_SIZE):
        s.batch(entry, size) if size > 1 else s.message(entry)
    s.ack(s.take())
    s.joined()
    [ack] = [command for name, command in s.frames() if name == "ACK"]
    s.confirm(ack)
    s.frames()
    s.batch(5, size, redelivery_count=1) if size > 1 else s.message(5, redelivery_count=1)
    assert s.receive() is None
    s.pass_time(2_000_000_000)
    [asked] = [command for name, command in s.frames() if name == "REDELIVER_UNACKNOWLEDGED_MESSAGES"]
    assert [each.entryId for each in asked.message_ids] == [5]


def test_all_chunks_of_a_message_are_asked_for_when_some_came_before_the_timeout_of_the_client() -> None:
    """TXN-01: the other chunk was received without the first, which came behind it. The message was never
    complete, and its chunks were acknowledged in the end."""
    s = Scene(timeout=2.0)
    header: dict[str, Any] = {"uuid": "u", "num_chunks_from_msg": 2, "total_chunk_msg_size": 4}

    def deliver(chunk: int, redelivery_count: int = 0) -> None:
        s.deliver(chunk, entry_bytes(b"ab", chunk_id=chunk, **header), redelivery_count=redelivery_count)

    deliver(0)
    deliver(1)
    s.ack(s.receive())
    s.joined()
    request = s.client.flush_transaction(s.now, s.id)
    s.pump()
    s.confirm(s.ack_in_transaction())
    assert s.outcome(request) is None
    deliver(0, 1)
    s.pass_time(2_000_000_000)
    asked = asked_again(s)
    assert asked == [(1, 0), (1, 1)]
    deliver(1, 1)
    assert s.receive() is None
    deliver(0, 2)
    deliver(1, 2)
    assert s.receive().data == b"abab"


def test_a_transaction_that_times_out_before_its_acknowledgements_were_sent() -> None:
    s = Scene(timeout=2.0)
    s.message(0)
    s.ack(s.receive())
    s.joined()
    s.pass_time(2_000_000_000)
    assert asked_again(s) == [(1, 0)]


def test_acknowledgements_that_wait_are_not_sent_after_the_abort_is_asked_for() -> None:
    """TXN-06: a Pulsar broker would keep them for a transaction that never ends, and deliver the message to
    no consumer."""
    s = Scene(timeout=2.0, exactly_once=True)
    s.message(0)
    s.ack(s.receive())
    s.joined()
    s.close_by_broker()
    s.client.flush_transaction(s.now, s.id)
    s.pass_time(2_000_000_000)
    frames = s.frames()
    assert "END_TXN" in [name for name, _ in frames]
    [(_, subscribe)] = [each for each in frames if each[0] == "SUBSCRIBE"]
    s.reply("SUCCESS", proto.CommandSuccess(request_id=subscribe.request_id))
    assert [name for name, _ in s.frames() if name == "ACK"] == []


# --- batches of which open transactions acknowledge some messages -------------------------------------


class Index(ConsumerScript):
    """A consumer whose broker knows of transactions of other consumers, too."""

    def __init__(self, kind: SubscriptionType = SHARED) -> None:
        super().__init__(transactions=True, subscription_type=kind, batch_index_acknowledgement=True)
        self.accept()

    def acks(self) -> list[tuple[int, int, int | None]]:
        self.flush()
        return [each for name, ack in self.frames() if name == "ACK" for each in ack.message_ids]


def test_messages_that_the_broker_left_out_come_back_after_an_abort() -> None:
    """TXN-01: an open transaction acknowledges the first message, and is aborted."""
    s = Index()
    s.batch(0, 3)
    assert len(s.take()) == 3
    s.batch(0, 3, ack_set=0b110, redelivery_count=1)
    assert [each.data for each in s.take()] == [b"0.1", b"0.2"]
    s.batch(0, 3, redelivery_count=2)
    assert [each.data for each in s.take()] == [b"0.0", b"0.1", b"0.2"]


def test_messages_that_the_broker_left_out_first_come_back_after_an_abort() -> None:
    s = Index()
    s.batch(0, 3, ack_set=0b110)
    assert len(s.take()) == 2
    s.batch(0, 3, redelivery_count=1)
    messages = s.take()
    assert [each.data for each in messages] == [b"0.0", b"0.1", b"0.2"]
    s.acknowledge(messages)
    assert s.acks() == [(1, 0, None)]


def test_an_acknowledgement_does_not_name_messages_that_the_broker_left_out() -> None:
    """TXN-01, CONS-32: an open transaction may have them, and be aborted."""
    s = Index()
    s.batch(0, 3, ack_set=0b110)
    one, two = s.take()
    s.acknowledge(one)
    assert s.acks() == [(1, 0, 0b101)]
    s.acknowledge(two)
    assert s.acks() == [(1, 0, 0b001)]
    s.batch(0, 3, ack_set=0b111, redelivery_count=1)
    [zero] = s.take()
    assert zero.data == b"0.0", "the acknowledgements of the others are under way"
    s.acknowledge(zero)
    assert s.acks() == [(1, 0, None)]


def test_the_whole_batch_may_be_left_out() -> None:
    s = Index()
    s.batch(0, 2, ack_set=0)
    assert s.take() == []
    assert s.acks() == []
    s.batch(0, 2, redelivery_count=1)
    assert len(s.take()) == 2


def test_a_lost_acknowledgement_of_a_batch_in_part_is_sent_again() -> None:
    s = Index()
    s.batch(0, 2, ack_set=0b10)
    s.acknowledge(s.take())
    assert s.acks() == [(1, 0, 0b01)]
    s.reconnect()
    assert s.acks() == [(1, 0, 0b01)]
    s.batch(0, 2, ack_set=0b10, redelivery_count=1)
    assert s.take() == []


def test_a_cumulative_acknowledgement_keeps_what_the_broker_left_out_behind_it() -> None:
    s = Index(EXCLUSIVE)
    s.batch(0, 5, ack_set=0b10110)
    messages = s.take()
    s.acknowledge_cumulative(messages[0])
    assert s.acks() == [(1, 0, 0b11100)]
    s.acknowledge_cumulative(messages[2])
    assert s.acks() == [(1, 0, None)]


def test_a_cumulative_acknowledgement_up_to_messages_that_the_broker_left_out() -> None:
    s = Index(EXCLUSIVE)
    s.batch(0, 5, ack_set=0b00110)
    messages = s.take()
    s.acknowledge_cumulative(messages[1])
    assert s.acks() == [(1, 0, 0b11000)]


@pytest.mark.parametrize("refused", [False, True], ids=["not sent", "refused"])
def test_an_aborted_acknowledgement_that_no_broker_has_taken(refused: bool) -> None:
    """TXN-01: the broker does not know of it, so the consumer asks for the messages."""
    s = Scene()
    s.message(0)
    s.batch(1, 2)
    messages = s.take()
    s.ack([messages[0], messages[1]])
    s.acknowledge(messages[2])
    if refused:
        s.joined()
        s.end("abort")
        s.confirm(s.ack_in_transaction(), ServerError.TransactionConflict)
        s.ended()
    else:
        s.frames()
        s.pass_time(60_000_000_000)
    [asked] = [command for name, command in s.frames() if name == "REDELIVER_UNACKNOWLEDGED_MESSAGES"]
    assert [(each.ledgerId, each.entryId) for each in asked.message_ids] == [(1, 0), (1, 1)]


def test_an_aborted_acknowledgement_is_not_asked_for_where_the_broker_delivers_everything() -> None:
    s = Scene()
    s.message(0)
    s.ack(s.receive())
    s.joined()
    s.close_by_broker()
    s.pass_time(60_000_000_000)
    assert "REDELIVER_UNACKNOWLEDGED_MESSAGES" not in [name for name, _ in s.frames()]


# --- interceptors -------------------------------------------------------------------------------------


class Notes(ConsumerInterceptor):
    def __init__(self) -> None:
        self.notes: list[Any] = []

    def on_acknowledge(self, topic: TopicName, message_id: MessageId, error: PulsarError | None) -> None:
        self.notes.append(("one", message_id[1], message_id.batch_index, type(error)))

    def on_acknowledge_cumulative(
        self, topic: TopicName, message_id: MessageId, error: PulsarError | None
    ) -> None:
        self.notes.append(("cumulative", message_id[1], message_id.batch_index, type(error)))


def test_interceptors_hear_of_acknowledgements_in_transactions() -> None:
    """INTC-04: at once, as in the Java client."""
    notes = Notes()
    s = Scene(EXCLUSIVE, interceptors=(notes,))
    s.message(0)
    s.batch(1, 2)
    messages = s.take()
    s.ack(messages[0])
    s.ack([messages[1], messages[2].message_id])
    s.client.acknowledge_cumulative(s.now, s.consumer, messages[1], s.id)
    assert notes.notes == [
        ("one", 0, -1, type(None)),
        ("one", 1, 0, type(None)),
        ("one", 1, 1, type(None)),
        ("cumulative", 1, 0, type(None)),
    ]


def test_interceptors_hear_of_refused_acknowledgements_in_transactions() -> None:
    """INTC-03"""
    notes = Notes()
    s = Scene(interceptors=(notes,))
    s.message(0)
    message = s.receive()
    with pytest.raises(LocalProtocolError):
        s.client.acknowledge_cumulative(s.now, s.consumer, message, s.id)
    with pytest.raises(LocalProtocolError):
        s.client.acknowledge(s.now, s.consumer, MessageId(1, 1, 7), s.id)
    assert notes.notes == [
        ("cumulative", 0, -1, LocalProtocolError),
        ("one", 1, -1, LocalProtocolError),
    ]


def test_a_flush_sends_acknowledgements_and_waits_for_them() -> None:
    s = Scene()
    s.message(0)
    s.ack(s.receive())
    s.joined()
    request = s.client.flush_transaction(s.now, s.id)
    s.pump()
    [ack] = s.expect("ACK")
    assert request not in {output.request for output in s.outputs() if isinstance(output, RequestDone)}
    s.confirm(ack)
    assert s.outcome(request) is None
    s.end()
    s.ended()


def test_a_flush_tells_of_a_conflict() -> None:
    """The broker redelivers nothing of a refused ACK by itself, so the consumer asks for its entries."""
    s = Scene()
    for entry in range(3):
        s.message(entry)
    s.ack(s.take()[:2])
    s.joined()
    request = s.client.flush_transaction(s.now, s.id)
    s.pump()
    [ack] = s.expect("ACK")
    s.confirm(ack, ServerError.TransactionConflict)
    assert isinstance(s.outcome(request), TransactionConflict)
    s.expect()
    s.end("abort")
    s.ended()
    [asked] = s.expect("REDELIVER_UNACKNOWLEDGED_MESSAGES")
    assert [each.entryId for each in asked.message_ids] == [0, 1]


def test_an_inactive_consumer_drops_its_queue_after_an_abort() -> None:
    """Messages that precede those of the queue go to the active consumer, so later ones must not be handled
    here before them."""
    s = Scene(SubscriptionType.FAILOVER)
    for entry in range(3):
        s.message(entry)
    s.client.acknowledge_cumulative(s.now, s.consumer, s.receive(), s.id)
    s.joined()
    s.say("ACTIVE_CONSUMER_CHANGE", proto.CommandActiveConsumerChange(consumer_id=0, is_active=False))
    s.end("abort")
    [ack] = s.expect("ACK")
    s.confirm(ack)
    s.ended()
    assert "REDELIVER_UNACKNOWLEDGED_MESSAGES" not in dict(s.frames())
    assert s.receive() is None


def test_a_copied_message_completes_its_batch_in_a_transaction() -> None:
    """DLQ-01: a broker that keeps no part of a batch hears of all its messages together."""
    s = Scene()
    s.batch(0, 2)
    first, second = s.take()
    s.acknowledge(first)
    s.flush()
    s.expect()
    s.ack(second)
    s.joined()
    s.end()
    [ack] = s.expect("ACK")
    assert ack.message_ids == [(1, 0, None)]


def test_each_entry_has_an_acknowledgement_of_its_own() -> None:
    """TXN-05"""
    s = Scene(exactly_once=True)
    s.message(0)
    s.batch(1, 2)
    s.ack(s.take())
    s.joined()
    request = s.client.flush_transaction(s.now, s.id)
    s.pump()
    first, second = s.expect("ACK", "ACK")
    assert (first.message_ids, second.message_ids) == ([(1, 0, None)], [(1, 1, None)])
    s.confirm(first, ServerError.TransactionConflict)
    s.confirm(second)
    assert isinstance(s.outcome(request), TransactionConflict)
    s.end("abort")
    s.ended()
    [asked] = s.expect("REDELIVER_UNACKNOWLEDGED_MESSAGES")
    assert [each.entryId for each in asked.message_ids] == [0], "the broker redelivers the other by itself"


def test_copies_of_committed_messages_are_dropped() -> None:
    """TXN-01: a lost connection may have brought them again."""
    s = Scene()
    s.message(0)
    s.batch(1, 3)
    messages = s.take()
    s.ack(messages[:3])
    s.joined()
    request = s.end()
    [ack] = s.expect("ACK")
    s.message(0)
    s.batch(1, 3)
    s.message(2)
    s.confirm(ack)
    s.ended()
    assert s.outcome(request) is None
    assert [(each.message_id[1], each.batch_index) for each in s.take()] == [(1, 2), (2, -1)]
    assert s.client.arrival_counters(s.consumer).duplicates == 3


def test_a_batch_that_several_transactions_acknowledge() -> None:
    """TXN-01: the second one does not name what the first has committed, which the broker would refuse."""
    s = Scene()
    s.batch(0, 3)
    zero, one, two = s.take()
    s.acknowledge(zero)
    s.ack(one)
    s.joined()
    s.end()
    [ack] = s.expect("ACK")
    assert ack.message_ids == [(1, 0, 0b100)]
    s.confirm(ack)
    s.ended()
    request = s.client.begin_transaction(s.now)
    s.pump()
    [asked] = s.expect("NEW_TXN")
    answer = proto.CommandNewTxnResponse(request_id=asked.request_id, txnid_least_bits=7, txnid_most_bits=0)
    s.say("NEW_TXN_RESPONSE", answer)
    assert RequestDone(request, TransactionId(0, 7)) in s.outputs()
    s.ack(two)
    s.joined()
    s.end()
    [ack] = s.expect("ACK")
    assert ack.message_ids == [(1, 0, 0b011)]


def test_the_last_message_of_a_batch_whose_others_a_transaction_has_committed() -> None:
    """TXN-01, ACK-04: its acknowledgement completes the batch, which was delivered again before."""
    s = Scene()
    s.batch(0, 2)
    s.take()
    s.batch(0, 2, redelivery_count=1)
    zero, one = s.take()
    s.ack(zero)
    s.joined()
    s.end()
    s.confirm(s.ack_in_transaction())
    s.ended()
    s.acknowledge(one)
    s.flush()
    assert [each.message_ids for each in s.expect("ACK")] == [[(1, 0, None)]]


def test_a_message_that_was_dropped_before_the_abort_is_asked_for() -> None:
    """TXN-01: the coordinator aborts before the client knows, and the broker delivers the batch again."""
    s = Scene(timeout=2.0)
    s.batch(0, 2)
    _, one = s.take()
    s.ack(one)
    s.joined()
    s.batch(0, 2, redelivery_count=1)
    [zero] = s.take()
    s.pass_time(2_000_000_000)
    s.expect()
    request = s.client.begin_transaction(s.now)
    s.pump()
    [asked] = s.expect("NEW_TXN")
    answer = proto.CommandNewTxnResponse(request_id=asked.request_id, txnid_least_bits=7, txnid_most_bits=0)
    s.say("NEW_TXN_RESPONSE", answer)
    assert RequestDone(request, TransactionId(0, 7)) in s.outputs()
    s.ack(zero)
    s.joined()
    s.end()
    s.confirm(s.ack_in_transaction())
    s.ended()
    assert asked_again(s) == [(1, 0)]
