"""Accepted and refused messages: limits, checks, and messages before the first attachment."""

from random import Random
from typing import Any

import pytest

from pulsar_sansio.client.outputs import (
    ProducerFailed,
    ProducerReady,
    Receipts,
    RequestFailed,
    SendFailed,
    Writable,
)
from pulsar_sansio.model.config import (
    BatchingPolicy,
    CompressionType,
    OutgoingMessage,
    ProducerSpec,
)
from pulsar_sansio.model.errors import (
    InvalidMessage,
    LocalProtocolError,
    MessageTooLarge,
    ProducerQueueIsFull,
)
from pulsar_sansio.wire import unpack_payload
from tests.client.producing.sender import UNBATCHED, Sender
from tests.client.script import (
    WALL,
    Command,
    Script,
    frame_producer_success,
    frame_receipt,
)

# --- the window (rules PROD-02, PROD-33) -------------------------------------------------------------


def test_a_full_window_refuses_and_says_when_there_is_room() -> None:
    """Rule ERR-07."""
    sender = Sender(max_pending_messages=2)
    sender.send()
    sender.send()
    with pytest.raises(ProducerQueueIsFull, match="2 messages"):
        sender.send()
    sender.script.feed(sender.link, frame_receipt(0))
    receipt, writable = sender.script.said()
    assert isinstance(receipt, Receipts)
    assert writable == Writable(sender.handle)
    sender.script.feed(sender.link, frame_receipt(1))
    assert [type(output) for output in sender.script.said()] == [Receipts]  # said once per edge
    assert sender.send() == 2


def test_send_many_takes_what_fits() -> None:
    sender = Sender(max_pending_messages=5)
    client, now = sender.script.client, sender.script.now
    assert client.send_many(now, sender.handle, [b"a", b"b"], WALL) == range(2)
    assert client.send_many(now, sender.handle, [b"c"] * 9, WALL) == range(2, 5)
    assert client.send_many(now, sender.handle, [b"d"], WALL) == range(5, 5)
    assert [unpack_payload(send.payload).payload for send in sender.sent()] == [b"a", b"b", b"c", b"c", b"c"]
    sender.script.feed(sender.link, frame_receipt(0))
    assert Writable(sender.handle) in sender.script.said()
    assert client.send_many(now, sender.handle, [], WALL) == range(5, 5)


def test_refused_messages_take_no_room() -> None:
    """Rules PROD-35, PROD-36 (section 41.4): a permit must not get lost for each refused message."""
    sender = Sender(max_pending_messages=2)
    for _ in range(5):
        with pytest.raises(MessageTooLarge):
            sender.send(bytes(5 * 1024 * 1024 + 1))
    assert sender.send() == 0
    assert sender.send() == 1
    assert [send.sequence_id for send in sender.sent()] == [0, 1]


# --- bad input -------------------------------------------------------------------------------------


def test_an_oversized_message_is_refused_by_its_size() -> None:
    """Rule PROD-35; java-message-too-large: nothing is written, the producer goes on. Rule ERR-08."""
    sender = Sender()
    with pytest.raises(MessageTooLarge, match="6291456 bytes, the broker accepts 5242880"):
        sender.send(bytes(6 * 1024 * 1024))
    assert sender.sent() == []
    sender.send(bytes(5 * 1024 * 1024))
    assert len(sender.sent()) == 1


def test_metadata_that_does_not_fit_into_a_frame_is_refused() -> None:
    sender = Sender()
    with pytest.raises(MessageTooLarge, match="payload and metadata"):
        sender.send(OutgoingMessage(bytes(5 * 1024 * 1024), properties={"p": "x" * 20_000}))
    assert sender.sent() == []
    assert sender.send(OutgoingMessage(b"", properties={"p": "x" * 20_000})) == 0


@pytest.mark.parametrize("message", ["text", None, 3, bytearray(b"x"), [b"x"]])
def test_what_is_no_message_is_refused(message: Any) -> None:
    sender = Sender()
    with pytest.raises(InvalidMessage, match="a message is bytes or an OutgoingMessage"):
        sender.send(message)
    client, now = sender.script.client, sender.script.now
    with pytest.raises(InvalidMessage):
        client.send_many(now, sender.handle, [b"good", message], WALL)
    assert sender.sent() == []
    assert sender.send() == 0


@pytest.mark.parametrize("publish_time", [-1, 2**63, 1.5, None, "now", True])
def test_a_publish_time_is_milliseconds(publish_time: Any) -> None:
    for batching in (None, BatchingPolicy()):
        sender = Sender(batching=batching)
        with pytest.raises(InvalidMessage, match="publish_time"):
            sender.send(b"x", publish_time)
        assert sender.sent() == []


@pytest.mark.parametrize("batching", [None, BatchingPolicy()])
def test_text_without_a_utf8_form_is_refused(batching: BatchingPolicy | None) -> None:
    sender = Sender(batching=batching)
    with pytest.raises(InvalidMessage, match="UTF-8"):
        sender.send(OutgoingMessage(b"x", key="\ud800"))
    assert sender.send() == 0
    sender.script.client.push(sender.script.now, sender.handle)
    (send,) = sender.sent()
    assert send.sequence_id == 0


