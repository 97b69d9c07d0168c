"""All producers of a client share one memory limit."""

from functools import partial
from random import Random
from typing import Any

import pytest

from pulsar_sansio.client.memory import MemoryLimit
from pulsar_sansio.client.outputs import Closed, Receipts, SendFailed, Writable
from pulsar_sansio.client.producing.producer import Producer
from pulsar_sansio.model.config import BatchingPolicy, ClientConfig, OutgoingMessage, ProducerSpec
from pulsar_sansio.model.errors import (
    ClosedError,
    InvalidConfiguration,
    InvalidMessage,
    MemoryBufferIsFull,
    MessageTooLarge,
    ProducerQueueIsFull,
)
from pulsar_sansio.wire import encode_send_receipt, proto
from tests.client.partitions.partitioned_script import PartitionedScript
from tests.client.producing.sender import Sender
from tests.client.producing.test_key_batches import Refusing
from tests.client.script import (
    WALL,
    Command,
    Script,
    frame_producer_success,
    frame_receipt,
    frame_send_error,
)

BATCHING = BatchingPolicy(max_messages=1000, max_bytes=10_000, max_delay=0.01)


def sender(limit: int | None, **spec: Any) -> Sender:
    return Sender(Script(memory_limit=limit), ProducerSpec(**{"topic": "demo", "batching": None, **spec}))


def held(of: Sender) -> int:
    return of.script.client.memory_held


# --- one producer ------------------------------------------------------------------------------------


def test_the_default_is_that_of_the_java_client() -> None:
    assert ClientConfig("pulsar://broker").memory_limit == 64 * 1024 * 1024


@pytest.mark.parametrize("wrong", [0, -1, 1.5, True, "64M"])
def test_the_limit_is_a_number_of_bytes_or_none(wrong: Any) -> None:
    with pytest.raises(InvalidConfiguration, match="memory_limit"):
        ClientConfig("pulsar://broker", memory_limit=wrong)


@pytest.mark.parametrize("batching", [None, BATCHING, BatchingPolicy(max_delay=0.01, by_key=True)])
def test_payloads_count_until_their_tickets_are_settled(batching: BatchingPolicy | None) -> None:
    """Rule PROD-59."""
    one = sender(100, batching=batching)
    client, script = one.script.client, one.script
    for _ in range(10):
        one.send(OutgoingMessage(bytes(10), key="a key that does not count"))
    with pytest.raises(MemoryBufferIsFull, match=r"100 bytes are unconfirmed.*1 more.*memory_limit.*100"):
        one.send(b"1")
    assert one.send(b"") == 10
    assert held(one) == 100
    client.push(script.now, one.handle)
    sends = one.sent()
    script.feed(
        one.link, *(frame_receipt(send.sequence_id, 7, 0, send.highest_sequence_id) for send in sends)
    )
    said = script.said()
    assert said.count(Writable(one.handle)) == 1
    assert held(one) == 0
    assert isinstance(said[0], Receipts)  # the receipts come before `Writable`
    assert one.send(bytes(100)) == 11


def test_writable_comes_once_and_only_when_what_was_refused_fits() -> None:
    one = sender(100)
    for _ in range(2):
        one.send(bytes(40))
    for _ in range(2):
        with pytest.raises(MemoryBufferIsFull):
            one.send(bytes(70))
    one.script.feed(one.link, frame_receipt(0))
    assert Writable(one.handle) not in one.script.said()
    one.script.feed(one.link, frame_receipt(1))
    assert one.script.said().count(Writable(one.handle)) == 1
    one.send(bytes(70))


def test_a_message_larger_than_the_limit_is_taken_when_nothing_else_is_held() -> None:
    """Rule GAP-22."""
    one = sender(100)
    one.send(b"1")
    with pytest.raises(MemoryBufferIsFull):
        one.send(bytes(1000))
    one.script.feed(one.link, frame_receipt(0))
    assert Writable(one.handle) in one.script.said()
    one.send(bytes(1000))
    assert held(one) == 1000
    with pytest.raises(MemoryBufferIsFull):
        one.send(b"1")
    one.script.feed(one.link, frame_receipt(1))
    assert held(one) == 0


