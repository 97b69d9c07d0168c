"""`MetadataDecoder`, compared with the decoder by table: what it remembers changes nothing."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsar_sansio.model.encryption_context import EncryptionKey
from pulsar_sansio.model.errors import FrameError
from pulsar_sansio.wire import MessageMetadata, MetadataDecoder, encode_message_metadata
from pulsar_sansio.wire.messages import metadata_decoder
from pulsar_sansio.wire.uniform import decode_cache

TIME = 1_700_000_000_000


def encoded(name: str = "p-1", sequence_id: int = 5, publish_time: int = TIME, **fields: Any) -> bytes:
    return encode_message_metadata(MessageMetadata(name, sequence_id, publish_time, **fields))


KEY = EncryptionKey("k", b"w" * 256, (("version", "1"),))
LONG_KEY = KEY._replace(value=b"w" * 2000)
NONCE = b"n" * 12

FIELDS: dict[str, dict[str, Any]] = {
    "plain": {},
    "a key": {"partition_key": "k"},
    "a batch": {"num_messages_in_batch": 10},
    "compressed": {"compression": 1, "uncompressed_size": 300},
    "a property": {"properties": [("a", "1")]},
    "properties and a key": {"properties": [("a", "1"), ("b", "")], "partition_key": "k"},
    "a long property": {"properties": [("a", "1" * 200)]},
    "a long key": {"partition_key": "k" * 200},
    "a chunk": {"uuid": "u", "num_chunks_from_msg": 2, "chunk_id": 0, "total_chunk_msg_size": 9},
    "null": {"null_value": True},
    "an event time": {"event_time": TIME},
    "encrypted": {"encryption_keys": [KEY], "encryption_param": NONCE, "schema_version": bytes(8)},
    "encrypted for two": {"encryption_keys": [KEY, KEY._replace(key="l")], "encryption_param": NONCE},
    "encrypted, a batch": {"num_messages_in_batch": 9, "encryption_keys": [KEY], "encryption_param": NONCE},
    "encrypted, as Java writes it": {
        "uncompressed_size": 300,
        "event_time": TIME,
        "encryption_keys": [KEY],
        "encryption_param": NONCE,
        "schema_version": bytes(8),
    },
    "encrypted, a key that looks like a tag": {
        "partition_key": "jjj",
        "encryption_keys": [KEY],
        "encryption_param": NONCE,
    },
    "encrypted, fields behind that repeat": {
        "encryption_keys": [KEY],
        "encryption_param": NONCE,
        "replicate_to": ["a"],
        "ordering_key": b"j",
        "unknown": b"\xc8\x3e\x01",
    },
    "encrypted, a short key": {"encryption_keys": [EncryptionKey("k", b"w", ())], "encryption_param": NONCE},
    "encrypted, a long key": {
        "encryption_keys": [LONG_KEY],
        "encryption_param": NONCE,
    },
    "encrypted, a huge key": {"encryption_keys": [KEY._replace(value=b"w" * 20_000)]},
    "encrypted, an algorithm": {
        "encryption_keys": [KEY],
        "encryption_algo": "AES",
        "encryption_param": NONCE,
    },
    "encrypted, another nonce": {"encryption_keys": [KEY], "encryption_param": b"n" * 11},
    "encrypted without a nonce": {"encryption_keys": [KEY], "schema_version": bytes(8)},
    "encrypted, properties": {
        "properties": [("a", "1")],
        "encryption_keys": [KEY],
        "encryption_param": NONCE,
    },
}


@pytest.mark.parametrize("fields", FIELDS.values(), ids=FIELDS.keys())
@pytest.mark.parametrize("sequence_id", [0, 127, 128, 16383, 16384, 2**63])
def test_it_gives_what_the_table_gives_the_first_time_and_the_next(
    fields: dict[str, Any], sequence_id: int
) -> None:
    data = encoded(sequence_id=sequence_id, **fields)
    decoder = MetadataDecoder()
    expected = MessageMetadata.decode(data)
    assert decoder.decode(data) == decoder.decode(data) == expected
    assert decoder.decode_range(b"xx" + data + b"yy", 2, 2 + len(data)) == expected


@given(st.binary(max_size=40), st.integers(0, 60))
def test_any_bytes_give_what_the_table_gives(noise: bytes, cut: int) -> None:
    decoder = MetadataDecoder()
    decoder.decode(encoded())
    encrypted = encoded(encryption_keys=[EncryptionKey("k", b"w" * 9, ())], encryption_param=NONCE)
    plain = encoded()
    for data in (
        noise,
        plain[:cut] + noise,
        encoded(properties=[("a", "b")])[:cut],
        encrypted[: len(plain) + cut] + noise,
    ):
        try:
            expected: object = MessageMetadata.decode(data)
        except FrameError:
            expected = None
        try:
            found: object = decoder.decode(data)
        except FrameError:
            found = None
        assert found == expected


def test_a_list_in_a_value_is_never_shared() -> None:
    decoder = MetadataDecoder()
    data = encoded(properties=[("a", "1")])
    first, second = decoder.decode(data), decoder.decode(data)
    assert first.properties == second.properties
    assert first.properties is not second.properties


@pytest.mark.parametrize("behind", ["a key", "a nonce"])
def test_fields_of_encryption_that_stand_apart_are_merged_as_the_table_does(behind: str) -> None:
    data = encoded(encryption_keys=[KEY], encryption_param=NONCE)
    further: dict[str, Any] = (
        {"encryption_keys": [KEY._replace(key="l")]} if behind == "a key" else {"encryption_param": b"m" * 12}
    )
    data += encoded(**further)[len(encoded()) :]
    decoder = MetadataDecoder()
    assert decoder.decode(data) == decoder.decode(data) == MessageMetadata.decode(data)


def test_bytes_of_keys_inside_of_another_field_are_that_field() -> None:
    decoder = MetadataDecoder()
    encrypted = encoded(encryption_keys=[KEY], encryption_param=NONCE)
    decoder.decode(encrypted)
    hidden = encrypted[len(encoded()) :]
    for fields in ({"ordering_key": hidden}, {"uuid": hidden.decode("latin-1"), "ordering_key": b"j"}):
        data = encoded(**fields)
        assert decoder.decode(data) == decoder.decode(data) == MessageMetadata.decode(data)
        assert not decoder.decode(data).encryption_keys


def test_keys_are_compared_at_once_and_long_ones_are_not_remembered_so() -> None:
    decoder = MetadataDecoder()
    for count, remembered in ((2, True), (60, False)):
        keys = [KEY._replace(value=b"w" * 300, key=str(number)) for number in range(count)]
        data = encoded(uncompressed_size=5, encryption_keys=keys, encryption_param=NONCE)
        first, second = decoder.decode(data), decoder.decode(data)
        assert (first.encryption_keys is second.encryption_keys) is remembered
        assert first == second == MessageMetadata.decode(data)


def test_a_long_encryption_key_is_not_remembered() -> None:
    """A broker may send as many as it likes, of five megabytes each."""
    decoder = MetadataDecoder()
    for size, kept in ((1500, 0), (256, 1)):
        key = KEY._replace(value=b"w" * size)
        decoder.decode(encoded(encryption_keys=[key], encryption_param=NONCE))
        assert len(decoder.encryption_keys) == kept


def test_two_decoders_share_nothing() -> None:
    one, other = MetadataDecoder(), MetadataDecoder()
    one.decode(encoded(num_messages_in_batch=3))
    one.decode(encoded(encryption_keys=[KEY], encryption_param=NONCE))
    assert one.names
    assert one.times
    assert one.tails
    assert one.encryption_keys
    assert [other.names, other.times, other.tails, other.encryption_keys] == [{}, {}, {}, {}]


def test_long_tails_are_not_remembered_and_the_caches_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    decoder = MetadataDecoder()
    decoder.decode(encoded(partition_key="k" * metadata_decoder.LONGEST_TAIL))
    assert not decoder.tails
    limit = next(
        value for name, value in vars(decode_cache).items() if name.isupper() and isinstance(value, int)
    )
    for number in range(limit + 5):
        decoder.decode(encoded(f"p-{number}", publish_time=TIME + number, num_messages_in_batch=number + 1))
    assert max(len(decoder.names), len(decoder.times), len(decoder.tails)) <= limit


def test_the_parts_are_recognised() -> None:
    decoder = MetadataDecoder()
    data = encoded("p-1", 5)
    assert decoder.is_name(data[:6])
    assert decoder.is_name(data[:6])
    assert not decoder.is_name(data[:5])
    assert not decoder.is_name(b"")
    assert decoder.is_time(data[7:14])
    assert decoder.is_time(data[7:14])
    assert not decoder.is_time(bytes(7))
