"""SEND and SEND_RECEIPT by hand against protobuf."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pulsar_sansio.model.errors import FrameError
from pulsar_sansio.wire import Send, SendReceipt, encode_send, encode_send_receipt, proto
from pulsar_sansio.wire.command_frame import JOIN_LIMIT, SEND, SEND_RECEIPT, frame_command
from tests.wire import oracle
from tests.wire.commands.test_delivery_commands import (
    SIGNED,
    UINT64,
    bytes_kept_of,
    decode,
    frame_command_with,
    frame_of,
)

SEND_FIELDS = ("txnid_least_bits", "txnid_most_bits", "highest_sequence_id")

# --- SEND ------------------------------------------------------------------------------------------


@given(
    st.tuples(
        UINT64,
        UINT64,
        st.integers(-(2**31), 2**31 - 1) | st.just(1),
        st.none() | UINT64,
        st.none() | UINT64,
        st.none() | UINT64,
        st.booleans(),
        st.booleans(),
        st.none() | oracle.messages(proto.MessageIdData).map(lambda m: m.SerializeToString()),
        st.binary(max_size=9),
    ).map(lambda fields: Send(*fields))
)
def test_send_is_written_as_protobuf_writes_it(send: Send) -> None:
    expected = proto.CommandSend(producer_id=send.producer_id, sequence_id=send.sequence_id)
    if send.num_messages != 1:
        expected.num_messages = send.num_messages
    for name in SEND_FIELDS:
        if getattr(send, name) is not None:
            setattr(expected, name, getattr(send, name))
    if send.marker:
        expected.marker = True
    if send.is_chunk:
        expected.is_chunk = True
    if send.message_id is not None:
        expected.message_id.MergeFromString(send.message_id)
    frame = send.encode()
    assert frame == frame_of(expected, send.payload)
    assert decode(frame) == send


@given(oracle.written(proto.CommandSend), st.binary(max_size=5))
def test_send_means_what_protobuf_reads(written: oracle.Written, payload: bytes) -> None:
    send = decode(frame_command_with(SEND, written.data, payload))
    assert isinstance(send, Send)
    check_send(send, written.meaning)
    assert send.payload == payload
    assert send.rest == written.unknown(set(range(1, 10)))
    assert decode(send.encode()) == send


def check_send(send: Send, meaning: Any) -> None:
    assert send[:3] == (meaning.producer_id, meaning.sequence_id, meaning.num_messages)
    for name in SEND_FIELDS:
        assert getattr(send, name) == oracle.optional(meaning, name)
    assert (send.marker, send.is_chunk) == (meaning.marker, meaning.is_chunk)
    assert (send.message_id is not None) == meaning.HasField("message_id")
    if send.message_id is not None:
        assert proto.MessageIdData.FromString(send.message_id) == meaning.message_id


@given(UINT64, UINT64, st.integers(1, 1000), st.none() | UINT64, st.lists(st.binary(max_size=9), max_size=3))
def test_encode_send_is_the_record(
    producer_id: int, sequence_id: int, count: int, highest: int | None, chunks: list[bytes]
) -> None:
    payload = b"".join(chunks)
    frame = encode_send(producer_id, sequence_id, count, highest, chunks, len(payload))
    assert frame == Send(producer_id, sequence_id, count, highest, payload=payload).encode()


def test_a_large_payload_is_handed_on_without_a_copy() -> None:
    payload = bytes(JOIN_LIMIT)
    chunks = encode_send(1, 2, 1, None, [b"head", payload], len(payload) + 4)
    assert isinstance(chunks, list)
    assert chunks[-1] is payload
    assert b"".join(chunks) == Send(1, 2, payload=b"head" + payload).encode()


# --- SEND_RECEIPT ----------------------------------------------------------------------------------


@given(UINT64, UINT64, st.none() | st.tuples(SIGNED, SIGNED), st.none() | UINT64)
def test_receipt_is_written_as_protobuf_writes_it(
    producer_id: int, sequence_id: int, position: tuple[int, int] | None, highest: int | None
) -> None:
    expected = proto.CommandSendReceipt(producer_id=producer_id, sequence_id=sequence_id)
    ledger = entry = None
    if position is not None:
        ledger, entry = position
        expected.message_id.ledgerId = ledger % 2**64
        expected.message_id.entryId = entry % 2**64
    if highest is not None:
        expected.highest_sequence_id = highest
    receipt = SendReceipt(producer_id, sequence_id, ledger, entry, highest)
    frame = encode_send_receipt(producer_id, sequence_id, ledger, entry, highest)
    assert frame == receipt.encode() == frame_of(expected)
    assert decode(frame) == receipt


def test_a_receipt_for_a_duplicate_has_the_position_minus_one() -> None:
    receipt = decode(encode_send_receipt(1, 2, -1, -1, 2**64 - 1))
    assert receipt == SendReceipt(1, 2, -1, -1, 2**64 - 1)


@given(oracle.written(proto.CommandSendReceipt))
def test_receipt_means_what_protobuf_reads(written: oracle.Written) -> None:
    receipt = decode(frame_command(SEND_RECEIPT, written.data))
    assert isinstance(receipt, SendReceipt)
    check_receipt(receipt, written.meaning)
    assert receipt.rest == written.unknown({1, 2, 3, 4})
    frame = receipt.encode()
    assert decode(frame) == receipt
    reread = proto.BaseCommand.FromString(frame[8:]).send_receipt
    if written.meaning.HasField("message_id"):
        for name in ("partition", "batch_index", "batch_size", "first_chunk_message_id"):
            assert oracle.optional(reread.message_id, name) == oracle.optional(
                written.meaning.message_id, name
            )


def check_receipt(receipt: SendReceipt, meaning: Any) -> None:
    position = meaning.message_id
    present = meaning.HasField("message_id")
    assert receipt[:5] == (
        meaning.producer_id,
        meaning.sequence_id,
        oracle.signed(position.ledgerId) if present else None,
        oracle.signed(position.entryId) if present else None,
        oracle.optional(meaning, "highest_sequence_id"),
    )


@pytest.mark.parametrize(
    "position", [b"\x10\x06\x08\x05", b"\x08\x05\x18\x01\x10\x06", b"\x08\x05\x10\x06\x18\x01"]
)
def test_positions_with_their_fields_in_any_order(position: bytes) -> None:
    body = b"\x08\x01\x10\x02\x1a" + bytes([len(position)]) + position
    assert decode(frame_command(SEND_RECEIPT, body))[:4] == (1, 2, 5, 6)


LENGTHS = st.sampled_from([0, 5, 127, 128, 16383, 16384, 2**21, 2**28 - 1, 2**28])


@settings(max_examples=40)
@given(
    st.lists(
        st.tuples(
            st.sampled_from([0, 1, 200]),
            LENGTHS,
            st.sampled_from([5, 300, 2**33, -1]),
            LENGTHS,
            st.sampled_from([None, 0, 9, 2**64 - 1]),
        ),
        min_size=2,
        max_size=12,
    )
)
def test_receipts_much_like_the_last_are_still_read_right(rows: list[tuple[Any, ...]]) -> None:
    for row in rows * 2:
        receipt = SendReceipt(*row)
        assert decode(receipt.encode()) == receipt


@given(
    LENGTHS,
    LENGTHS,
    st.lists(st.tuples(st.integers(0, 30), st.integers(0, 255)), min_size=1, max_size=3),
)
def test_a_receipt_like_the_last_but_for_some_bytes_is_not_taken_for_it(
    sequence_id: int, entry_id: int, changes: list[tuple[int, int]]
) -> None:
    frame = SendReceipt(1, sequence_id, 300, entry_id, 2**64 - 1).encode()
    assert decode(frame)[:4] == (1, sequence_id, 300, entry_id)
    changed = bytearray(frame)
    for offset, byte in changes:
        if 12 + offset < len(frame):
            changed[12 + offset] = byte
    meaning = oracle.read(proto.CommandSendReceipt, bytes(changed[12:]))
    if meaning is None:
        with pytest.raises(FrameError):
            decode(bytes(changed))
    else:
        check_receipt(decode(bytes(changed)), meaning)


def test_more_producers_than_are_remembered() -> None:
    for ledger in range(40, 1300):
        receipt = SendReceipt(ledger % 128, ledger, 2**49 >> ledger % 49, 5)
        assert decode(receipt.encode()) == receipt


def test_a_receipt_stuffed_with_repeated_fields_is_not_remembered() -> None:
    """Anybody can send one, before the handshake too; a thousand of them would be gigabytes."""
    front = b"\x10\x05\x1a\x04\x08\x01\x10\x02"
    assert bytes_kept_of(SEND_RECEIPT, lambda i: bytes([8, i]) + front + b"\x20\x05" * 50_000) < 50_000


# --- damage ----------------------------------------------------------------------------------------


@given(oracle.damaged(proto.CommandSend))
def test_damaged_sends_are_refused_exactly_when_protobuf_refuses_them(data: bytes) -> None:
    meaning = oracle.read(proto.CommandSend, data)
    if meaning is None:
        with pytest.raises(FrameError):
            decode(frame_command(SEND, data))
    else:
        check_send(decode(frame_command(SEND, data)), meaning)


@given(oracle.damaged(proto.CommandSendReceipt))
def test_damaged_receipts_are_refused_exactly_when_protobuf_refuses_them(data: bytes) -> None:
    meaning = oracle.read(proto.CommandSendReceipt, data)
    if meaning is None:
        with pytest.raises(FrameError):
            decode(frame_command(SEND_RECEIPT, data))
    else:
        check_receipt(decode(frame_command(SEND_RECEIPT, data)), meaning)
