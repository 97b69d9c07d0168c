"""MESSAGE, ACK and FLOW by hand against protobuf."""

import tracemalloc
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pulsar_sansio.model.errors import FrameError
from pulsar_sansio.wire import (
    Flow,
    FrameDecoder,
    MessageCommand,
    bits_from_words,
    encode_flow,
    encode_message,
    max_frame_size,
    proto,
    words_from_bits,
)
from pulsar_sansio.wire.command_frame import FLOW, MESSAGE, frame_command
from tests.wire import oracle

LIMIT = max_frame_size()
UINT64 = st.integers(0, 2**64 - 1) | st.integers(0, 300)
SIGNED = st.integers(-(2**63), 2**63 - 1) | st.integers(-1, 300)
SETS = st.none() | st.integers(1, 2**130)


def frame_of(command: Any, payload: bytes = b"") -> bytes:
    """The frame protobuf makes of a command, by its class."""
    base = proto.BaseCommand()
    field = next(field for field in base.DESCRIPTOR.fields if field.message_type is command.DESCRIPTOR)
    base.type = field.number  # type: ignore[assignment]
    getattr(base, field.name).CopyFrom(command)
    data = base.SerializeToString()
    return (len(data) + 4 + len(payload)).to_bytes(4, "big") + len(data).to_bytes(4, "big") + data + payload


def decode(frame: bytes) -> Any:
    """The command in `frame`, which must be one whole frame."""
    found = FrameDecoder().decode(frame, 0, LIMIT)
    assert found is not None
    assert found[2] == len(frame)
    return found[1]


def bits(words: Any) -> int | None:
    return bits_from_words(words) if words else None


# --- MESSAGE ---------------------------------------------------------------------------------------


@given(
    st.tuples(
        UINT64,
        SIGNED,
        SIGNED,
        st.integers(-(2**31), 2**31 - 1),
        st.integers(-(2**31), 2**31 - 1),
        st.integers(0, 2**32 - 1),
        SETS,
        st.none() | UINT64,
        st.binary(max_size=9),
    ).map(lambda fields: MessageCommand(*fields))
)
def test_message_is_written_as_protobuf_writes_it(command: MessageCommand) -> None:
    expected = proto.CommandMessage(consumer_id=command.consumer_id)
    expected.message_id.ledgerId = command.ledger_id % 2**64
    expected.message_id.entryId = command.entry_id % 2**64
    expected.message_id.partition = command.partition
    if command.batch_index != -1:
        expected.message_id.batch_index = command.batch_index
    if command.redelivery_count:
        expected.redelivery_count = command.redelivery_count
    if command.ack_set is not None:
        expected.ack_set.extend(words_from_bits(command.ack_set))
    if command.consumer_epoch is not None:
        expected.consumer_epoch = command.consumer_epoch
    frame = command.encode()
    assert frame == frame_of(expected, command.payload)
    assert b"".join(encode_message(*command[:9])) == frame
    assert decode(frame) == command


@given(oracle.written(proto.CommandMessage), st.binary(max_size=5))
def test_message_means_what_protobuf_reads(written: oracle.Written, payload: bytes) -> None:
    frame = frame_command_with(MESSAGE, written.data, payload)
    command = decode(frame)
    assert isinstance(command, MessageCommand)
    check_message(command, written.meaning)
    assert command.payload == payload
    assert command.rest == written.unknown({1, 2, 3, 4, 5})
    again = decode(command.encode())
    assert again == command
    body = command.encode()
    reread = proto.BaseCommand.FromString(body[8 : 8 + int.from_bytes(body[4:8], "big")]).message
    for name in ("batch_size", "first_chunk_message_id"):
        assert oracle.optional(reread.message_id, name) == oracle.optional(written.meaning.message_id, name)
    assert list(reread.message_id.ack_set) == list(written.meaning.message_id.ack_set)


def check_message(command: MessageCommand, meaning: Any) -> None:
    position = meaning.message_id
    assert command[:8] == (
        meaning.consumer_id,
        oracle.signed(position.ledgerId),
        oracle.signed(position.entryId),
        position.partition,
        position.batch_index,
        meaning.redelivery_count,
        bits(meaning.ack_set),
        oracle.optional(meaning, "consumer_epoch"),
    )