def test_in_send_many_what_only_shows_when_sealed_fails_that_message() -> None:
    """Rule PROD-41."""
    sender = Sender(compression=CompressionType.ZLIB)
    client, now = sender.script.client, sender.script.now
    noise = Random(1).randbytes(5_600_000)
    assert client.send_many(now, sender.handle, [b"a", OutgoingMessage(noise), b"c"], WALL) == range(3)
    failed = sender.script.expect_one(SendFailed)
    assert (failed.first, failed.count) == (1, 1)
    assert isinstance(failed.error, MessageTooLarge)
    assert [send.sequence_id for send in sender.sent()] == [0, 1]
    with pytest.raises(MessageTooLarge):
        client.send_many(now, sender.handle, [OutgoingMessage(noise), b"c"], WALL)


@pytest.mark.parametrize("handle", [0, -1, 99, 10**9])
def test_an_unknown_producer(handle: int) -> None:
    script = Script()
    script.ready_producer()
    client = script.client
    for call in (
        lambda: client.send(script.now, handle, b"x", WALL),
        lambda: client.send_many(script.now, handle, [b"x"], WALL),
        lambda: client.appender(handle),
        lambda: client.flush(script.now, handle),
        lambda: client.push(script.now, handle),
        lambda: client.close(script.now, handle),
        lambda: client.abandon(script.now, handle),
    ):
        with pytest.raises(LocalProtocolError):
            call()
    assert script.said() == []


# --- before the first attachment ---------------------------------------------------------------------


def test_messages_may_be_sent_before_the_producer_is_ready() -> None:
    """Rules PROD-32 and PROD-40."""
    script = Script()
    handle = script.client.open_producer(script.now, UNBATCHED)
    tickets = [script.client.send(script.now, handle, b"m%d" % number, WALL) for number in range(3)]
    assert tickets == [0, 1, 2]
    link = script.ready_link()
    script.check_partitions(link)
    script.find_topic(link)
    asked = script.sent(link, Command.PRODUCER)
    script.feed(link, frame_producer_success(asked.request_id, last_sequence_id=9))
    sends = [command for _, command in script.commands(link)]
    assert [send.sequence_id for send in sends] == [10, 11, 12]
    assert [unpack_payload(send.payload).payload for send in sends] == [b"m0", b"m1", b"m2"]
    script.feed(link, frame_receipt(10))
    assert isinstance(script.said()[0], ProducerReady)


def test_early_messages_count_for_the_window_and_fail_with_the_producer() -> None:
    script = Script(operation_timeout=1.0)
    handle = script.client.open_producer(
        script.now, ProducerSpec(topic="demo", max_pending_messages=2, batching=None)
    )
    client = script.client
    client.send(script.now, handle, b"a", WALL)
    client.send(script.now, handle, b"b", WALL)
    request = client.flush(script.now, handle)
    with pytest.raises(ProducerQueueIsFull):
        client.send(script.now, handle, b"c", WALL)
    script.advance(1)
    outputs = script.said()
    assert [type(output) for output in outputs[1:]] == [SendFailed, RequestFailed, ProducerFailed]
    failed, flushed = outputs[1], outputs[2]
    assert isinstance(failed, SendFailed)
    assert (failed.first, failed.count) == (0, 2)
    assert isinstance(flushed, RequestFailed)
    assert flushed.request == request


def test_an_early_message_that_is_too_large_for_the_broker_fails_by_itself() -> None:
    script = Script()
    handle = script.client.open_producer(script.now, UNBATCHED)
    for payload in (b"a", bytes(5000), b"c"):
        script.client.send(script.now, handle, payload, WALL)
    link = script.ready_link(max_message_size=4096)
    script.check_partitions(link)
    script.find_topic(link)
    asked = script.sent(link, Command.PRODUCER)
    script.feed(link, frame_producer_success(asked.request_id))
    _, failed = script.said()
    assert isinstance(failed, SendFailed)
    assert (failed.first, failed.count) == (1, 1)
    assert [command.sequence_id for _, command in script.commands(link)] == [0, 1]


def test_many_early_messages_that_are_too_large_for_the_broker_fail() -> None:
    script = Script()
    spec = ProducerSpec(topic="demo", batching=None)
    handle = script.client.open_producer(script.now, spec)
    count = spec.max_pending_messages
    for _ in range(count):
        script.client.send(script.now, handle, b"too large", WALL)
    request = script.client.flush(script.now, handle)
    link = script.ready_link(max_message_size=5)
    script.check_partitions(link)
    script.find_topic(link)
    asked = script.sent(link, Command.PRODUCER)
    script.feed(link, frame_producer_success(asked.request_id))
    outputs = script.said()
    failed = [output.first for output in outputs if isinstance(output, SendFailed)]
    assert failed == list(range(count))
    assert [output.request for output in outputs if isinstance(output, RequestFailed)] == [request]


def test_early_text_that_cannot_be_sent_is_refused_at_once() -> None:
    script = Script()
    handle = script.client.open_producer(script.now, UNBATCHED)
    with pytest.raises(InvalidMessage):
        script.client.send(script.now, handle, OutgoingMessage(b"", key="\udfff"), WALL)


def test_a_payload_that_compression_leaves_too_large_fails_among_many() -> None:
    """PROD-35: it is raised for the first only, as the others before it are taken."""
    sender = Sender(compression=CompressionType.ZLIB)
    client, script = sender.script.client, sender.script
    large = Random(1).randbytes(6_000_000)
    with pytest.raises(MessageTooLarge):
        client.send_many(script.now, sender.handle, [large, b"a"], WALL)
    assert client.send_many(script.now, sender.handle, [b"a", large, b"b"], WALL) == range(3)
    assert script.expect_one(SendFailed).first == 1
    assert client.memory_held == 2
