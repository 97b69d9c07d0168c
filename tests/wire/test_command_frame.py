"""The frame around a hot command, compared with protobuf's encoding of a whole BaseCommand."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsar_sansio.model.errors import FrameError
from pulsar_sansio.wire import command_frame, proto
from pulsar_sansio.wire.command_frame import build_frame, check_no_payload, command_tag, frame_command


def test_the_numbers_are_those_of_the_wire_schema() -> None:
    for name in ("SEND", "SEND_RECEIPT", "MESSAGE", "ACK", "FLOW"):
        number = getattr(command_frame, name)
        assert number == proto.BaseCommand.Type.Value(name)
        field = proto.BaseCommand.DESCRIPTOR.fields_by_number[number]
        assert field.name == name.lower()


@given(st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1))
def test_a_frame_is_a_base_command_behind_its_sizes(consumer_id: int, permits: int) -> None:
    flow = proto.CommandFlow(consumer_id=consumer_id, messagePermits=permits)
    command = proto.BaseCommand(type=proto.BaseCommand.FLOW, flow=flow).SerializeToString()
    frame = frame_command(command_frame.FLOW, flow.SerializeToString())
    assert frame == struct.pack(">II", len(command) + 4, len(command)) + command


@pytest.mark.parametrize("size", [0, 127, 128, 16383, 16384, 70_000])
def test_a_body_of_any_size_has_its_length_in_front(size: int) -> None:
    body = bytes(size)
    frame = build_frame(command_tag(11), body, payload_size=9)
    total, command_size = struct.unpack_from(">II", frame)
    assert (total, command_size) == (command_size + 4 + 9, len(frame) - 8)
    assert frame.endswith(body)
    parsed = proto.BaseCommand.FromString(frame_command(59, b"")[8:])
    assert parsed.type == 59


def test_numbers_beyond_one_byte_have_tags_too() -> None:
    assert command_tag(64) == b"\x08\x40\x82\x04"


def test_bytes_behind_a_command_without_a_payload_are_refused() -> None:
    check_no_payload(11, 20, 20)
    with pytest.raises(FrameError, match="a command of type 11 is followed by bytes"):
        check_no_payload(11, 20, 21)
