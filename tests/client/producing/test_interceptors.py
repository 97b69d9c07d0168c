"""Interceptors of a producer."""

from typing import Any

import pytest

from pulsar_sansio.client.outputs import (
    Closed,
    InterceptorFailed,
    Output,
    Receipts,
    SendFailed,
    Writable,
)
from pulsar_sansio.model.config import BatchingPolicy, OutgoingMessage, ProducerSpec, RoutingMode
from pulsar_sansio.model.errors import (
    ClosedError,
    InvalidConfiguration,
    InvalidMessage,
    MemoryBufferIsFull,
    MessageTooLarge,
    ProducerQueueIsFull,
    PulsarError,
    TimedOut,
    TopicTerminated,
)
from pulsar_sansio.model.interceptors import ProducerInterceptor
from pulsar_sansio.model.message_id import MessageId
from pulsar_sansio.model.topic_name import TopicName
from pulsar_sansio.wire import unpack_payload
from tests.client.partitions.partitioned_script import PartitionedScript
from tests.client.producing.sender import Sender
from tests.client.producing.transactional_sender import Scene
from tests.client.script import WALL, Script, frame_receipt

Outcome = tuple[bytes | None, MessageId | None, type[PulsarError] | None]


class Book(ProducerInterceptor):
    """Records every call, and puts its name before the payload."""

    def __init__(self, name: str = "", notes: list[str] | None = None) -> None:
        self.name = name
        self.notes = [] if notes is None else notes
        self.before: list[bytes | None] = []
        self.outcomes: list[Outcome] = []
        self.topics: list[str] = []
        self.closed = 0

    def before_send(self, topic: TopicName, message: OutgoingMessage) -> OutgoingMessage:
        self.notes.append(f"{self.name} before")
        self.before.append(message.payload)
        self.topics.append(f"{topic.partition}")
        payload = self.name.encode() + (message.payload or b"")
        return OutgoingMessage(payload, key=message.key, transaction=message.transaction)

    def on_send_acknowledgement(
        self,
        topic: TopicName,
        message: OutgoingMessage,
        message_id: MessageId | None,
        error: PulsarError | None,
    ) -> None:
        self.notes.append(f"{self.name} after")
        self.outcomes.append((message.payload, message_id, None if error is None else type(error)))

    def close(self) -> None:
        self.closed += 1


def sender(*interceptors: ProducerInterceptor, script: Script | None = None, **spec: Any) -> Sender:
    return Sender(
        script, ProducerSpec(**{"topic": "demo", "batching": None, "interceptors": interceptors, **spec})
    )


def payloads(of: Sender) -> list[bytes]:
    return [bytes(unpack_payload(send.payload).payload) for send in of.sent()]


def test_each_may_replace_the_message_and_hears_what_became_of_it() -> None:
    """The interceptors are called in the given order, for messages and for outcomes."""
    notes: list[str] = []
    one, two = Book("1", notes), Book("2", notes)
    producer = sender(one, two)
    assert producer.send(b"m") == 0
    assert payloads(producer) == [b"21m"]
    assert two.before == [b"1m"]
    producer.script.feed(producer.link, frame_receipt(0, 7, 5))
    assert one.outcomes == two.outcomes == [(b"21m", MessageId(7, 5), None)]
    assert notes == ["1 before", "2 before", "1 after", "2 after"]


def test_it_hears_before_the_application_does() -> None:
    """PROD-29."""
    script = Script()
    said: list[list[Output]] = []

    class Looks(ProducerInterceptor):
        def on_send_acknowledgement(self, *_: object) -> None:
            said.append([each for each in script.client.outputs if isinstance(each, Receipts | SendFailed)])

    producer = sender(Looks(), script=script, send_timeout=1.0)
    producer.send(b"confirmed")
    producer.send(b"times out")
    script.feed(producer.link, frame_receipt(0))
    script.advance(2.0)
    assert [len(each) for each in said] == [0, 0]


