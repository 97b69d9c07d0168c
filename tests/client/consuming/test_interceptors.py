"""Interceptors of a consumer: what they see and when, and what their mistakes do."""

from collections.abc import Sequence
from typing import Any

import pytest

from pulsar_sansio.client.outputs import ConsumerInterceptorFailed
from pulsar_sansio.model.config import BatchReceivePolicy, SubscriptionType
from pulsar_sansio.model.errors import ClosedError, LocalProtocolError, PulsarError
from pulsar_sansio.model.interceptors import ConsumerInterceptor
from pulsar_sansio.model.message import Message
from pulsar_sansio.model.message_id import MessageId
from pulsar_sansio.model.topic_name import TopicName
from pulsar_sansio.wire import proto
from tests.client.broker_script import SECOND, ConsumerScript

SHARED = SubscriptionType.SHARED


class Notes(ConsumerInterceptor):
    """Writes down what it is told, into a list that others may share."""

    def __init__(self, name: str = "", notes: list[Any] | None = None) -> None:
        self.name = name
        self.notes: list[Any] = [] if notes is None else notes

    def before_consume(self, topic: TopicName, message: Message) -> Message:
        self.notes.append((self.name, "consume", message.data))
        return message

    def on_acknowledge(self, topic: TopicName, message_id: MessageId, error: PulsarError | None) -> None:
        self.notes.append((self.name, "ack", message_id[1], message_id.batch_index, type(error)))

    def on_acknowledge_cumulative(
        self, topic: TopicName, message_id: MessageId, error: PulsarError | None
    ) -> None:
        self.notes.append((self.name, "cumulative", message_id[1], type(error)))

    def on_negative_acknowledgements_send(self, topic: TopicName, message_ids: Sequence[MessageId]) -> None:
        self.notes.append((self.name, "negative", [each[1] for each in message_ids]))

    def on_acknowledgement_timeout_send(self, topic: TopicName, message_ids: Sequence[MessageId]) -> None:
        self.notes.append((self.name, "timeout", [each[1] for each in message_ids]))

    def close(self) -> None:
        self.notes.append((self.name, "close"))

    def take(self) -> list[Any]:
        notes = [note[1:] for note in self.notes]
        self.notes.clear()
        return notes


class Loud(ConsumerInterceptor):
    """Every method raises."""

    def __init__(self) -> None:
        self.error = ZeroDivisionError()

    def before_consume(self, topic: TopicName, message: Message) -> Message:
        raise self.error

    def on_acknowledge(self, topic: TopicName, message_id: MessageId, error: PulsarError | None) -> None:
        raise self.error

    def on_acknowledge_cumulative(
        self, topic: TopicName, message_id: MessageId, error: PulsarError | None
    ) -> None:
        raise self.error

    def on_negative_acknowledgements_send(self, topic: TopicName, message_ids: Sequence[MessageId]) -> None:
        raise self.error

    def on_acknowledgement_timeout_send(self, topic: TopicName, message_ids: Sequence[MessageId]) -> None:
        raise self.error

    def close(self) -> None:
        raise self.error


class Upper(ConsumerInterceptor):
    def before_consume(self, topic: TopicName, message: Message) -> Message:
        return Message.of(message.data.upper(), message.entry, message.batch_index)


def started(*interceptors: ConsumerInterceptor, **spec: Any) -> ConsumerScript:
    script = ConsumerScript(interceptors=interceptors, **spec)
    script.accept()
    script.frames()
    script.outputs()
    return script


def failures(s: ConsumerScript) -> list[Any]:
    return [output for output in s.outputs() if isinstance(output, ConsumerInterceptorFailed)]


def close(s: ConsumerScript) -> None:
    s.frames()
    s.close()
    command = s.frames()[-1][1]
    s.say("SUCCESS", proto.CommandSuccess(request_id=command.request_id))


@pytest.mark.parametrize("how", ["receive", "take", "receiver"])
def test_they_see_a_message_when_it_is_delivered_and_once(how: str) -> None:
    """Rules CONS-20 and INTC-02."""
    notes = Notes()
    s = started(notes, Upper())
    s.batch(0, 2)
    s.message(1, b"x")
    assert notes.take() == []
    if how == "receive":
        messages = [s.receive() for _ in range(3)]
        assert s.receive() is None
    elif how == "take":
        messages = list(s.take_together(2)) + s.take()
        assert s.take() == []
    else:
        queue = s.client.receiver(s.consumer)
        messages = [next(queue.ready, None) or queue.receive() for _ in range(3)]
    assert notes.take() == [("consume", b"0.0"), ("consume", b"0.1"), ("consume", b"x")]
    assert [message.data for message in messages] == [b"0.0", b"0.1", b"X"]


def test_what_is_taken_back_is_seen_again_when_it_is_delivered_again() -> None:
    notes = Notes()
    s = started(notes, subscription_type=SHARED)
    s.message(0)
    s.message(1)
    s.receive()
    s.redeliver()
    s.message(0)
    s.message(1)
    s.take()
    assert [note[1] for note in notes.take()] == [b"m"] * 3


def test_one_after_the_other() -> None:
    notes: list[Any] = []
    s = started(Notes("a", notes), Upper(), Notes("b", notes))
    s.message(0)
    s.receive()
    assert notes == [("a", "consume", b"m"), ("b", "consume", b"M")]