def test_without_a_limit_there_is_none() -> None:
    one = sender(None)
    for _ in range(30):
        one.send(bytes(5_000_000))
    assert held(one) == 150_000_000


def test_the_window_may_be_full_when_there_is_memory_again() -> None:
    """The producer emits one `Writable`, when both its window and the memory have room."""
    one = sender(100, max_pending_messages=2)
    one.send(bytes(60))
    with pytest.raises(MemoryBufferIsFull):
        one.send(bytes(60))
    one.send(bytes(30))
    with pytest.raises(ProducerQueueIsFull):
        one.send(bytes(60))
    one.script.feed(one.link, frame_receipt(0))
    assert one.script.said().count(Writable(one.handle)) == 1
    with pytest.raises(MemoryBufferIsFull):
        one.send(bytes(80))
    one.script.feed(one.link, frame_receipt(1))
    assert one.script.said().count(Writable(one.handle)) == 1


def test_send_many_takes_what_fits_and_goes_on_when_there_is_room() -> None:
    for batching in (None, BATCHING):
        one = sender(100, batching=batching)
        client, script = one.script.client, one.script
        for messages in ([bytes(30)] * 5, [OutgoingMessage(bytes(30))] * 5):
            taken = client.send_many(script.now, one.handle, messages, WALL)
            assert len(taken) == 3
            assert held(one) == 90
            assert not client.send_many(script.now, one.handle, messages, WALL)
            client.push(script.now, one.handle)
            sends = one.sent()
            highest = [send.highest_sequence_id for send in sends]
            frames = [frame_receipt(send.sequence_id, 7, 0, highest.pop(0)) for send in sends]
            script.feed(one.link, *frames)
            assert script.said().count(Writable(one.handle)) == 1
            assert held(one) == 0


def test_send_many_takes_one_that_is_larger_than_the_limit_by_itself() -> None:
    one = sender(100)
    client, script = one.script.client, one.script
    assert len(client.send_many(script.now, one.handle, [bytes(500), b"1"], WALL)) == 1
    assert len(client.send_many(script.now, one.handle, [b"1"], WALL)) == 0
    assert held(one) == 500


# --- everything that settles frees memory (BUG-084) ----------------------------------------------------


def test_what_is_refused_does_not_count() -> None:
    one = sender(10_000_000, batching=BATCHING)
    for wrong, error in (
        (bytes(6_000_000), MessageTooLarge),
        (OutgoingMessage(b"12345", key="\ud800"), InvalidMessage),
        (OutgoingMessage(b"12345", key="k" * 6_000_000), MessageTooLarge),
        ("text", InvalidMessage),
    ):
        with pytest.raises(error):
            one.send(wrong)
        with pytest.raises(error):
            one.script.client.send_many(one.script.now, one.handle, [wrong], WALL)  # type: ignore[list-item]
    assert held(one) == 0


def test_what_cannot_be_sealed_is_returned() -> None:
    """Compare a message by itself, one of `send_many`, an unsealed one and a whole batch."""
    limit = 5 * 1024 * 1024
    one = sender(limit * 4)
    huge = OutgoingMessage(bytes(limit - 10), key="k" * 200_000)
    with pytest.raises(MessageTooLarge):
        one.send(huge)
    assert held(one) == 0
    one.script.client.send_many(one.script.now, one.handle, [OutgoingMessage(b"ok"), huge], WALL)
    assert held(one) == 2

    script = Script(memory_limit=limit * 4)
    handle = script.client.open_producer(script.now, ProducerSpec(topic="demo", batching=None))
    script.client.send(script.now, handle, OutgoingMessage(bytes(3_000_000)), WALL)
    assert script.client.memory_held == 3_000_000
    link = script.ready_link(max_message_size=1_000_000)
    script.check_partitions(link)
    script.find_topic(link)
    asked = script.sent(link, Command.PRODUCER)
    script.feed(link, frame_producer_success(asked.request_id))
    assert any(isinstance(output, SendFailed) for output in script.said())
    assert script.client.memory_held == 0

    one = sender(100, batching=BATCHING)
    one.send(bytes(10))
    assert one.script.client.appender(one.handle)(bytes(20)) == 1
    producer = one.script.client._handles.producers[one.handle]
    assert isinstance(producer, Producer)
    entry_builder = producer.admission.entry_builder
    entry_builder.encoder = Refusing(entry_builder.encoder)  # type: ignore[assignment]
    with pytest.raises(MemoryBufferIsFull):
        one.send(bytes(90))
    one.script.client.push(one.script.now, one.handle)
    assert [type(output) for output in one.script.said()] == [SendFailed, Writable]
    assert held(one) == 0


