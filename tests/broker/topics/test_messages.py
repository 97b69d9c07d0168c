"""The messages in a stored entry, and a batch encoded again without some of them."""

from typing import Any

import pytest

from pulsar_sansio.broker.topics.messages import Chunk, KeyedMessage, messages_of, read_message, without
from pulsar_sansio.model.config import CompressionType
from pulsar_sansio.wire import (
    EncryptionKey,
    MessageMetadata,
    MetadataDecoder,
    SingleMessageMetadata,
    compress,
    encode_message_metadata,
    encode_single,
    pack_payload,
    proto,
    split_batch,
    unpack_payload,
)


def entry(payload: bytes = b"x", **fields: Any) -> bytes:
    return b"".join(pack_payload(encode_message_metadata(MessageMetadata("p", 0, 5, **fields)), payload))


def batch(*members: tuple[str | None, bytes], codec: int = 0, **fields: Any) -> bytes:
    body = b"".join(
        encode_single(SingleMessageMetadata(0, partition_key=key), payload) for key, payload in members
    )
    options = {"num_messages_in_batch": len(members), "uncompressed_size": len(body), **fields}
    return entry(compress(codec, body) if codec else body, compression=codec, **options)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (entry(partition_key="k"), KeyedMessage("k", False)),
        (entry(), KeyedMessage(None, False)),
        (entry(b"", partition_key="k"), KeyedMessage("k", True)),
        (entry(b"x", partition_key="k", null_value=True), KeyedMessage("k", True)),
        (entry(partition_key="k", marker_type=10), KeyedMessage(None, True)),
        (entry(b"z", partition_key="k", compression=2, uncompressed_size=0), KeyedMessage("k", True)),
        (
            entry(partition_key="k", uuid="u", chunk_id=1, num_chunks_from_msg=3),
            KeyedMessage("k", False, Chunk("p", "u", 1, 3, 5)),
        ),
        (entry(partition_key="k", uuid="u", num_chunks_from_msg=1), KeyedMessage("k", False)),
    ],
)
def test_an_entry_of_one_message(data: bytes, message: KeyedMessage) -> None:
    assert messages_of(data, MetadataDecoder()) == [message]


@pytest.mark.parametrize("codec", [0, *(each for each in CompressionType if each)])
def test_each_message_of_a_batch_has_its_own_key(codec: int) -> None:
    data = batch(("a", b"1"), (None, b"2"), ("b", b""), codec=codec)
    assert messages_of(data, MetadataDecoder()) == [
        KeyedMessage("a", False),
        KeyedMessage(None, False),
        KeyedMessage("b", True),
    ]


def test_a_batch_that_cannot_be_read_counts_as_one_message() -> None:
    encrypted = batch(("a", b"1"), ("b", b"2"), encryption_keys=[EncryptionKey("k", b"v")])
    corrupt = entry(b"no batch", num_messages_in_batch=2, partition_key="k")
    compressed = entry(b"no data", num_messages_in_batch=2, compression=1, uncompressed_size=50)
    for data, key in ((encrypted, None), (corrupt, "k"), (compressed, None)):
        assert messages_of(data, MetadataDecoder()) == [KeyedMessage(key, False)]


def test_a_payload_is_read_uncompressed_where_that_is_possible() -> None:
    zlib = int(CompressionType.ZLIB)
    packed = compress(zlib, b"text")
    whole = entry(packed, compression=zlib, uncompressed_size=4)
    corrupt = entry(b"no data", compression=zlib, uncompressed_size=4)
    secret = entry(packed, compression=zlib, uncompressed_size=4, encryption_keys=[EncryptionKey("k", b"v")])
    assert [read_message(data)[1] for data in (whole, corrupt, secret)] == [b"text", b"no data", packed]


@pytest.mark.parametrize("codec", [0, int(CompressionType.LZ4)])
def test_removed_messages_leave_empty_ones_behind(codec: int) -> None:
    data = without(batch(("a", b"1"), ("b", b"2"), ("c", b"3"), codec=codec), [0, 2])
    metadata = unpack_payload(data)[2]
    assert isinstance(metadata, MessageMetadata)
    assert (metadata.num_messages_in_batch, list(metadata.compacted_batch_indexes)) == (3, [0, 2])
    _, payload = read_message(data)
    assert len(payload) == metadata.uncompressed_size or not codec
    found = split_batch(payload, 3)
    assert found.payloads == [b"1", b"", b"3"]
    assert [found.single(index).compacted_out for index in range(3)] == [False, True, False]
    assert messages_of(data, MetadataDecoder())[1] == KeyedMessage(None, True)


def test_unknown_fields_of_the_metadata_stay() -> None:
    metadata = proto.MessageMetadata.FromString(
        encode_message_metadata(MessageMetadata("p", 0, 5, num_messages_in_batch=1)) + b"\xa0\x3f\x07"
    )
    body = encode_single(SingleMessageMetadata(0, partition_key="a"), b"1")
    data = without(b"".join(pack_payload(metadata.SerializeToString(), body)), [0])
    assert b"\xa0\x3f\x07" in data