@pytest.mark.parametrize(
    "batching",
    [None, BatchingPolicy(max_messages=3, max_delay=0.01), BatchingPolicy(max_messages=9, by_key=True)],
)
def test_every_message_has_one_outcome_whatever_it_is_sent_in(batching: BatchingPolicy | None) -> None:
    """Rule PROD-30."""
    book = Book()
    producer = sender(book, batching=batching)
    script, client = producer.script, producer.script.client
    for number in range(4):
        producer.send(OutgoingMessage(b"%d" % number, key=f"k{number % 2}"))
    client.send_many(script.now, producer.handle, [b"4", OutgoingMessage(b"5", key="k1")], WALL)
    client.push(script.now, producer.handle)
    sends = producer.sent()
    for entry, send in enumerate(sends):
        script.feed(producer.link, frame_receipt(send.sequence_id, 7, entry, send.highest_sequence_id))
    told = {
        (number, message_id)
        for output in script.said()
        if isinstance(output, Receipts)
        for number, message_id in enumerate(output.message_ids, output.first)
    }
    assert {(int(payload or b""), message_id) for payload, message_id, _ in book.outcomes} == told
    assert len(book.outcomes) == 6


def test_it_runs_before_every_check() -> None:
    """PROD-29: an interceptor may shrink an oversized message, or enlarge a fitting one."""

    class Cuts(Book):
        def before_send(self, topic: TopicName, message: OutgoingMessage) -> OutgoingMessage:
            super().before_send(topic, message)
            size = len(message.payload or b"")
            return OutgoingMessage(bytes(6_000_000 if size == 1 else 10))

    book = Cuts()
    producer = sender(book)
    assert producer.send(bytes(9_000_000)) == 0
    with pytest.raises(MessageTooLarge):
        producer.send(b"1")
    assert [(len(payload or b""), error) for payload, _, error in book.outcomes] == [
        (6_000_000, MessageTooLarge)
    ]
    client, script = producer.script.client, producer.script
    assert client.send_many(script.now, producer.handle, [b"22", b"1", b"33"], WALL) == range(1, 4)
    assert [output.first for output in script.said() if isinstance(output, SendFailed)] == [2]
    with pytest.raises(MessageTooLarge):
        client.send_many(script.now, producer.handle, [b"1", b"22"], WALL)
    assert len(book.outcomes) == 3
    assert client.memory_held == 30
    with pytest.raises(InvalidMessage, match="bytes or an OutgoingMessage"):
        producer.send("text")


@pytest.mark.parametrize("as_many", [False, True])
@pytest.mark.parametrize("limit", ["window", "memory"])
def test_waiting_for_room_does_not_call_it_twice(as_many: bool, limit: str) -> None:
    book = Book()
    memory = 4 if limit == "memory" else None
    producer = sender(book, script=Script(memory_limit=memory), max_pending_messages=2)
    client, script = producer.script.client, producer.script
    messages = [b"11", b"22", b"33"]
    if as_many:
        assert client.send_many(script.now, producer.handle, messages, WALL) == range(2)
    else:
        for message in messages[:2]:
            producer.send(message)
    for _ in range(2):
        with pytest.raises(ProducerQueueIsFull):
            producer.send(messages[2])
    script.feed(producer.link, frame_receipt(0))
    assert script.said().count(Writable(producer.handle)) == 1
    assert producer.send(messages[2]) == 2
    assert book.before == messages
    assert payloads(producer) == messages


def test_a_refused_payload_of_a_transaction_is_shown_once() -> None:
    """INTC-01: the message that is made of it is not the application's."""
    book = Book()
    scene = Scene(interceptors=(book,), max_pending_messages=1)
    client, payloads = scene.client, [b"1", b"2"]
    assert client.send_many(scene.now, scene.handle, payloads, WALL, scene.id) == range(1)
    assert client.send_many(scene.now, scene.handle, payloads[1:], WALL, scene.id) == range(1, 1)
    scene.drain()
    scene.joined()
    scene.confirm(0)
    assert client.send_many(scene.now, scene.handle, payloads[1:], WALL, scene.id) == range(1, 2)
    assert scene.entries() == [(0, b"1", 7), (1, b"2", 7)]
    assert book.before == payloads
    assert [payload for payload, _, _ in book.outcomes] == [b"1"]