@pytest.mark.parametrize("batching", [None, BATCHING, BatchingPolicy(max_delay=5.0, by_key=True)])
def test_a_timeout_and_a_close_release_memory(batching: BatchingPolicy | None) -> None:
    for close in (False, True):
        one = sender(100, batching=batching, send_timeout=1.0)
        one.send(b"12345")
        one.script.client.push(one.script.now, one.handle)
        one.send(b"1234567")
        assert held(one) == 12
        if close:
            one.script.client.close(one.script.now, one.handle)
            assert held(one) == (5 if batching else 12)  # the broker may confirm sent messages
            one.script.lose(one.link)
        else:
            one.script.advance(1.5)
        assert held(one) == 0


def test_a_reconnect_changes_nothing() -> None:
    one = sender(100)
    one.send(bytes(50))
    one.sent()
    one.reattach()
    assert held(one) == 50
    one.script.feed(one.link, frame_receipt(0))
    assert held(one) == 0


def test_one_message_that_the_broker_refuses_is_returned() -> None:
    one = sender(100)
    one.send(bytes(50))
    one.send(bytes(10))
    one.script.feed(one.link, frame_send_error(0, proto.NotAllowedError))
    assert held(one) == 10


def test_a_message_in_chunks_counts_once_until_its_last_receipt() -> None:
    one = sender(10_000, chunking=True, chunk_max_message_size=1000)
    one.send(bytes(3500))
    chunks = len(one.sent())
    assert chunks == 4
    for entry in range(chunks):
        assert held(one) == 3500
        one.script.feed(one.link, frame_receipt(0, 7, entry))
    assert held(one) == 0


# --- the open batch's short path ---------------------------------------------------------------------


def test_the_short_path_takes_no_more_than_there_is() -> None:
    one = sender(100, batching=BATCHING)
    append = one.script.client.appender(one.handle)
    one.send(bytes(10))
    taken = 0
    while append(bytes(10)) >= 0:
        taken += 1
    assert taken == 8  # `send` takes the message that fills the memory
    one.send(bytes(10))
    assert held(one) == 100
    with pytest.raises(MemoryBufferIsFull):
        one.send(b"1")


def test_looking_leaves_the_short_path_open() -> None:
    one = sender(1000, batching=BATCHING)
    append = one.script.client.appender(one.handle)
    one.send(bytes(10))
    assert append(bytes(5)) == 1
    assert held(one) == 15
    assert append(bytes(5)) == 2
    assert held(one) == 20


def test_what_is_lent_to_one_batch_is_called_back_for_another_producer() -> None:
    one = sender(1000, batching=BATCHING)
    script = one.script
    other = _second(script, one, batching=BATCHING)
    append = script.client.appender(one.handle)
    one.send(bytes(100))
    assert append(bytes(100)) >= 0
    script.client.send(script.now, other, bytes(800), WALL)
    assert held(one) == 1000
    assert append(b"1") == -1
    with pytest.raises(MemoryBufferIsFull):
        one.send(b"1")


def _second(script: Script, first: Sender, **spec: Any) -> int:
    handle, _ = script.ready_producer(
        ProducerSpec(**{"topic": "other", "batching": None, **spec}), link=first.link, name="p-2"
    )
    return handle


# --- several producers -------------------------------------------------------------------------------


