"""Every recorded frame decodes with nothing unknown, encodes to the same bytes, and its payload unpacks.

The payloads of `java-encryption` stay closed here: `tests/encryption` and `tests/conversations` decrypt them.
"""

from typing import Any

import pytest
from google.protobuf.message import Message
from google.protobuf.unknown_fields import UnknownFieldSet

from pulsar_sansio.wire import (
    FrameDecoder,
    HotCommand,
    UnpackedPayload,
    compress,
    decompress,
    encode_batch_payloads,
    encode_command,
    encode_message_metadata,
    encode_single,
    max_frame_size,
    pack_payload,
    proto,
    split_batch,
    unpack_payload,
)
from tests.wire.recorded.recordings import NAMES, RecordedFrame, frames, streams

LIMIT = max_frame_size()
MAX_MESSAGE_SIZE = 5 * 1024 * 1024


def _unknown_fields(message: Message) -> list[Any]:
    found: list[Any] = list(UnknownFieldSet(message))  # type: ignore[call-overload]
    for field, value in message.ListFields():
        if field.message_type is not None:
            for inner in value if field.is_repeated else (value,):
                found += _unknown_fields(inner)
    return found


def test_the_recordings_are_all_there() -> None:
    recorded = [frame for name in NAMES for frame in frames(name)]
    types = {proto.BaseCommand.FromString(frame.command).type for frame in recorded}
    assert (len(NAMES), len(recorded), len(types)) == (70, 2710, 48)


@pytest.mark.parametrize("name", NAMES)
def test_every_frame_decodes_with_nothing_unknown_and_encodes_to_the_same_bytes(name: str) -> None:
    for frame in frames(name):
        base = proto.BaseCommand.FromString(frame.command)
        assert _unknown_fields(base) == []
        assert base.SerializeToString() == frame.command
        found = FrameDecoder().decode(frame.whole, 0, LIMIT)
        assert found is not None
        type_number, command, end = found
        assert (type_number, end) == (base.type, len(frame.whole))
        if isinstance(command, HotCommand):
            assert command.rest == b""
            assert command.encode() == frame.whole
        else:
            assert frame.payload == b""
            assert encode_command(type_number, command) == frame.whole


@pytest.mark.parametrize("name", NAMES)
def test_any_cutting_of_a_stream_gives_the_same_commands(name: str) -> None:
    for stream in streams(name):
        whole = _commands(stream.data, len(stream.data))
        for size in (1, 7, 4096):
            assert _commands(stream.data, size) == whole


def _commands(data: bytes, size: int) -> list[tuple[int, Any]]:
    """The commands of `data` when `size` bytes arrive at a time."""
    buffer = b""
    commands = []
    for start in range(0, len(data), size):
        buffer += data[start : start + size]
        position = 0
        while (found := FrameDecoder().decode(buffer, position, LIMIT)) is not None:
            type_number, command, position = found
            commands.append((type_number, command))
        buffer = buffer[position:]
    assert buffer == b""
    return commands


def _with_payload(name: str) -> list[RecordedFrame]:
    return [frame for frame in frames(name) if frame.payload]


@pytest.mark.parametrize("name", [name for name in NAMES if _with_payload(name)])
def test_every_payload_unpacks_and_packs_to_the_same_bytes(name: str) -> None:
    for frame in _with_payload(name):
        unpacked = unpack_payload(frame.payload)
        assert unpacked.checksum_ok is True
        assert unpacked.broker_entry_metadata is None
        metadata = unpacked.metadata
        assert metadata.unknown == b""
        encoded = encode_message_metadata(metadata)
        assert encoded == _metadata_bytes(frame.payload)
        assert encoded == proto.MessageMetadata.FromString(encoded).SerializeToString()
        assert b"".join(pack_payload(encoded, unpacked.payload)) == frame.payload
        if metadata.encryption_keys:
            assert name == "java-encryption"
        else:
            _check_content(unpacked)


def _metadata_bytes(payload: bytes) -> bytes:
    size = int.from_bytes(payload[6:10], "big")
    return payload[10 : 10 + size]


def _check_content(unpacked: UnpackedPayload) -> None:
    metadata = unpacked.metadata
    content = decompress(metadata.compression, unpacked.payload, metadata.uncompressed_size, MAX_MESSAGE_SIZE)
    compressed = compress(metadata.compression, content)
    assert decompress(metadata.compression, compressed, len(content), MAX_MESSAGE_SIZE) == content
    if metadata.num_messages_in_batch is None:
        return
    batch = split_batch(content, metadata.num_messages_in_batch)
    singles = [batch.single(index) for index in range(len(batch))]
    assert b"".join(map(encode_single, singles, batch.payloads)) == content
    plain = all(single.__dict__.keys() == {"payload_size", "sequence_id"} for single in singles)
    assert batch.plain is plain
    if plain:
        # What the bulk encoder writes is what the Java and the C++ client write.
        assert encode_batch_payloads(batch.payloads, singles[0].sequence_id or 0) == content