def test_a_cancelled_wait_is_an_outcome_too() -> None:
    book = Book()
    producer = sender(book, max_pending_messages=1)
    producer.send(b"1")
    for refused in (b"2", b"3"):
        with pytest.raises(ProducerQueueIsFull):
            producer.send(refused)
    assert book.outcomes == [(b"2", None, ProducerQueueIsFull)]
    producer.script.client.close(producer.script.now, producer.handle)
    producer.script.lose(producer.link)
    assert len(book.outcomes) == 3
    assert {payload for payload, _, _ in book.outcomes} == {b"1", b"2", b"3"}


def test_a_message_made_larger_than_the_memory_that_is_left_waits() -> None:
    class Grows(ProducerInterceptor):
        def before_send(self, topic: TopicName, message: OutgoingMessage) -> OutgoingMessage:
            return OutgoingMessage(bytes(60))

    producer = sender(Grows(), script=Script(memory_limit=100))
    client, script = producer.script.client, producer.script
    assert len(client.send_many(script.now, producer.handle, [b"1", b"2"], WALL)) == 1
    with pytest.raises(MemoryBufferIsFull):
        producer.send(b"2")
    script.feed(producer.link, frame_receipt(0))
    assert Writable(producer.handle) in script.said()

    world = PartitionedScript(2, script=Script(memory_limit=100), interceptors=(Grows(),))
    world.answer()
    assert len(world.send_many([b"1", b"2", b"3"])) == 1
    world.answer()
    world.confirm(next(iter(world.sends)))
    assert Writable(world.handle) in world.told()


def test_what_it_raises_is_told_and_loses_nothing() -> None:
    class Breaks(Book):
        def before_send(self, topic: TopicName, message: OutgoingMessage) -> OutgoingMessage:
            raise ValueError("before")

        def on_send_acknowledgement(self, *_: object) -> None:
            raise ValueError("after")

        def close(self) -> None:
            raise ValueError("close")

    class GivesNothing(ProducerInterceptor):
        def before_send(self, topic: TopicName, message: OutgoingMessage) -> OutgoingMessage:
            return None  # type: ignore[return-value]

    breaks, nothing, book = Breaks(), GivesNothing(), Book("ok ")
    producer = sender(breaks, nothing, book)
    producer.send(b"m")
    assert payloads(producer) == [b"ok m"]
    producer.script.feed(producer.link, frame_receipt(0))
    producer.script.client.close(producer.script.now, producer.handle)
    producer.script.lose(producer.link)
    said = producer.script.said()
    failures = [output for output in said if isinstance(output, InterceptorFailed)]
    assert [(output.interceptor, type(output.error)) for output in failures] == [
        (breaks, ValueError),
        (nothing, TypeError),
        (breaks, ValueError),
        (breaks, ValueError),
    ]
    assert any(isinstance(output, Receipts) for output in said)
    assert any(isinstance(output, Closed) for output in said)
    assert book.closed == 1


def test_eligible_decides_for_both_times() -> None:
    class WithKey(Book):
        def eligible(self, topic: TopicName, message: OutgoingMessage) -> bool:
            return message.key is not None

    book = WithKey()
    producer = sender(book)
    producer.send(b"without")
    producer.send(OutgoingMessage(b"with", key="k"))
    producer.script.feed(producer.link, frame_receipt(0), frame_receipt(1))
    assert book.before == [b"with"]
    assert [payload for payload, _, _ in book.outcomes] == [b"with"]


