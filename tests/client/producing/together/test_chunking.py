"""Messages larger than the broker accepts, sent in chunks (recording java-chunking)."""

from collections.abc import Callable
from typing import Any

import pytest

from pulsar_sansio.client.outputs import Receipts, SendFailed
from pulsar_sansio.model.config import (
    BatchingPolicy,
    CompressionType,
    OutgoingMessage,
    ProducerSpec,
)
from pulsar_sansio.model.errors import (
    InvalidConfiguration,
    MessageTooLarge,
    ProducerQueueIsFull,
    ServerError,
)
from pulsar_sansio.model.message_id import MessageId
from pulsar_sansio.wire import decompress, unpack_payload
from tests.client.script import (
    WALL,
    Command,
    Script,
    frame_connected,
    frame_producer_success,
    frame_receipt,
    frame_send_error,
)


def started(max_message_size: int = 5 * 1024 * 1024, **spec: Any) -> tuple[Script, int, int]:
    script = Script(max_message_size=max_message_size)
    spec = {"topic": "demo", "batching": None, "chunking": True, **spec}
    producer, link = script.ready_producer(ProducerSpec(**spec))
    return script, producer, link


def send(script: Script, producer: int, message: bytes | OutgoingMessage) -> int:
    return script.client.send(script.now, producer, message, WALL)


def sends(script: Script, link: int) -> list[Any]:
    found = script.commands(link)
    assert {kind for kind, _ in found} <= {Command.SEND}
    return [command for _, command in found]


def reconnect(script: Script, link: int, **connected: Any) -> int:
    """Disconnect and reconnect the producer; return its new link."""
    script.lose(link)
    script.said()
    script.advance(0.2)
    link = script.ready_link(**connected)
    script.find_topic(link)
    script.feed(link, frame_producer_success(script.sent(link, Command.PRODUCER).request_id))
    return link


def test_every_chunk_says_what_it_is_part_of() -> None:
    """Rule MSG-09."""
    script, producer, link = started(chunk_max_message_size=4)
    message = OutgoingMessage(b"0123456789", key="k", properties={"a": "b"}, event_time=7)
    assert send(script, producer, message) == 0
    commands = sends(script, link)
    assert [(each.sequence_id, each.num_messages, each.is_chunk) for each in commands] == [(0, 1, True)] * 3
    unpacked = [unpack_payload(each.payload) for each in commands]
    assert [bytes(each.payload) for each in unpacked] == [b"0123", b"4567", b"89"]
    for chunk_id, each in enumerate(unpacked):
        metadata = each.metadata
        assert (metadata.uuid, metadata.chunk_id, metadata.num_chunks_from_msg) == ("p-1-0", chunk_id, 3)
        assert (metadata.total_chunk_msg_size, metadata.uncompressed_size) == (10, 10)
        assert (metadata.partition_key, metadata.event_time) == ("k", 7)
        assert list(metadata.properties) == [("a", "b")]


def test_the_last_receipt_confirms_it_and_its_id_names_the_first_chunk() -> None:
    script, producer, link = started(chunk_max_message_size=4)
    first, second = send(script, producer, b"0123456789"), send(script, producer, b"x")
    script.feed(link, frame_receipt(0, 7, 10), frame_receipt(0, 7, 12))
    assert script.said() == []
    script.feed(link, frame_receipt(0, 7, 13), frame_receipt(1, 7, 14))
    said = script.expect_one(Receipts)
    assert (said.first, list(said.message_ids)) == (first, [MessageId(7, 13), MessageId(7, 14)])
    assert [each.first_chunk for each in said.message_ids] == [(7, 10), None]
    assert [said.message_ids[index].first_chunk for index in range(2)] == [(7, 10), None]
    assert second == 1


def test_the_receipt_of_a_chunk_said_twice_does_not_confirm_the_next_one() -> None:
    """All chunks of a message have one sequence id; only positions distinguish their receipts."""
    script, producer, link = started(chunk_max_message_size=4)
    send(script, producer, b"0123456789")
    script.feed(link, frame_receipt(0, 7, 10), frame_receipt(0, 7, 10), frame_receipt(0, 7, 12))
    script.feed(link, frame_receipt(0, 7, 10))
    assert script.said() == []
    script.feed(link, frame_receipt(0, 7, 13))
    assert list(script.expect_one(Receipts).message_ids) == [MessageId(7, 13)]


def test_of_a_duplicate_the_place_is_not_known() -> None:
    """With deduplication a broker stores all chunks again but the last."""
    script, producer, link = started(chunk_max_message_size=4)
    send(script, producer, OutgoingMessage(b"0123456789", sequence_id=0))
    script.feed(link, frame_receipt(0, 7, 10), frame_receipt(0, 7, 11), frame_receipt(0, -1, -1))
    (message_id,) = script.expect_one(Receipts).message_ids
    assert (message_id, message_id.first_chunk) == (MessageId(-1, -1), None)


def test_it_counts_as_one_message_however_many_chunks_there_are() -> None:
    script, producer, link = started(chunk_max_message_size=1, max_pending_messages=2)
    send(script, producer, bytes(100))
    send(script, producer, b"x")
    with pytest.raises(ProducerQueueIsFull):
        send(script, producer, b"y")
    assert len(sends(script, link)) == 101


