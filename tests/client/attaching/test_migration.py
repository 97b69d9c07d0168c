"""A topic moves to another cluster: after TOPIC_MIGRATED, the client sends pending messages there."""

from collections.abc import Callable
from typing import Any

import pytest

from pulsar_sansio.client.outputs import (
    Attached,
    Connect,
    Detached,
    ProducerReady,
    Receipts,
    RequestDone,
)
from pulsar_sansio.model.config import ConsumerSpec, ProducerSpec, ReaderSpec, SubscriptionType
from pulsar_sansio.model.message_id import MessageId
from pulsar_sansio.wire import MessageCommand, encode_command, proto
from tests.client.broker_script import batch_bytes, entry_bytes
from tests.client.script import (
    WALL,
    Command,
    Script,
    frame_close_producer,
    frame_connected,
    frame_producer_success,
    frame_receipt,
    frame_success,
)

GREEN = "pulsar://green:6650"
GREEN_TLS = "pulsar+ssl://green:6651"
SPEC = ProducerSpec(topic="demo")
Migrated = proto.CommandTopicMigrated


def frame_migrated(
    resource_id: int = 0,
    kind: Any = Migrated.Producer,
    url: str | None = GREEN,
    tls: str | None = GREEN_TLS,
) -> bytes:
    moved = Migrated(
        resource_id=resource_id, resource_type=kind, brokerServiceUrl=url, brokerServiceUrlTls=tls
    )
    return encode_command(Command.TOPIC_MIGRATED, moved)


def frame_close_consumer(consumer_id: int = 0) -> bytes:
    close = proto.CommandCloseConsumer(consumer_id=consumer_id, request_id=2**64 - 1)
    return encode_command(Command.CLOSE_CONSUMER, close)


def send(script: Script, handle: int, payload: bytes) -> int:
    return script.client.send(script.now, handle, payload, WALL)


def test_a_producer_goes_to_the_new_cluster_with_what_is_pending() -> None:
    script = Script()
    handle, link = script.ready_producer(batching=None)
    ticket = send(script, handle, b"pending")
    sequence_id = script.sent(link, Command.SEND).sequence_id
    script.feed(link, frame_migrated(), frame_close_producer())
    assert script.expect_one(Detached).id == handle
    send(script, handle, b"while away")
    script.advance(0.2)
    green = script.ready_link("green")
    script.find_topic(green, GREEN)
    asked = script.sent(green, Command.PRODUCER)
    script.feed(green, frame_producer_success(asked.request_id))
    script.expect_one(Attached)
    sent = [command.sequence_id for kind, command in script.commands(green) if kind == Command.SEND]
    assert sent == [sequence_id, sequence_id + 1]
    script.feed(green, frame_receipt(sequence_id))
    assert script.expect_one(Receipts).first == ticket
    assert script.commands(link) == []


def test_it_stays_there_when_the_connection_is_lost() -> None:
    script = Script()
    _, link = script.ready_producer()
    script.feed(link, frame_migrated(), frame_close_producer())
    script.said()
    script.advance(0.2)
    green = script.ready_link("green")
    script.find_topic(green, GREEN)
    asked = script.sent(green, Command.PRODUCER)
    script.feed(green, frame_producer_success(asked.request_id))
    script.said()
    script.lose(green)
    script.expect_one(Detached)
    script.advance(0.2)
    assert script.expect_one(Connect).address.host == "green"


def test_while_it_opens() -> None:
    """TOPIC_MIGRATED comes in place of an answer to PRODUCER."""
    script = Script()
    script.client.open_producer(script.now, SPEC)
    link = script.ready_link()
    script.check_partitions(link)
    script.find_topic(link)
    script.sent(link, Command.PRODUCER)
    script.feed(link, frame_migrated(), frame_close_producer())
    script.advance(0.2)
    green = script.ready_link("green")
    script.find_topic(green, GREEN)
    asked = script.sent(green, Command.PRODUCER)
    script.feed(green, frame_producer_success(asked.request_id))
    script.expect_one(ProducerReady)