def test_timeout_close_and_early_messages_are_outcomes() -> None:
    book = Book()
    producer = sender(book, send_timeout=1.0, batching=BatchingPolicy(max_delay=5.0))
    producer.send(b"times out")
    producer.script.client.push(producer.script.now, producer.handle)
    producer.script.advance(1.5)
    producer.send(b"closed")
    producer.script.client.close(producer.script.now, producer.handle)
    assert book.outcomes == [(b"times out", None, TimedOut), (b"closed", None, ClosedError)]

    book = Book()
    script = Script()
    handle = script.client.open_producer(
        script.now, ProducerSpec(topic="demo", batching=None, interceptors=(book,))
    )
    assert script.client.send(script.now, handle, b"early", WALL) == 0
    script.client.close(script.now, handle)
    assert book.outcomes == [(b"early", None, ClosedError)]
    assert book.closed == 1


# --- partitions --------------------------------------------------------------------------------------


def test_over_partitions_it_is_called_once_with_the_partition() -> None:
    book = Book()
    world = PartitionedScript(3, interceptors=(book,))
    world.answer()
    for number in range(3):
        world.send(b"%d" % number)
    world.send_many([b"3", OutgoingMessage(b"4", key="k")])
    world.answer()
    for index in range(3):
        world.confirm(index)
    ids: dict[int, MessageId] = {}
    for output in world.told():
        if isinstance(output, Receipts):
            ids.update(enumerate(output.message_ids, output.first))
    assert [int(topic) for topic in book.topics] == [ids[number].partition for number in range(5)]
    assert {(int(payload or b""), message_id) for payload, message_id, _ in book.outcomes} == set(ids.items())
    world.script.client.close(world.script.now, world.handle)
    world.answer()
    assert book.closed == 1


def test_what_came_before_the_partitions_were_known_is_shown_once() -> None:
    book = Book()
    world = PartitionedScript(2, interceptors=(book,), routing=RoutingMode.ROUND_ROBIN)
    for number in range(4):
        world.send(b"%d" % number)
    world.answer()
    assert book.topics == ["-1"] * 4
    for index in range(2):
        world.confirm(index)
    world.answer()
    assert sorted(payload or b"" for payload, _, _ in book.outcomes) == [b"0", b"1", b"2", b"3"]

    book = Book()
    world = PartitionedScript(2, interceptors=(book,), routing=lambda message, partitions: 7)
    world.send(b"nowhere")
    world.answer()
    assert book.outcomes == [(b"nowhere", None, InvalidMessage)]


def test_a_message_for_a_partition_that_has_ended_is_an_outcome() -> None:
    book = Book()
    world = PartitionedScript(2, interceptors=(book,), routing=lambda message, partitions: 0)
    world.answer()
    world.send(b"1")
    world.answer()
    world.terminate(0)
    world.answer()
    world.send(b"2")
    with pytest.raises(MessageTooLarge):
        world.send(bytes(6_000_000))
    assert [error for _, _, error in book.outcomes] == [TopicTerminated, TopicTerminated, MessageTooLarge]


def test_what_waited_for_room_in_a_partition_is_an_outcome_before_the_end() -> None:
    class Strict(Book):
        def on_send_acknowledgement(self, *news: Any) -> None:
            assert not self.closed
            super().on_send_acknowledgement(*news)

    book = Strict()
    world = PartitionedScript(
        2, interceptors=(book,), max_pending_messages=1, routing=lambda message, partitions: 1
    )
    world.answer()
    world.send(b"1")
    with pytest.raises(ProducerQueueIsFull):
        world.send(b"2")
    world.script.client.close(world.script.now, world.handle)
    told = world.told()
    assert Closed(world.handle, None) in told
    assert not [output for output in told if isinstance(output, InterceptorFailed)]
    assert {payload for payload, _, _ in book.outcomes} == {b"1", b"2"}
    assert book.closed == 1


@pytest.mark.parametrize("wrong", [[Book()], (Book,), ("no",), Book()])
def test_the_option_is_a_tuple_of_interceptors(wrong: Any) -> None:
    with pytest.raises(InvalidConfiguration, match="interceptors"):
        ProducerSpec(topic="demo", interceptors=wrong)