def test_they_hear_of_acknowledgements_before_they_are_sent() -> None:
    """Rule INTC-04."""
    notes = Notes()
    s = started(notes, acknowledgement_group_time=0.0)
    s.batch(0, 2)
    s.message(1)
    messages = s.take()
    notes.take()
    s.acknowledge(messages[0])
    assert notes.take() == [("ack", 0, 0, type(None))]  # INTC-04: at once, and nothing is sent
    assert s.frames() == []
    s.acknowledge([messages[1], messages[2].message_id])
    assert notes.take() == [("ack", 0, 1, type(None)), ("ack", 1, -1, type(None))]
    assert [name for name, _ in s.frames()] == ["ACK"]
    s.acknowledge_cumulative(messages[2])
    assert notes.take() == [("cumulative", 1, type(None))]


def test_they_hear_of_what_is_acknowledged_together() -> None:
    """Rule INTC-04."""
    notes = Notes()
    s = started(notes)
    s.batch(0, 3)
    s.acknowledge(s.take_together())
    assert [note[0] for note in notes.take()] == ["consume"] * 3 + ["ack"] * 3
    s.message(1)
    s.acknowledge(iter([s.receive()]))
    assert [note[0] for note in notes.take()] == ["consume", "ack"]


def test_they_hear_of_what_is_refused() -> None:
    """INTC-03."""
    notes = Notes()
    s = started(notes, subscription_type=SHARED)
    s.message(0)
    message = s.receive()
    notes.take()
    with pytest.raises(LocalProtocolError):
        s.acknowledge_cumulative(message)
    foreign = MessageId(1, 1, 7)
    with pytest.raises(LocalProtocolError):
        s.acknowledge([message, foreign])
    for nonsense in (7, "x", [7]):
        with pytest.raises(LocalProtocolError):
            s.acknowledge(nonsense)
    machine = s.client._handles.consumers[s.consumer]
    s.client.close(s.now, s.consumer)
    with pytest.raises(ClosedError):
        machine.acknowledge(message)
    assert notes.take() == [
        ("cumulative", 0, LocalProtocolError),
        ("ack", 0, -1, LocalProtocolError),
        ("ack", 1, -1, LocalProtocolError),
        ("ack", 0, -1, ClosedError),
    ]


@pytest.mark.parametrize("kind", [SHARED, SubscriptionType.EXCLUSIVE])
def test_they_hear_of_what_is_asked_for_again(kind: SubscriptionType) -> None:
    """Rule INTC-02."""
    notes = Notes()
    s = started(
        notes, subscription_type=kind, negative_acknowledgement_delay=1.0, acknowledgement_timeout=3.0
    )
    for entry in range(3):
        s.message(entry)
    messages = s.take()
    notes.take()
    s.negative_acknowledge(messages[:2])
    s.acknowledge(messages[0])
    notes.take()
    s.pass_time(SECOND // 2)
    assert notes.take() == []
    s.pass_time(SECOND)
    assert notes.take() == [("negative", [1])]
    if kind is SHARED:
        s.pass_time(5 * SECOND)
        assert notes.take() == [("timeout", [2])]


def test_what_they_raise_is_told_and_changes_nothing() -> None:
    loud, notes = Loud(), Notes()
    s = started(loud, notes, negative_acknowledgement_delay=0.0)
    for entry in range(3):
        s.message(entry)
    messages = [s.receive() for _ in range(3)]
    s.acknowledge(messages[0])
    s.acknowledge_cumulative(messages[1])
    s.negative_acknowledge(messages[2])
    close(s)
    assert [note[0] for note in notes.take()] == [*["consume"] * 3, "ack", "cumulative", "negative", "close"]
    told = failures(s)
    assert len(told) == 7
    assert all(
        (each.consumer, each.interceptor, each.error) == (s.consumer, loud, loud.error) for each in told
    )


def test_what_is_no_message_is_a_mistake() -> None:
    class Wrong(ConsumerInterceptor):
        def before_consume(self, topic: TopicName, message: Message) -> Message:
            return b"?"  # type: ignore[return-value]

    s = started(Wrong())
    s.message(0)
    assert s.receive().data == b"m"
    (failed,) = failures(s)
    assert isinstance(failed.error, TypeError)


def test_nothing_comes_after_the_end() -> None:
    notes = Notes()
    s = started(notes)
    close(s)
    assert notes.take() == [("close",)]


def test_a_consumer_with_everything() -> None:
    """Its queue is of all kinds."""
    notes = Notes()
    s = started(
        notes,
        subscription_type=SHARED,
        acknowledgement_timeout=1.0,
        auto_scaled_receiver_queue_size=True,
        batch_receive=BatchReceivePolicy(3, max_bytes=4),
    )
    s.batch(0, 3)
    s.client.batch_receive(s.now, s.consumer)
    assert [message.data for message in s.take()] == [b"0.0"]
    assert s.receive().data == b"0.1"
    s.pass_time(3 * SECOND)
    assert ("timeout", [0]) in notes.take()
    assert s.take() == []


@pytest.mark.parametrize("timeout", [0.0, 1.0])
def test_a_message_that_is_empty_is_a_mistake(timeout: float) -> None:
    class Empty(ConsumerInterceptor):
        def before_consume(self, topic: TopicName, message: Message) -> Message:
            return Message()

    s = started(Empty(), subscription_type=SHARED, acknowledgement_timeout=timeout)
    s.message(0)
    assert s.receive().data == b"m"
    (failed,) = failures(s)
    assert isinstance(failed.error, TypeError)
