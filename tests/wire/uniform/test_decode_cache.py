"""Decoders remember a bounded amount, share nothing, and whether they remember changes no result."""

import importlib
import pkgutil
from typing import Any

import pytest

from pulsar_sansio import wire
from pulsar_sansio.wire import (
    FrameDecoder,
    FrameReader,
    MessageCommand,
    MessageMetadata,
    MetadataDecoder,
    SendReceipt,
    encode_message,
    encode_message_metadata,
    max_frame_size,
    pack_payload,
    proto,
)
from pulsar_sansio.wire.uniform.command_templates import pieces_reader, split_number
from pulsar_sansio.wire.uniform.decode_cache import CACHE_LIMIT, remember
from pulsar_sansio.wire.varint import encode_varint

TIME = 1_700_000_000_000


@pytest.mark.parametrize("number", [0, 1, 127, 128, 16_383, 16_384, 2_097_151, 2_097_152, 268_435_455])
def test_a_number_is_split_into_parts_that_tables_know(number: int) -> None:
    data = b"before" + encode_varint(number) + b"after"
    read = pieces_reader(6, *split_number(len(data) - 11), 5)
    before, low, high, after = read(b"x" + data, 1)
    assert (before, low + high, after) == (b"before", data[6:-5], b"after")
    assert len(low) in (0, 2)
    assert 1 <= len(high) <= 2


def test_a_full_cache_is_emptied() -> None:
    cache: dict[int, str] = {}
    for number in range(CACHE_LIMIT):
        remember(cache, number, "value")
    assert len(cache) == CACHE_LIMIT
    remember(cache, -1, "new")
    assert cache == {-1: "new"}


def test_however_many_kinds_there_are_little_is_remembered() -> None:
    """Each producer, ledger, name, time and tail is another kind."""
    frames, metadata = FrameDecoder(), MetadataDecoder()

    def decoded(frame: bytes) -> Any:
        found = frames.decode(frame, 0, max_frame_size())
        assert found is not None
        return found[1]

    for number in range(2 * CACHE_LIMIT + 10):
        receipt = SendReceipt(number, 5, number, 7)
        assert decoded(receipt.encode()) == decoded(receipt.encode()) == receipt
        message = MessageCommand(number, number, 7)
        assert decoded(message.encode()) == decoded(message.encode()) == message
        written = encode_message_metadata(MessageMetadata(f"p{number}", 0, TIME + number, event_time=number))
        assert metadata.decode(written).producer_name == f"p{number}"
    caches: dict[str, dict[Any, Any]] = {
        "receipts": frames.receipts.templates,
        "messages": frames.deliveries.templates,
        "names": metadata.names,
        "times": metadata.times,
        "tails": metadata.tails,
    }
    for name, cache in caches.items():
        assert 0 < len(cache) <= CACHE_LIMIT, name


def message(number: int) -> bytes:
    """A MESSAGE frame with a tail of its own behind publish_time."""
    metadata = encode_message_metadata(MessageMetadata("producer", number, TIME, event_time=1000 + number))
    return b"".join(encode_message(3, 5, number, stored=b"".join(pack_payload(metadata, b"payload"))))


def test_a_reader_of_uniform_messages_remembers_few_tails() -> None:
    reader = uniform_reader()
    for number in range(CACHE_LIMIT + 20):
        list(reader.frames(message(number)))
    assert 0 < len(reader._uniform_messages.plain_tails) <= CACHE_LIMIT


def uniform_reader() -> FrameReader:
    reader = FrameReader(max_frame_size())
    reader.reads_uniform_messages = True
    return reader


def caches_of(reader: FrameReader) -> list[dict[Any, Any]]:
    frames, metadata = reader._decoder, reader.metadata_decoder
    return [
        frames.deliveries.templates,
        frames.receipts.templates,
        reader._uniform_messages.plain_tails,
        metadata.names,
        metadata.times,
        metadata.tails,
    ]


def module_sizes() -> dict[str, int]:
    """The size of each dictionary, list and set that a module of `wire` has."""
    sizes = {}
    for module in pkgutil.walk_packages(wire.__path__, "pulsar_sansio.wire."):
        for name, value in vars(importlib.import_module(module.name)).items():
            if isinstance(value, dict | list | set) and not name.startswith("__"):
                sizes[f"{module.name}.{name}"] = len(value)
    return sizes


def test_two_connections_share_no_decode_state() -> None:
    """One connection learns from what it reads; neither another one nor a module does."""
    before = module_sizes()
    first, second = uniform_reader(), uniform_reader()
    kinds = [kind for kind, _, _ in first.frames(message(1) + SendReceipt(1, 5, 1, 7).encode())]
    assert kinds == [None, proto.BaseCommand.SEND_RECEIPT]
    first.metadata_decoder.decode(encode_message_metadata(MessageMetadata("name", 1, TIME)))
    assert all(caches_of(first))
    assert not any(caches_of(second))
    assert len(before) > 10
    assert module_sizes() == before
