"""Message ids as bytes, against protobuf and the form the Java client writes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsar_sansio.model.errors import InvalidMessage
from pulsar_sansio.model.message_id import EARLIEST, LATEST, MessageId
from pulsar_sansio.wire import decode_message_id, encode_message_id, encode_varint, proto
from tests.wire import oracle

NUMBERS = st.integers(-1, 2**63 - 1) | st.integers(-1, 300)
SMALL = st.integers(-1, 2**31 - 1)
CHUNKS = st.none() | st.tuples(NUMBERS, NUMBERS)


@given(st.builds(MessageId, NUMBERS, NUMBERS, SMALL, SMALL, st.integers(0, 2**31 - 1), CHUNKS))
def test_an_id_comes_back_with_every_part(message_id: MessageId) -> None:
    """Rule MSG-03."""
    assert tuple(decode_message_id(encode_message_id(message_id))) == tuple(message_id)


@pytest.mark.parametrize("message_id", [EARLIEST, LATEST, MessageId(12, 3, 5, 2, 10)])
def test_it_is_a_message_id_data(message_id: MessageId) -> None:
    data = proto.MessageIdData.FromString(encode_message_id(message_id))
    assert oracle.signed(data.ledgerId) == message_id.ledger_id
    assert oracle.signed(data.entryId) == message_id.entry_id
    assert (data.partition, data.batch_index) == (message_id.partition, message_id.batch_index)
    assert data.HasField("partition") == (message_id.partition >= 0)
    assert data.HasField("batch_size")


@given(oracle.written(proto.MessageIdData))
def test_ids_that_others_wrote_are_read(written: oracle.Written) -> None:
    meaning = written.meaning
    first = meaning.first_chunk_message_id
    assert tuple(decode_message_id(written.data)) == (
        oracle.signed(meaning.ledgerId),
        oracle.signed(meaning.entryId),
        meaning.partition,
        meaning.batch_index,
        meaning.batch_size,
        (oracle.signed(first.ledgerId), oracle.signed(first.entryId))
        if meaning.HasField("first_chunk_message_id")
        else None,
    )


@given(oracle.damaged(proto.MessageIdData))
def test_damaged_ids_are_refused_exactly_when_protobuf_refuses_them(data: bytes) -> None:
    if oracle.read(proto.MessageIdData, data) is None:
        with pytest.raises(InvalidMessage, match="not a message id"):
            decode_message_id(data)
    else:
        assert isinstance(decode_message_id(data), MessageId)


@pytest.mark.parametrize("data", [b"", b"\x08\x01", b"hello", b"\xff" * 30])
def test_what_is_no_id_is_the_callers_mistake(data: bytes) -> None:
    with pytest.raises(InvalidMessage, match="not a message id"):
        decode_message_id(data)


def test_any_kind_of_bytes_is_accepted() -> None:
    assert decode_message_id(bytearray(b"\x08\x0c\x10\x03")) == MessageId(12, 3)  # type: ignore[arg-type]


def test_ids_nested_without_an_end_in_sight_are_refused() -> None:
    data = b"\x08\x01\x10\x02"
    for _ in range(300):
        data = b"\x08\x01\x10\x02\x3a" + encode_varint(len(data)) + data
    with pytest.raises(InvalidMessage, match="nested"):
        decode_message_id(data)


def test_the_id_of_a_message_in_chunks_is_as_the_java_client_writes_it() -> None:
    data = bytes.fromhex("080c1006180530003a08080c100318053000")
    message_id = MessageId(12, 6, 5, first_chunk=(12, 3))
    assert encode_message_id(message_id) == data
    assert decode_message_id(data) == message_id
    assert decode_message_id(data).first_chunk == (12, 3)
