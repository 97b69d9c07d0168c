"""Entries of one producer: sequence ids and compression."""

from random import Random

import pytest

from pulsar_sansio.client.outputs import (
    ProducerReady,
)
from pulsar_sansio.model.config import (
    CompressionType,
    OutgoingMessage,
)
from pulsar_sansio.wire import decompress, unpack_payload
from tests.client.producing.sender import UNBATCHED, Sender, tickets
from tests.client.script import (
    WALL,
    Command,
    Script,
    frame_producer_success,
    frame_receipt,
)

# --- sequence ids (PROD-38) ------------------------------------------------------------------------


def test_ids_continue_from_what_the_broker_knows() -> None:
    script = Script()
    handle = script.client.open_producer(script.now, UNBATCHED)
    link = script.ready_link()
    script.check_partitions(link)
    script.find_topic(link)
    asked = script.sent(link, Command.PRODUCER)
    script.feed(link, frame_producer_success(asked.request_id, last_sequence_id=41))
    ready = script.expect_one(ProducerReady)
    assert ready.last_sequence_id == 41
    script.client.send(script.now, handle, b"x", WALL)
    assert script.sent(link, Command.SEND).sequence_id == 42


def test_an_initial_sequence_id_comes_first_and_the_brokers_is_ignored() -> None:
    """Rules PROD-04, PROD-18."""
    sender = Sender(initial_sequence_id=9)
    sender.send()
    assert sender.sent()[0].sequence_id == 10


def test_on_reconnect_name_and_ids_of_the_broker_are_ignored() -> None:
    sender = Sender()
    sender.send()
    sender.sent()
    sender.script.feed(sender.link, frame_receipt(0))
    sender.reattach()
    sender.send()
    (send,) = sender.sent()
    assert send.sequence_id == 1
    assert unpack_payload(send.payload).metadata.producer_name == "p-1"


@pytest.mark.breaks("INV-P6", why="sequence ids of the application, in any order")
def test_an_id_of_ones_own_is_sent_as_given_and_does_not_move_the_counter() -> None:
    """Rule PROD-38; java-deduplication sends 0, 1, 0. Rule GAP-39."""
    sender = Sender()
    for sequence_id in (0, 1, 0, None, 500, None):
        sender.send(OutgoingMessage(b"x", sequence_id=sequence_id))
    assert [send.sequence_id for send in sender.sent()] == [0, 1, 0, 0, 500, 1]
    for entry, sequence_id in enumerate((0, 1, 0, 0, 500, 1)):
        sender.script.feed(sender.link, frame_receipt(sequence_id, 7, entry))
    found = [ticket for output in sender.script.said() for ticket in tickets(output)]
    assert found == [0, 1, 2, 3, 4, 5]


# --- compression -----------------------------------------------------------------------------------


@pytest.mark.parametrize("codec", list(CompressionType))
def test_every_codec(codec: CompressionType) -> None:
    sender = Sender(compression=codec)
    payload = b"abc" * 50
    sender.send(payload)
    sender.send(OutgoingMessage(None))
    first, null = (unpack_payload(send.payload) for send in sender.sent())
    assert first.metadata.compression == codec
    assert first.metadata.uncompressed_size == len(payload)
    assert decompress(codec, first.payload, len(payload), 1000) == payload
    assert null.metadata.null_value


def test_it_is_the_compressed_size_that_counts() -> None:
    """The broker checks what arrives; 6 MiB of zeros are a few kilobytes."""
    sender = Sender(compression=CompressionType.LZ4)
    sender.send(bytes(6 * 1024 * 1024))
    (send,) = sender.sent()
    assert len(send.payload) < 100_000


def test_what_grows_by_compression_beyond_the_limit_goes_as_it_is() -> None:
    sender = Sender(compression=CompressionType.LZ4)
    sender.reattach(max_message_size=1024)
    noise = Random(1).randbytes(1024)
    sender.send(noise)
    (send,) = sender.sent()
    unpacked = unpack_payload(send.payload)
    assert not unpacked.metadata.has("compression")
    assert unpacked.payload == noise
