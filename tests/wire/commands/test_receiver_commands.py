"""ACK and FLOW: written and read by hand as protobuf writes and reads them."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsar_sansio.model.errors import FrameError
from pulsar_sansio.wire import (
    CUMULATIVE,
    INDIVIDUAL,
    Ack,
    Flow,
    MessageCommand,
    encode_ack,
    encode_flow,
    proto,
    words_from_bits,
)
from pulsar_sansio.wire.command_frame import ACK, FLOW, frame_command
from tests.wire import oracle
from tests.wire.commands.test_delivery_commands import SETS, SIGNED, UINT64, bits, decode, frame_of


@given(
    st.tuples(
        UINT64,
        st.sampled_from([INDIVIDUAL, CUMULATIVE]),
        st.lists(st.tuples(SIGNED, SIGNED, SETS), max_size=5),
        st.none() | st.sampled_from([0, 1, 2, 3, 4]),
        st.none() | UINT64,
        st.none() | UINT64,
        st.none() | UINT64,
    ).map(lambda fields: Ack(*fields))
)
def test_ack_is_written_as_protobuf_writes_it(ack: Ack) -> None:
    expected = proto.CommandAck(consumer_id=ack.consumer_id)
    expected.ack_type = ack.ack_type  # type: ignore[assignment]
    for ledger, entry, ack_set in ack.message_ids:
        position = expected.message_id.add(ledgerId=ledger % 2**64, entryId=entry % 2**64)
        if ack_set is not None:
            position.ack_set.extend(words_from_bits(ack_set))
    for name in ("validation_error", "request_id", "txnid_least_bits", "txnid_most_bits"):
        if getattr(ack, name) is not None:
            setattr(expected, name, getattr(ack, name))
    frame = ack.encode()
    assert frame == frame_of(expected)
    assert encode_ack(*ack) == frame
    assert decode(frame) == ack


@given(oracle.written(proto.CommandAck))
def test_ack_means_what_protobuf_reads(written: oracle.Written) -> None:
    ack = decode(frame_command(ACK, written.data))
    assert isinstance(ack, Ack)
    check_ack(ack, written.meaning)
    assert ack.rest == written.unknown(set(range(1, 9)))
    again = decode(ack.encode())
    assert again == ack
    frame = ack.encode()
    reread = proto.BaseCommand.FromString(frame[8:]).ack
    assert list(reread.properties) == list(written.meaning.properties)
    assert [p.batch_size for p in reread.message_id] == [p.batch_size for p in written.meaning.message_id]


def check_ack(ack: Ack, meaning: Any) -> None:
    assert (ack.consumer_id, ack.ack_type) == (meaning.consumer_id, meaning.ack_type)
    assert ack.message_ids == [
        (oracle.signed(p.ledgerId), oracle.signed(p.entryId), bits(p.ack_set)) for p in meaning.message_id
    ]
    assert list(ack.properties) == [(oracle.text(p.key), p.value) for p in meaning.properties]
    for name in ("validation_error", "request_id", "txnid_least_bits", "txnid_most_bits"):
        assert getattr(ack, name) == oracle.optional(meaning, name)


@pytest.mark.parametrize(
    "position", [b"\x10\x06\x08\x05", b"\x08\x05\x18\x01\x10\x06", b"\x08\x05\x10\x06\x18\x01"]
)
def test_positions_with_their_fields_in_any_order(position: bytes) -> None:
    body = b"\x08\x01\x10\x00\x1a" + bytes([len(position)]) + position
    assert decode(frame_command(ACK, body)).message_ids == [(5, 6, None)]


def test_an_empty_set_is_not_no_set() -> None:
    assert decode(encode_ack(1, INDIVIDUAL, [(5, 6, 0)])).message_ids == [(5, 6, 0)]
    assert decode(MessageCommand(1, 5, 6, ack_set=0).encode()).ack_set == 0


def test_an_unknown_ack_type_is_refused() -> None:
    with pytest.raises(FrameError, match="ack_type 2"):
        decode(encode_ack(1, 2, [(5, 6, None)]))


@given(UINT64, st.integers(0, 2**32 - 1))
def test_flow_is_written_as_protobuf_writes_it(consumer_id: int, permits: int) -> None:
    frame = encode_flow(consumer_id, permits)
    assert frame == frame_of(proto.CommandFlow(consumer_id=consumer_id, messagePermits=permits))
    assert decode(frame) == Flow(consumer_id, permits)
    assert Flow(consumer_id, permits).encode() == frame


@given(oracle.written(proto.CommandFlow))
def test_flow_means_what_protobuf_reads(written: oracle.Written) -> None:
    flow = decode(frame_command(FLOW, written.data))
    assert flow == Flow(written.meaning.consumer_id, written.meaning.messagePermits, written.unknown({1, 2}))
    assert decode(flow.encode()) == flow


@given(oracle.damaged(proto.CommandAck))
def test_damaged_acks_are_refused_exactly_when_protobuf_refuses_them(data: bytes) -> None:
    meaning = oracle.read(proto.CommandAck, data)
    if meaning is None:
        with pytest.raises(FrameError):
            decode(frame_command(ACK, data))
        return
    try:
        ack = decode(frame_command(ACK, data))
    except FrameError as error:
        # Protobuf passes over an enum value it does not know and keeps the one before.
        if "unknown ack_type" in str(error):
            return
        raise
    if ack.validation_error in (None, 0, 1, 2, 3, 4):  # an error of the future is no error of ours
        check_ack(ack, meaning)
