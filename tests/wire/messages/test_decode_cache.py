"""Decoders remember a bounded amount, and whether they remember changes no result."""

from typing import Any

import pytest

from pulsar_sansio.wire import (
    MessageCommand,
    MessageMetadata,
    SendReceipt,
    decode_frame,
    encode_message_metadata,
    max_frame_size,
)
from pulsar_sansio.wire.commands import delivery_commands, publish_commands
from pulsar_sansio.wire.messages import metadata
from pulsar_sansio.wire.messages import uniform_messages as alike
from pulsar_sansio.wire.messages.decode_cache import MEMORY_LIMIT, cut, make_room, reader
from pulsar_sansio.wire.messages.metadata import decode_metadata_range
from pulsar_sansio.wire.varint import encode_varint


def decoded(frame: bytes) -> Any:
    found = decode_frame(frame, 0, max_frame_size())
    assert found is not None
    return found[1]


@pytest.mark.parametrize("number", [0, 1, 127, 128, 16_383, 16_384, 2_097_151, 2_097_152, 268_435_455])
def test_a_number_is_cut_into_parts_that_tables_know(number: int) -> None:
    data = b"before" + encode_varint(number) + b"after"
    read = reader(6, *cut(len(data) - 11), 5)
    before, low, high, after = read(b"x" + data, 1)
    assert (before, low + high, after) == (b"before", data[6:-5], b"after")
    assert len(low) in (0, 2)
    assert 1 <= len(high) <= 2


def test_a_full_memory_is_emptied() -> None:
    memory = dict.fromkeys(range(MEMORY_LIMIT - 1))
    make_room(memory)
    assert len(memory) == MEMORY_LIMIT - 1
    memory[-1] = None
    make_room(memory)
    assert memory == {}


def test_however_many_kinds_there_are_little_is_remembered() -> None:
    """Each producer, ledger, name, time and tail is another kind."""
    for number in range(2 * MEMORY_LIMIT + 10):
        receipt = SendReceipt(number, 5, number, 7)
        assert decoded(receipt.encode()) == decoded(receipt.encode()) == receipt
        message = MessageCommand(number, number, 7)
        assert decoded(message.encode()) == decoded(message.encode()) == message
        written = encode_message_metadata(
            MessageMetadata(f"p{number}", 0, 1_700_000_000_000 + number, event_time=number)
        )
        assert decode_metadata_range(written, 0, len(written)).producer_name == f"p{number}"
    memories: dict[str, dict[Any, Any]] = {
        "receipts": publish_commands._likenesses,
        "messages": delivery_commands._likenesses,
        "names": metadata._names,
        "times": metadata._times,
        "tails": metadata._tails,
    }
    for name, memory in memories.items():
        assert 0 < len(memory) <= MEMORY_LIMIT, name
    assert len(alike._plain_tails) <= MEMORY_LIMIT