def test_it_is_compressed_first_and_cut_then() -> None:
    script, producer, link = started(chunk_max_message_size=50, compression=CompressionType.ZLIB)
    data = bytes(range(256)) * 3
    send(script, producer, data)
    send(script, producer, bytes(10_000))  # small after compression
    *chunks, small = [unpack_payload(each.payload) for each in sends(script, link)]
    assert len(chunks) > 1
    packed = b"".join(bytes(each.payload) for each in chunks)
    assert {each.metadata.total_chunk_msg_size for each in chunks} == {len(packed)}
    assert decompress(CompressionType.ZLIB, packed, len(data), len(data)) == data
    assert small.metadata.num_chunks_from_msg is None


def test_chunks_with_all_their_metadata_are_as_large_as_the_broker_accepts() -> None:
    script, producer, link = started()
    link = reconnect(script, link, max_message_size=2000)
    send(script, producer, OutgoingMessage(bytes(10_000), properties={"long": "x" * 500}))
    commands = sends(script, link)
    sizes = [len(each.payload) for each in commands]
    assert len(commands) > 10_000 / 2000
    assert all(size <= 2000 + 10 for size in sizes)
    assert sum(len(bytes(unpack_payload(each.payload).payload)) for each in commands) == 10_000


def test_a_payload_that_fits_but_for_its_metadata_is_sent_in_chunks() -> None:
    script, producer, link = started()
    link = reconnect(script, link, max_message_size=100_000)
    send(script, producer, OutgoingMessage(bytes(100_000), properties={"long": "x" * 20_000}))
    first, second = (bytes(unpack_payload(each.payload).payload) for each in sends(script, link))
    assert len(first) + len(second) == 100_000
    assert 79_000 < len(first) < 80_000


def test_metadata_that_leave_no_room_are_an_error_and_nothing_is_sent() -> None:
    script, producer, link = started()
    link = reconnect(script, link, max_message_size=1024)
    with pytest.raises(MessageTooLarge, match="metadata"):
        send(script, producer, OutgoingMessage(bytes(5000), properties={"long": "x" * 2000}))
    with pytest.raises(MessageTooLarge, match="100000"):
        send(script, producer, OutgoingMessage(bytes(4_500_000), properties={"long": "x" * 930}))
    assert sends(script, link) == []
    assert send(script, producer, b"x") == 0


def test_after_a_reconnect_only_what_is_not_confirmed_is_sent_again() -> None:
    script, producer, link = started(chunk_max_message_size=4)
    send(script, producer, b"0123456789")
    before = sends(script, link)
    script.feed(link, frame_receipt(0, 7, 10))
    link = reconnect(script, link)
    assert sends(script, link) == before[1:]
    script.said()
    script.feed(link, frame_receipt(0, 7, 20), frame_receipt(0, 7, 21))
    [message_id] = script.expect_one(Receipts).message_ids
    assert (message_id, message_id.first_chunk) == (MessageId(7, 21), (7, 10))


def refused(script: Script, link: int) -> None:
    script.feed(link, frame_send_error(0, ServerError.NotAllowedError))


def too_large_now(script: Script, link: int) -> None:
    reconnect(script, link, max_message_size=1024)


def timed_out(script: Script, link: int) -> None:
    script.advance(30)


@pytest.mark.parametrize("happens", [refused, too_large_now, timed_out])
@pytest.mark.parametrize("confirmed", [0, 1])
def test_if_one_chunk_fails_the_message_fails_once(
    happens: Callable[[Script, int], None], confirmed: int
) -> None:
    script, producer, link = started(chunk_max_message_size=20_000)
    ticket = send(script, producer, bytes(50_000))
    for number in range(confirmed):
        script.feed(link, frame_receipt(0, 7, number))
    script.said()
    happens(script, link)
    [failed] = [output for output in script.history if isinstance(output, SendFailed)]
    assert (failed.first, failed.count) == (ticket, 1)
    assert not [output for output in script.history if isinstance(output, Receipts)]
    assert script.client._handles.producers[producer].admission.pending == 0  # type: ignore[union-attr]


def test_the_next_message_in_chunks_has_a_first_chunk_of_its_own() -> None:
    script, producer, link = started(chunk_max_message_size=4)
    send(script, producer, b"01234567")
    second = send(script, producer, b"abcdefgh")
    script.feed(link, frame_receipt(0, 7, 0))
    refused(script, link)
    script.feed(link, frame_receipt(1, 7, 2), frame_receipt(1, 7, 3))
    said = script.said()
    [receipts] = [output for output in said if isinstance(output, Receipts)]
    assert (receipts.first, receipts.message_ids[0].first_chunk) == (second, (7, 2))


def test_early_ones_are_cut_when_the_limit_is_known() -> None:
    script = Script()
    spec = ProducerSpec(topic="demo", batching=None, chunking=True)
    producer = script.client.open_producer(script.now, spec)
    send(script, producer, bytes(3000))
    connect = script.said()[0]
    script.open(connect.link)  # type: ignore[union-attr]
    script.sent(1, Command.CONNECT)
    script.feed(1, frame_connected(max_message_size=1024))
    script.check_partitions(1)
    script.find_topic(1)
    script.feed(1, frame_producer_success(script.sent(1, Command.PRODUCER).request_id))
    assert len(sends(script, 1)) == 4


@pytest.mark.parametrize(
    "wrong",
    [
        {"chunking": True, "batching": BatchingPolicy()},
        {"chunking": "yes", "batching": None},
        {"chunking": True, "batching": None, "topic": "non-persistent://public/default/t"},
        {"chunk_max_message_size": 0},
    ],
)
def test_options_that_do_not_go_together(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidConfiguration, match="chunk"):
        ProducerSpec(**{"topic": "demo", **wrong})