def frame_command_with(number: int, body: bytes, payload: bytes = b"") -> bytes:
    frame = frame_command(number, body)
    size = int.from_bytes(frame[:4], "big") + len(payload)
    return size.to_bytes(4, "big") + frame[4:] + payload


@settings(max_examples=40)
@given(
    st.lists(
        st.tuples(
            st.sampled_from([0, 1, 200]),
            st.sampled_from([5, 6, 300, 2**33]),
            st.integers(0, 2**30) | st.sampled_from([0, 127, 128, 16383, 16384, 2**21, 2**28 - 1, 2**28]),
            st.sampled_from([-1, 0, 7]),
            st.sampled_from([0, 3]),
            st.sampled_from([None, 0, 9]),
        ),
        min_size=2,
        max_size=12,
    )
)
def test_messages_much_like_the_last_are_still_read_right(rows: list[tuple[Any, ...]]) -> None:
    for consumer, ledger, entry, partition, count, epoch in rows:
        command = MessageCommand(consumer, ledger, entry, partition, -1, count, None, epoch, b"p")
        assert decode(command.encode()) == command


@given(
    st.integers(0, 2**28),
    st.lists(st.tuples(st.integers(0, 40), st.integers(0, 255)), min_size=1, max_size=3),
)
def test_a_message_like_the_last_but_for_one_byte_is_not_taken_for_it(
    entry: int, changes: list[tuple[int, int]]
) -> None:
    frame = MessageCommand(1, 300, entry, -1, -1, 2, None, 5, b"p").encode()
    assert decode(frame)[:3] == (1, 300, entry)
    changed = bytearray(frame)
    for offset, byte in changes:
        if 12 + offset < len(frame) - 1:
            changed[12 + offset] = byte
    meaning = oracle.read(proto.CommandMessage, bytes(changed[12:-1]))
    if meaning is None:
        with pytest.raises(FrameError):
            decode(bytes(changed))
    else:
        check_message(decode(bytes(changed)), meaning)


def test_more_consumers_than_are_remembered() -> None:
    for ledger in range(40, 1300):
        command = MessageCommand(ledger % 200, ledger, 5, payload=b"p")
        assert decode(command.encode()) == command


def bytes_kept_of(number: int, body: Callable[[int], bytes]) -> int:
    """Return the bytes of memory that decoding ten commands of 100 KB leaves behind."""
    decode(frame_command(number, body(0)))
    tracemalloc.start()
    try:
        for index in range(10):
            decode(frame_command(number, body(index)))
        return tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()


def test_a_command_stuffed_with_repeated_fields_is_not_remembered() -> None:
    """Anybody can send one, before the handshake too; a thousand of them would be gigabytes."""
    position = b"\x12\x04\x08\x01\x10\x02"
    assert bytes_kept_of(MESSAGE, lambda index: bytes([8, index]) * 50_000 + position) < 50_000
    assert bytes_kept_of(MESSAGE, lambda index: bytes([8, index]) + position + b"\x18\x01" * 50_000) < 50_000


# --- ACK -------------------------------------------------------------------------------------------


# --- FLOW ------------------------------------------------------------------------------------------


@given(UINT64, st.integers(0, 2**32 - 1))
def test_flow_is_written_as_protobuf_writes_it(consumer_id: int, permits: int) -> None:
    """Rule WIRE-10."""
    frame = encode_flow(consumer_id, permits)
    assert frame == frame_of(proto.CommandFlow(consumer_id=consumer_id, messagePermits=permits))
    assert decode(frame) == Flow(consumer_id, permits)
    assert Flow(consumer_id, permits).encode() == frame


@given(oracle.written(proto.CommandFlow))
def test_flow_means_what_protobuf_reads(written: oracle.Written) -> None:
    flow = decode(frame_command(FLOW, written.data))
    assert flow == Flow(written.meaning.consumer_id, written.meaning.messagePermits, written.unknown({1, 2}))
    assert decode(flow.encode()) == flow


# --- damage ----------------------------------------------------------------------------------------


@given(oracle.damaged(proto.CommandMessage))
def test_damaged_messages_are_refused_exactly_when_protobuf_refuses_them(data: bytes) -> None:
    meaning = oracle.read(proto.CommandMessage, data)
    if meaning is None:
        with pytest.raises(FrameError):
            decode(frame_command(MESSAGE, data))
    else:
        check_message(decode(frame_command(MESSAGE, data)), meaning)