def test_a_broker_of_the_old_cluster_is_not_gone_to() -> None:
    """GAP-37, INV-N13: the topic changed its broker there at the same time."""
    script = Script()
    _, link = script.ready_producer()
    script.feed(link, frame_migrated(), frame_close_producer(url="pulsar://broker-2:6650"))
    script.expect_one(Detached)
    script.advance(0.2)
    assert script.expect_one(Connect).address.host == "green"


def test_others_on_the_same_topic_stay() -> None:
    """A producer without TOPIC_MIGRATED asks the old cluster, even while another one asks the new cluster."""
    script = Script()
    _, link = script.ready_producer()
    script.ready_producer(link=link, name="p-2")
    script.feed(link, frame_migrated(0), frame_close_producer(0), frame_close_producer(1))
    script.said()
    script.advance(0.3)
    assert script.expect_one(Connect).address.host == "green"
    script.sent(link, Command.LOOKUP)


@pytest.mark.parametrize("url", [None, "", "gopher://x", GREEN_TLS], ids=["none", "empty", "no", "tls"])
def test_a_url_of_no_use_is_ignored(url: str | None) -> None:
    script = Script()
    _, link = script.ready_producer()
    script.feed(link, frame_migrated(url=url), frame_close_producer())
    script.expect_one(Detached)
    script.advance(0.2)
    script.sent(link, Command.LOOKUP)


def test_a_cluster_that_the_client_may_not_go_to_is_not_gone_to() -> None:
    script = Script(broker_hosts=("broker",))
    _, link = script.ready_producer()
    script.feed(link, frame_migrated(), frame_close_producer())
    script.expect_one(Detached)
    script.advance(0.2)
    script.sent(link, Command.LOOKUP)


def test_about_an_unknown_handle_it_is_ignored() -> None:
    script = Script()
    handle, link = script.ready_producer(batching=None)
    script.feed(link, frame_migrated(77), frame_migrated(77, Migrated.Consumer))
    send(script, handle, b"x")
    script.sent(link, Command.SEND)


def subscribed(script: Script, **options: Any) -> tuple[int, int, Any]:
    options = {"subscription_type": SubscriptionType.EXCLUSIVE, **options}
    spec = ConsumerSpec(topic="demo", subscription="sub", **options)
    handle = script.client.subscribe(script.now, spec)
    link = script.ready_link()
    script.check_partitions(link)
    script.find_topic(link)
    asked = script.sent(link, Command.SUBSCRIBE)
    script.feed(link, frame_success(asked.request_id))
    script.said()
    script.commands(link)
    return handle, link, asked


@pytest.mark.parametrize("receipts", [False, True])
@pytest.mark.parametrize("cumulative", [False, True])
def test_what_was_acknowledged_here_is_not_acknowledged_there(receipts: bool, cumulative: bool) -> None:
    """An equal position in another cluster is another message. The old broker disconnects a consumer once
    everything is acknowledged, so dropping pending acknowledgements loses nothing; waiting requests are
    answered."""
    script = Script()
    handle, link, asked = subscribed(script, acknowledgement_receipts=receipts)
    entry = entry_bytes(b"x")
    script.feed(link, MessageCommand(asked.consumer_id, 7, 0, payload=entry).encode())
    [message] = script.client.take(script.now, handle, 1)
    acknowledge = script.client.acknowledge_cumulative if cumulative else script.client.acknowledge
    acknowledge(script.now, handle, message)
    flush = script.client.flush_acknowledgements(script.now, handle) if receipts else None
    script.feed(
        link, frame_migrated(asked.consumer_id, Migrated.Consumer), frame_close_consumer(asked.consumer_id)
    )
    script.said()
    script.advance(0.2)
    green = script.ready_link("green")
    script.find_topic(green, GREEN)
    script.feed(green, frame_success(script.sent(green, Command.SUBSCRIBE).request_id))
    assert [kind for kind, _ in script.commands(green)] == [Command.FLOW]
    done = [output.request for output in script.said() if isinstance(output, RequestDone)]
    assert done == ([] if flush is None else [flush])
    script.feed(green, MessageCommand(asked.consumer_id, 7, 0, payload=entry).encode())
    [there] = script.client.take(script.now, handle, 1)
    assert there.message_id == message.message_id
    acknowledge(script.now, handle, there)
    script.advance(0.2)
    assert [kind for kind, _ in script.commands(green)] == [Command.ACK]