def test_producers_are_told_in_the_order_in_which_they_were_refused() -> None:
    one = sender(100)
    script, client = one.script, one.script.client
    two, three = _second(script, one), _second(script, one)
    one.send(bytes(100))
    for handle in (three, two):
        with pytest.raises(MemoryBufferIsFull):
            client.send(script.now, handle, bytes(60), WALL)
    with pytest.raises(MemoryBufferIsFull):
        one.send(b"1")
    script.feed(one.link, frame_receipt(0))
    written = [output.producer for output in script.said() if isinstance(output, Writable)]
    # No memory is held any more: all producers may try, the first one first.
    assert written == [three, two, one.handle]


def test_a_large_message_is_not_overtaken_for_ever_by_small_ones() -> None:
    one = sender(100)
    script, client = one.script, one.script.client
    large = _second(script, one)
    for _ in range(10):
        one.send(bytes(10))
    with pytest.raises(MemoryBufferIsFull):
        client.send(script.now, large, bytes(90), WALL)
    for number in range(9):
        script.feed(one.link, frame_receipt(number))
        told = [output.producer for output in script.said() if isinstance(output, Writable)]
        if number < 8:
            assert told == []
            with pytest.raises(MemoryBufferIsFull):
                one.send(b"1")
    assert told == [large]
    client.send(script.now, large, bytes(90), WALL)


def test_nothing_is_lent_while_a_producer_waits() -> None:
    """Otherwise the loan would count as used until the batch is closed."""
    one = sender(100)
    script, client = one.script, one.script.client
    slow = _second(script, one, batching=BatchingPolicy(max_delay=60.0))
    one.send(bytes(25))
    one.send(bytes(25))
    with pytest.raises(MemoryBufferIsFull):
        client.send(script.now, slow, bytes(70), WALL)
    client.send(script.now, slow, b"1", WALL)
    script.feed(one.link, frame_receipt(0), frame_receipt(1))
    assert Writable(slow) in script.said()


def test_a_producer_that_was_told_and_does_not_come_holds_up_no_other() -> None:
    """The task that waits was cancelled (BUG-084)."""
    one = sender(100)
    script, client = one.script, one.script.client
    gone = _second(script, one)
    one.send(bytes(100))
    with pytest.raises(MemoryBufferIsFull):
        client.send(script.now, gone, bytes(100), WALL)
    with pytest.raises(MemoryBufferIsFull):
        one.send(bytes(10))
    script.feed(one.link, frame_receipt(0))
    assert one.send(bytes(10)) == 1
    assert one.send(bytes(90)) == 2


def test_who_is_closed_while_it_waits_lets_the_next_one_go() -> None:
    one = sender(100)
    script, client = one.script, one.script.client
    first, second = _second(script, one), _second(script, one)
    one.send(bytes(50))
    one.send(bytes(50))
    for handle, size in ((first, 100), (second, 50)):
        with pytest.raises(MemoryBufferIsFull):
            client.send(script.now, handle, bytes(size), WALL)
    script.feed(one.link, frame_receipt(0))
    assert not [output for output in script.said() if isinstance(output, Writable)]
    client.close(script.now, first)
    assert Writable(second) in script.said()


@pytest.mark.parametrize("as_many", [False, True])
def test_a_partitioned_producer_waits_as_one(as_many: bool) -> None:
    world = PartitionedScript(3, script=Script(memory_limit=100))
    world.answer()
    handle, client = world.handle, world.script.client
    if as_many:
        assert len(world.send_many([OutgoingMessage(bytes(30))] * 6)) == 3
    else:
        for _ in range(3):
            world.send(bytes(30))
        with pytest.raises(MemoryBufferIsFull):
            world.send(bytes(30))
    assert client.memory_held == 90
    world.answer()
    world.confirm(1)
    assert world.told().count(Writable(handle)) == 1
    assert len(world.send_many([bytes(20)] * 4)) == 2
    for index in range(3):
        world.confirm(index)
    assert world.told().count(Writable(handle)) == 1
    client.close(world.script.now, handle)
    world.answer()
    assert client.memory_held == 0


