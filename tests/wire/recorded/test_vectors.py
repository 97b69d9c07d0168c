"""The byte vectors of the protocol, as far as their subjects exist here.

`tests/data/vectors.json` also has vectors of subjects that are not built yet; `LATER` lists them, so that
none is forgotten.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from pulsar_sansio.model.message_id import MessageId
from pulsar_sansio.wire import (
    INDIVIDUAL,
    Ack,
    FrameDecoder,
    MessageCommand,
    Send,
    SingleMessageMetadata,
    bits_from_words,
    crc32c,
    decode_message_id,
    decompress,
    encode_ack,
    encode_command,
    encode_message_id,
    encode_message_metadata,
    encode_single,
    max_frame_size,
    pack_payload,
    proto,
    split_batch,
    unpack_payload,
    words_from_bits,
)

VECTORS: dict[str, list[dict[str, Any]]] = json.loads(
    (Path(__file__).resolve().parents[2] / "data" / "vectors.json").read_text()
)

HERE = {"crc32c", "frame", "batch", "batch_compressed", "message_id", "ack_set"}

ELSEWHERE = {"crypto"}
"""Sections that the tests of another room read: `tests/encryption`."""

LATER = {
    "hash": "routing to partitions, and key-shared slots",
    "hash_boost": "routing as the C++ client does",
    "hash_ring": "key-shared consumers on a ring",
    "topics_hash": "pattern subscriptions",
    "primitive": "schemas",
    "keyvalue": "schemas",
    "schema_version": "schemas",
    "schema_id": "schemas",
    "avro": "schemas",
}


def vectors(section: str) -> Any:
    return pytest.mark.parametrize("vector", [pytest.param(v, id=v["name"]) for v in VECTORS[section]])


def test_every_section_is_tested_here_or_belongs_to_a_later_subject() -> None:
    assert set(VECTORS) == HERE | ELSEWHERE | set(LATER)
    assert not HERE & set(LATER)


@vectors("crc32c")
def test_crc32c(vector: dict[str, Any]) -> None:
    assert f"{crc32c(vector['input'].encode()):08x}" == vector["crc"]


@vectors("frame")
def test_frame(vector: dict[str, Any]) -> None:
    data = bytes.fromhex(vector["bytes"])
    found = FrameDecoder().decode(data, 0, max_frame_size())
    assert found is not None
    type_number, command, end = found
    assert end == len(data)
    if not isinstance(command, Send | MessageCommand):
        encoded = command.encode() if hasattr(command, "encode") else encode_command(type_number, command)
        assert encoded == data
        return
    assert command.encode() == data
    unpacked = unpack_payload(command.payload)
    assert unpacked.checksum_ok is (None if "without magic" in vector["name"] else True)
    metadata = encode_message_metadata(unpacked.metadata)
    packed = b"".join(pack_payload(metadata, unpacked.payload))
    if unpacked.checksum_ok:
        assert command.payload.endswith(packed)
    if "metadata" in vector:
        assert metadata.hex() == vector["metadata"]
        assert len(metadata) == vector["metadata_size"]
        assert unpacked.payload == b"hello"
    if "crc" in vector:
        assert packed[2:6].hex() == vector["crc"]
    assert (unpacked.broker_entry_metadata is not None) == ("broker_entry_metadata" in vector)
    if unpacked.broker_entry_metadata is not None:
        assert unpacked.broker_entry_metadata.SerializeToString().hex() == vector["broker_entry_metadata"]
        assert unpacked.broker_entry_metadata.index == 41


def test_frame_of_a_compressed_batch() -> None:
    (vector,) = [vector for vector in VECTORS["frame"] if "batch" in vector["name"]]
    found = FrameDecoder().decode(bytes.fromhex(vector["bytes"]), 0, max_frame_size())
    assert found is not None
    send = found[1]
    assert (send.num_messages, send.sequence_id, send.highest_sequence_id) == (3, 0, 2)
    unpacked = unpack_payload(send.payload)
    metadata = unpacked.metadata
    content = decompress(metadata.compression, unpacked.payload, metadata.uncompressed_size, 1000)
    assert content.hex() == VECTORS["batch"][0]["payload"]


@vectors("batch")
def test_batch(vector: dict[str, Any]) -> None:
    data = bytes.fromhex(vector["payload"])
    assert len(data) == vector["length"]
    batch = split_batch(data, 3)
    assert batch.payloads == [b"one", b"two", b""]
    assert not batch.plain
    assert [batch.single(index) for index in range(3)] == [
        SingleMessageMetadata(3, partition_key="k1", partition_key_b64_encoded=False, sequence_id=0),
        SingleMessageMetadata(3, properties=[("a", "b")], sequence_id=1),
        SingleMessageMetadata(
            0, partition_key="k3", partition_key_b64_encoded=False, sequence_id=2, null_value=True
        ),
    ]
    assert b"".join(encode_single(batch.single(i), batch.payloads[i]) for i in range(3)) == data


@vectors("batch_compressed")
def test_batch_compressed(vector: dict[str, Any]) -> None:
    codec = {"LZ4": 1, "ZLIB": 2, "ZSTD": 3, "SNAPPY": 4}[vector["name"].split()[0]]
    size = vector["uncompressed_size"]
    content = decompress(codec, bytes.fromhex(vector["bytes"]), size, size)
    assert content.hex() == VECTORS["batch"][0]["payload"]


@vectors("message_id")
def test_message_id(vector: dict[str, Any]) -> None:
    data = bytes.fromhex(vector["bytes"])
    expected = {
        "12:3 non-partitioned, non-batch, as Java toByteArray (batch_size=0 written)": MessageId(12, 3),
        "12:3 partition 5, as Java": MessageId(12, 3, 5),
        "12:3:5 batch_index 2 of batch_size 10": MessageId(12, 3, 5, 2, 10),
        "12:3 minimal (no optional fields)": MessageId(12, 3),
        "chunked: first 12:3, last 12:6 partition 5 (Java writes batch_size=0 in both)": MessageId(
            12, 6, 5, first_chunk=(12, 3)
        ),
        "earliest (-1,-1) as Java": MessageId(-1, -1),
        "latest (2^63-1, 2^63-1) as Java": MessageId(2**63 - 1, 2**63 - 1),
    }[vector["name"]]
    decoded = decode_message_id(data)
    assert tuple(decoded) == tuple(expected)
    if "minimal" not in vector["name"]:
        assert encode_message_id(expected) == data


SETS = {
    "batch 10, index 3 acked": 0b1111110111,
    "batch 10, cumulative through index 3": 0b1111110000,
    "batch 64, nothing acked": 2**64 - 1,
    "batch 64, index 63 acked": 2**63 - 1,
    "batch 100, indexes 64..99 acked (trailing zero word dropped)": 2**64 - 1,
    "batch 100, indexes 0..69 acked": 2**100 - 2**70,
    "batch 10, all acked -> empty array -> means whole entry": 0,
    "SEEK to batch index 4 of 10: ack_set (bits 4..9 set)": 0b1111110000,
}

ACKS = {
    "CommandAck consumer 7 individual 12:3 batch 10 index 3": 0b1111110111,
    "CommandAck with ack_set word -1 (ten byte varint, unpacked field 5)": 2**64 - 1,
}


@vectors("ack_set")
def test_ack_set(vector: dict[str, Any]) -> None:
    if "words" in vector:
        bits = SETS[vector["name"]]
        assert words_from_bits(bits) == vector["words"]
        assert bits_from_words(vector["words"]) == bits
        return
    command = bytes.fromhex(vector["bytes"])
    frame = encode_ack(7, INDIVIDUAL, [(12, 3, ACKS[vector["name"]])])
    assert frame.endswith(command)
    assert proto.CommandAck.FromString(command).consumer_id == 7
    assert FrameDecoder().decode(frame, 0, max_frame_size()) == (
        proto.BaseCommand.ACK,
        Ack(7, INDIVIDUAL, [(12, 3, ACKS[vector["name"]])]),
        len(frame),
    )