@pytest.mark.parametrize(
    "judge",
    [
        lambda client, now, handle, old: [client.acknowledge(now, handle, each) for each in old],
        lambda client, now, handle, old: client.acknowledge(now, handle, list(old)),
        lambda client, now, handle, old: client.acknowledge(now, handle, old),
        lambda client, now, handle, old: client.acknowledge_cumulative(now, handle, old[0]),
        lambda client, now, handle, old: client.acknowledge_cumulative(now, handle, old[1]),
        lambda client, now, handle, old: client.negative_acknowledge(now, handle, old),
    ],
    ids=["each", "several", "together", "cumulatively", "in a batch", "negatively"],
)
def test_what_was_delivered_here_is_not_acknowledged_there(judge: Callable[..., object]) -> None:
    """INV-N13: an equal position in the new cluster is another message than the one received from the old."""
    script = Script()
    handle, link, asked = subscribed(script, negative_acknowledgement_delay=1.0)
    stored = [entry_bytes(b"x"), batch_bytes([b"y", b"z"])]
    for entry, payload in enumerate(stored):
        script.feed(link, MessageCommand(asked.consumer_id, 7, entry, payload=payload).encode())
    moved = frame_migrated(asked.consumer_id, Migrated.Consumer)
    script.feed(link, moved, frame_close_consumer(asked.consumer_id))
    old = script.client.take(script.now, handle, 3)
    assert len(old) == 3
    script.said()
    script.advance(0.2)
    green = script.ready_link("green")
    script.find_topic(green, GREEN)
    script.feed(green, frame_success(script.sent(green, Command.SUBSCRIBE).request_id))
    script.sent(green, Command.FLOW)
    for entry, payload in enumerate(stored):
        script.feed(green, MessageCommand(asked.consumer_id, 7, entry, payload=payload).encode())
    new = script.client.take(script.now, handle, 3)
    judge(script.client, script.now, handle, old)
    script.advance(3.0)
    assert not {Command.ACK, Command.REDELIVER_UNACKNOWLEDGED_MESSAGES} & {
        kind for kind, _ in script.commands(green)
    }
    script.client.acknowledge(script.now, handle, new[0])
    script.advance(0.2)
    assert [place[:2] for place in script.sent(green, Command.ACK).message_ids] == [(7, 0)]


def test_the_chunks_of_a_message_here_are_not_acknowledged_there() -> None:
    """INV-N13: the new cluster has a single message at the position of an old last chunk."""
    script = Script()
    handle, link, asked = subscribed(script, acknowledgement_group_time=0.0)
    fields = {"uuid": "p-0", "num_chunks_from_msg": 2, "total_chunk_msg_size": 2}
    for number in range(2):
        stored = entry_bytes(b"x", chunk_id=number, **fields)
        script.feed(link, MessageCommand(asked.consumer_id, 7, number, payload=stored).encode())
    assert script.client.receive(script.now, handle) is not None
    moved = frame_migrated(asked.consumer_id, Migrated.Consumer)
    script.feed(link, moved, frame_close_consumer(asked.consumer_id))
    script.said()
    script.advance(0.2)
    green = script.ready_link("green")
    script.find_topic(green, GREEN)
    script.feed(green, frame_success(script.sent(green, Command.SUBSCRIBE).request_id))
    script.sent(green, Command.FLOW)
    script.feed(green, MessageCommand(asked.consumer_id, 7, 1, payload=entry_bytes(b"y")).encode())
    there = script.client.receive(script.now, handle)
    assert there is not None
    script.client.acknowledge(script.now, handle, there.message_id)
    assert script.sent(green, Command.ACK).message_ids == [(7, 1, None)]