def test_a_partitioned_producer_that_has_ended_leaves_the_line() -> None:
    """Others behind it would never be told of room."""
    world = PartitionedScript(2, script=Script(memory_limit=100))
    world.answer()
    script, client = world.script, world.script.client
    other = client.open_producer(script.now, ProducerSpec(topic="other", batching=None))
    client.send(script.now, other, bytes(50), WALL)
    assert len(world.send_many([OutgoingMessage(bytes(80))])) == 0
    assert client._services.memory._line
    for index in range(2):
        world.terminate(index)
    assert [output for output in world.told() if isinstance(output, Closed)]
    client.send(script.now, other, bytes(10), WALL)
    assert not client._services.memory._line


def test_a_partition_that_waited_for_memory_waits_for_its_window_later() -> None:
    world = PartitionedScript(
        3,
        script=Script(memory_limit=100),
        routing=lambda message, partitions: int((message.properties or {})["to"]),
        max_pending_messages=2,
    )
    world.answer()

    def send(partition: int, size: int) -> int:
        return world.send(OutgoingMessage(bytes(size), properties={"to": str(partition)}))

    send(0, 100)
    for partition in (1, 2):
        with pytest.raises(MemoryBufferIsFull):
            send(partition, 50)
    world.answer()
    world.confirm(0)
    assert world.told().count(Writable(world.handle)) == 1
    send(1, 10)
    send(1, 10)
    with pytest.raises(ProducerQueueIsFull):
        send(1, 10)
    world.answer()
    world.confirm(1, 1)
    assert world.told().count(Writable(world.handle)) == 1


def test_unsealed_messages_are_returned_at_the_end() -> None:
    script = Script(memory_limit=100)
    handle = script.client.open_producer(script.now, ProducerSpec(topic="demo"))
    script.client.send(script.now, handle, bytes(60), WALL)
    script.client.send(script.now, handle, OutgoingMessage(bytes(30)), WALL)
    assert script.client.memory_held == 90
    script.client.close(script.now, handle)
    assert script.client.memory_held == 0


def test_what_came_early_counts_once_when_the_topic_has_partitions() -> None:
    world = PartitionedScript(2, script=Script(memory_limit=100), routing=lambda message, partitions: 7)
    world.send(bytes(40))
    assert world.script.client.memory_held == 40
    world.answer()
    assert [type(output) for output in world.told() if isinstance(output, SendFailed)] == [SendFailed]
    assert world.script.client.memory_held == 0


@pytest.mark.parametrize("fails", [False, True])
def test_who_waited_for_memory_before_partitions_were_known_is_told_once(fails: bool) -> None:
    """The producer keeps its position in the line, and hears nothing before there is room."""
    world = PartitionedScript(
        2, script=Script(memory_limit=100), routing=lambda message, partitions: 7 if fails else 0
    )
    world.send(bytes(90))
    with pytest.raises(MemoryBufferIsFull):
        world.send(bytes(20))
    world.answer()
    if not fails:
        assert Writable(world.handle) not in world.told()
        world.confirm(0)
    assert world.told().count(Writable(world.handle)) == 1
    assert world.script.client.memory_held == 0


