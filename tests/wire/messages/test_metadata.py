"""MessageMetadata and SingleMessageMetadata by hand against protobuf."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pulsar_sansio.model.errors import FrameError, InvalidMessage
from pulsar_sansio.wire import (
    EncryptionKey,
    MessageMetadata,
    MetadataDecoder,
    SingleMessageMetadata,
    decode_single_metadata,
    encode_message_metadata,
    encode_single_metadata,
    proto,
)
from tests.wire import oracle

Record = MessageMetadata | SingleMessageMetadata

MESSAGE_FIELDS = [field.name for field in proto.MessageMetadata.DESCRIPTOR.fields]
SINGLE_FIELDS = [field.name for field in proto.SingleMessageMetadata.DESCRIPTOR.fields]


def _plain(value: Any) -> Any:
    """A value of protobuf as the records have it."""
    if isinstance(value, proto.KeyValue):
        return oracle.text(value.key), oracle.text(value.value)
    if isinstance(value, proto.EncryptionKeys):
        return EncryptionKey(oracle.text(value.key), value.value, tuple(map(_plain, value.metadata)))
    return value


def check(record: Record, meaning: Any) -> None:
    """Every field of the schema: presence, and the value or the default."""
    for field in meaning.DESCRIPTOR.fields:
        value = getattr(record, field.name)
        if field.is_repeated:
            expected = [
                oracle.text(item) if field.type == field.TYPE_STRING else _plain(item)
                for item in getattr(meaning, field.name)
            ]
            assert list(value) == expected
        elif meaning.HasField(field.name):
            expected = getattr(meaning, field.name)
            assert value == (oracle.text(expected) if field.type == field.TYPE_STRING else expected)
            assert record.has(field.name)
        elif not record.has(field.name):
            assert value in (None, field.default_value)
        else:
            # Protobuf hides a codec the schema does not know; here it stays the number it is.
            assert field.name == "compression"
            assert value > 4 or value < 0


def record_of(message: Any) -> Record:
    """The record with the fields of a message of protobuf, made without any bytes."""
    fields: dict[str, Any] = {}
    for field, value in message.ListFields():
        fields[field.name] = [_plain(item) for item in value] if field.is_repeated else value
    if isinstance(message, proto.MessageMetadata):
        return MessageMetadata(**fields)
    return SingleMessageMetadata(**fields)


@given(oracle.messages(proto.MessageMetadata))
def test_metadata_is_written_as_protobuf_writes_it(message: Any) -> None:
    record = record_of(message)
    assert isinstance(record, MessageMetadata)
    data = encode_message_metadata(record)
    assert data == message.SerializeToString()
    assert MetadataDecoder().decode(data) == record


@given(oracle.messages(proto.SingleMessageMetadata))
def test_single_metadata_is_written_as_protobuf_writes_it(message: Any) -> None:
    record = record_of(message)
    assert isinstance(record, SingleMessageMetadata)
    data = encode_single_metadata(record)
    assert data == message.SerializeToString()
    assert decode_single_metadata(data) == record


@given(oracle.written(proto.MessageMetadata))
def test_metadata_means_what_protobuf_reads(written: oracle.Written) -> None:
    """Rule INV-D3."""
    record = MetadataDecoder().decode(written.data)
    check(record, written.meaning)
    assert record.unknown == written.unknown(set(range(1, 33)))
    data = encode_message_metadata(record)
    assert MetadataDecoder().decode(data) == record
    assert data == written.meaning.SerializeToString()[: len(data) - len(record.unknown)] + record.unknown


@given(oracle.written(proto.SingleMessageMetadata))
def test_single_metadata_means_what_protobuf_reads(written: oracle.Written) -> None:
    record = decode_single_metadata(written.data)
    check(record, written.meaning)
    assert record.unknown == written.unknown(set(range(1, 11)))
    data = encode_single_metadata(record)
    assert decode_single_metadata(data) == record
    assert data == written.meaning.SerializeToString()[: len(data) - len(record.unknown)] + record.unknown


@given(oracle.damaged(proto.MessageMetadata))
def test_damaged_metadata_is_refused_exactly_when_protobuf_refuses_it(data: bytes) -> None:
    meaning = oracle.read(proto.MessageMetadata, data)
    if meaning is None:
        with pytest.raises(FrameError):
            MetadataDecoder().decode(data)
    else:
        check(MetadataDecoder().decode(data), meaning)


@given(oracle.damaged(proto.SingleMessageMetadata))
def test_damaged_single_metadata_is_refused_exactly_when_protobuf_refuses_it(data: bytes) -> None:
    meaning = oracle.read(proto.SingleMessageMetadata, data)
    if meaning is None:
        with pytest.raises(FrameError):
            decode_single_metadata(data)
    else:
        check(decode_single_metadata(data), meaning)


# --- the fast path through metadata -----------------------------------------------------------------

NUMBERS = st.sampled_from([0, 1, 127, 128, 16383, 16384, 2**35 - 1, 2**35, 1_763_740_000_123, 2**42, 2**63])

USUAL = st.builds(
    proto.MessageMetadata,
    producer_name=st.sampled_from(["", "p", "standalone-0-17", "x" * 127, "x" * 128]),
    sequence_id=NUMBERS,
    publish_time=NUMBERS,
    uncompressed_size=st.none() | st.sampled_from([0, 5, 100, 70_000]),
    partition_key=st.none() | st.sampled_from(["", "key-1"]),
    num_messages_in_batch=st.none() | st.sampled_from([-1, 1, 1000]),
    highest_sequence_id=st.none() | NUMBERS,
    replicate_to=st.sampled_from([[], ["__local__"]]),
)


@settings(max_examples=25)
@given(st.lists(USUAL, min_size=2, max_size=8))
def test_usual_metadata_is_read_right_whatever_came_before(messages: list[Any]) -> None:
    for message in messages * 2:
        check(MetadataDecoder().decode(message.SerializeToString()), message)


@given(
    USUAL,
    st.lists(st.tuples(st.integers(0, 40), st.integers(0, 255)), min_size=1, max_size=2),
    st.integers(0, 9),
)
def test_metadata_like_the_last_but_for_some_bytes_is_not_taken_for_it(
    message: Any, changes: list[tuple[int, int]], cut: int
) -> None:
    data = bytearray(message.SerializeToString())
    MetadataDecoder().decode(bytes(data))
    for offset, byte in changes:
        data[offset % len(data)] = byte
    changed = bytes(data[: len(data) - cut])
    meaning = oracle.read(proto.MessageMetadata, changed)
    if meaning is None:
        with pytest.raises(FrameError):
            MetadataDecoder().decode(changed)
    else:
        check(MetadataDecoder().decode(changed), meaning)


def test_a_sequence_id_without_an_end_is_refused() -> None:
    MetadataDecoder().decode(b"\x0a\x01p\x10\x00\x18\x85\x85\x85\x85\x85\x05")
    for size in range(1, 13):
        with pytest.raises(FrameError):
            MetadataDecoder().decode(b"\x0a\x01p\x10" + b"\xff" * size)


def test_lists_are_not_shared_between_messages() -> None:
    data = MessageMetadata("p", 1, 1_763_740_000_123, replicate_to=["a"]).encode()
    decoder = MetadataDecoder()
    first = decoder.decode(data)
    assert isinstance(first.replicate_to, list)
    first.replicate_to.append("b")
    assert decoder.decode(data).replicate_to == ["a"]


def test_records_are_not_shared_between_messages() -> None:
    data = MessageMetadata("p", 1, 1_763_740_000_123, uncompressed_size=7).encode()
    decoder = MetadataDecoder()
    first = decoder.decode(data)
    first.uncompressed_size = 8
    assert decoder.decode(data).uncompressed_size == 7


def test_more_names_times_and_tails_than_are_remembered() -> None:
    decoder = MetadataDecoder()
    for number in range(1100):
        metadata = MessageMetadata(f"p{number}", 1, 1_763_740_000_000 + number, uncompressed_size=number)
        assert decoder.decode(metadata.encode()) == metadata


def test_unknown_fields_of_short_metadata_are_remembered_with_it() -> None:
    data = MessageMetadata("p", 1, 1_763_740_000_123, uncompressed_size=7).encode() + b"\x88\x02\x07"
    for _ in range(3):
        assert MetadataDecoder().decode(data).unknown == b"\x88\x02\x07"


# --- presence, defaults and text -------------------------------------------------------------------


def test_what_is_not_set_reads_as_the_default_and_is_not_written() -> None:
    metadata = MessageMetadata("p", 0, 1)
    assert metadata.event_time == 0
    assert metadata.compression == 0
    assert metadata.properties == ()
    assert metadata.num_messages_in_batch is None
    assert metadata.encode() == b"\x0a\x01p\x10\x00\x18\x01"


def test_presence_is_what_was_set() -> None:
    metadata = MessageMetadata("p", 0, 1)
    metadata.event_time = 0
    assert metadata.has("event_time")
    assert metadata.encode().endswith(b"\x60\x00")
    metadata.event_time = None  # type: ignore[assignment]
    assert not metadata.has("event_time")
    assert metadata == MessageMetadata("p", 0, 1)


def test_none_given_to_the_constructor_is_absence() -> None:
    single = SingleMessageMetadata(1, sequence_id=None, partition_key=None)
    assert single == SingleMessageMetadata(1)
    assert single.encode() == b"\x18\x01"


def test_text_that_is_not_utf8_is_kept() -> None:
    pair = b"\x0a\x02a\xff\x12\x01\xfe"
    data = b"\x0a\x02\xffp\x10\x00\x18\x01\x22" + bytes([len(pair)]) + pair
    metadata = MetadataDecoder().decode(data)
    assert metadata.producer_name == "\udcffp"
    assert list(metadata.properties) == [("a\udcff", "\udcfe")]
    assert encode_message_metadata(metadata) == data


def test_text_without_a_utf8_form_is_the_callers_mistake() -> None:
    with pytest.raises(InvalidMessage, match="UTF-8"):
        encode_single_metadata(SingleMessageMetadata(1, partition_key="\ud800"))


def test_an_unknown_codec_stays_a_number() -> None:
    metadata = MetadataDecoder().decode(MessageMetadata("p", 0, 1, compression=99).encode())
    assert metadata.compression == 99


def test_fields_of_a_later_schema_are_kept() -> None:
    data = MessageMetadata("p", 0, 1).encode() + b"\x88\x02\x07\x90\x02\x09"
    metadata = MetadataDecoder().decode(data)
    assert metadata.unknown == b"\x88\x02\x07\x90\x02\x09"
    assert encode_message_metadata(metadata) == data


@pytest.mark.parametrize("name", ["producer_name", "sequence_id", "publish_time"])
def test_a_missing_required_field_is_refused(name: str) -> None:
    message = proto.MessageMetadata(producer_name="p", sequence_id=1, publish_time=2)
    message.ClearField(name)
    with pytest.raises(FrameError, match=name):
        MetadataDecoder().decode(message.SerializePartialToString())


def test_single_metadata_without_a_size_is_refused() -> None:
    with pytest.raises(FrameError, match="payload_size"):
        decode_single_metadata(b"\x40\x01")


def test_repr_names_what_is_present() -> None:
    assert (
        repr(SingleMessageMetadata(3, sequence_id=9))
        == "SingleMessageMetadata(payload_size=3, sequence_id=9)"
    )


def test_records_of_different_kinds_are_different() -> None:
    assert SingleMessageMetadata(3) != MessageMetadata("p", 0, 1)