def test_a_consumer_goes_too() -> None:
    script = Script()
    handle, link, asked = subscribed(script)
    moved = frame_migrated(asked.consumer_id, Migrated.Consumer)
    script.feed(link, moved, frame_close_consumer(asked.consumer_id))
    script.expect_one(Detached)
    script.advance(0.2)
    green = script.ready_link("green")
    script.find_topic(green, GREEN)
    again = script.sent(green, Command.SUBSCRIBE)
    assert (again.subscription, again.consumer_id) == ("sub", asked.consumer_id)
    script.feed(green, frame_success(again.request_id))
    script.sent(green, Command.FLOW)
    closing = script.client.close(script.now, handle)
    close = script.sent(green, Command.CLOSE_CONSUMER)
    script.feed(green, frame_success(close.request_id))
    assert closing in [output.request for output in script.said() if isinstance(output, RequestDone)]


def test_how_long_ago_a_reader_was_to_begin_means_nothing_there() -> None:
    """The reader begins with the first message of the new cluster, independent of its publish time."""
    script = Script()
    script.client.open_reader(script.now, ReaderSpec("demo", start_rollback=10.0))
    link = script.ready_link()
    script.check_partitions(link)
    script.find_topic(link)
    asked = script.sent(link, Command.SUBSCRIBE)
    assert asked.start_message_rollback_duration_sec == 10
    script.feed(link, frame_success(asked.request_id))
    moved = frame_migrated(asked.consumer_id, Migrated.Consumer)
    script.feed(link, moved, frame_close_consumer(asked.consumer_id))
    script.said()
    script.advance(0.2)
    green = script.ready_link("green")
    script.find_topic(green, GREEN)
    again = script.sent(green, Command.SUBSCRIBE)
    assert again.start_message_rollback_duration_sec == 0
    assert again.start_message_id.ledgerId == 2**64 - 1
    script.feed(green, frame_success(again.request_id))
    script.sent(green, Command.FLOW)


def test_a_reader_begins_anew_there() -> None:
    """Positions of the old cluster mean nothing in the new one."""
    script = Script()
    handle = script.client.open_reader(script.now, ReaderSpec("demo", MessageId(7, 3)))
    link = script.ready_link()
    script.check_partitions(link)
    script.find_topic(link)
    asked = script.sent(link, Command.SUBSCRIBE)
    assert asked.start_message_id.ledgerId == 7
    script.feed(link, frame_success(asked.request_id))
    script.sent(link, Command.FLOW)
    message = MessageCommand(asked.consumer_id, 9, 5, payload=entry_bytes(b"old"))
    script.feed(link, message.encode())
    assert script.client.receive(script.now, handle) is not None
    moved = frame_migrated(asked.consumer_id, Migrated.Consumer)
    script.feed(link, moved, frame_close_consumer(asked.consumer_id))
    script.advance(0.2)
    script.said()
    green = [connect.link for connect in script.history if isinstance(connect, Connect)][-1]
    script.open(green)
    script.sent(green, Command.CONNECT)
    script.feed(green, frame_connected())
    script.find_topic(green, GREEN)
    again = script.sent(green, Command.SUBSCRIBE)
    assert again.start_message_id.ledgerId == 2**64 - 1
    script.feed(green, frame_success(again.request_id))
    first = MessageCommand(asked.consumer_id, 7, 3, payload=entry_bytes(b"new"))
    script.feed(green, first.encode())
    received = script.client.receive(script.now, handle)
    assert received is not None
    assert received.data == b"new"