# --- at random ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(40))
def test_what_is_held_is_what_is_unsettled_whatever_happens(seed: int) -> None:
    """Recount after every step: an idle client holds nothing, and a refused producer hears of room
    (INV-P7)."""
    draw = Random(seed)
    limit = draw.choice([60, 300, 2000])
    script = Script(memory_limit=limit)
    policies = [None, BATCHING, BatchingPolicy(max_messages=5, max_delay=0.01, by_key=True)]
    policies.append(BatchingPolicy(max_messages=draw.choice([1, 3]), max_delay=0.01))
    first = Sender(script, ProducerSpec(topic="demo", batching=draw.choice(policies), send_timeout=3.0))
    handles = [first.handle, _second(script, first, batching=draw.choice(policies), send_timeout=3.0)]
    wire = dict(zip(handles, (0, 1), strict=True))
    sizes: dict[tuple[int, int], int] = {}
    waiting: set[int] = set()
    sends: list[Any] = []
    link = first.link
    client = script.client

    def look() -> None:
        for output in script.said():
            match output:
                case Receipts(handle, ticket, message_ids):
                    for number in range(len(message_ids)):
                        del sizes[handle, ticket + number]
                case SendFailed(handle, ticket, count):
                    for number in range(count):
                        del sizes[handle, ticket + number]
                case Writable(handle):
                    waiting.discard(handle)
        sends.extend(command for kind, command in script.commands(link) if kind == Command.SEND)
        assert client.memory_held == sum(sizes.values())
        assert client.memory_held <= max(limit, *sizes.values(), 0)

    for _ in range(200):
        handle = draw.choice(handles)
        size = draw.choice([0, 1, 10, 50, limit // 2, limit + 5])
        message: Any = bytes(size)
        if draw.random() < 0.4:
            message = OutgoingMessage(message, key=f"k{draw.randrange(3)}")
        try:
            match draw.randrange(8):
                case 0:
                    tickets = client.send_many(script.now, handle, [message] * 3, WALL)
                    sizes.update({(handle, ticket): size for ticket in tickets})
                    if len(tickets) < 3:
                        waiting.add(handle)
                case 1:
                    client.push(script.now, handle)
                case 2 if sends:
                    count = draw.randint(1, len(sends))
                    confirmed, sends = sends[:count], sends[count:]
                    script.feed(link, *map(_receipt, confirmed))
                case 3:
                    script.advance(draw.choice([0.001, 0.02]))
                case 4 if draw.random() < 0.05:
                    script.advance(4.0)
                    sends.clear()
                case 5:
                    ticket = client.appender(handle)(message)
                    if ticket >= 0:
                        sizes[handle, ticket] = size
                case _:
                    sizes[handle, client.send(script.now, handle, message, WALL)] = size
                    waiting.discard(handle)
        except ProducerQueueIsFull:
            waiting.add(handle)
        look()
    assert wire
    for handle in handles:
        client.push(script.now, handle)
    look()
    while sends:
        confirmed, sends = sends, []
        script.feed(link, *map(_receipt, confirmed))
        look()
    assert not sizes
    assert client.memory_held == 0
    assert not waiting


def _receipt(send: Any) -> bytes:
    return encode_send_receipt(send.producer_id, send.sequence_id, 7, 0, send.highest_sequence_id)


def test_a_closed_producer_leaves_nothing_behind() -> None:
    one = sender(100)
    one.send(bytes(100))
    with pytest.raises(MemoryBufferIsFull):
        one.send(b"1")
    one.script.client.close(one.script.now, one.handle)
    one.script.lose(one.link)
    assert held(one) == 0
    memory = one.script.client._services.memory
    assert (memory._line, memory._borrowers, memory.blocked) == ({}, {}, False)
    with pytest.raises(ClosedError):
        one.send(b"1")


def test_a_limit_by_itself_keeps_its_line() -> None:
    memory = MemoryLimit(10)
    told: list[int] = []
    tell = {each: partial(told.append, each) for each in (1, 2, 3)}
    assert memory.take(1, 10, tell[1])
    assert not memory.take(2, 4, tell[2])
    assert not memory.take(3, 4, tell[3])
    memory.release(4)
    assert told == [2]
    assert memory.take(3, 4, tell[3])  # 2 was told, does not come, and delays no other
    assert not memory.take(2, 4, tell[2])
    assert not memory.take(3, 1, tell[3])
    memory.release(3)
    assert told == [2]  # 2 has kept its position
    memory.release(2)
    assert told == [2, 2, 3]
    assert memory.take(2, 4, tell[2])
    assert memory.take(3, 1, tell[3])
    assert memory.free == 0
    assert not memory.blocked


def test_each_partition_without_room_is_told_of_it() -> None:
    """Only the partition that was refused last was told: `explain` said that the other one still waits."""
    memory = MemoryLimit(10)
    told: list[str] = []
    first, second = partial(told.append, "first"), partial(told.append, "second")
    assert memory.take(1, 10, first)
    assert not memory.take(2, 4, first)
    assert not memory.take(2, 4, second)
    assert not memory.take(2, 4, second)
    memory.release(10)
    assert told == ["first", "second"]
    memory.detach(2, first)
    assert memory._line == {}
