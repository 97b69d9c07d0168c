"""Frames: where they end, which are refused and why, and that protobuf's odd layouts are understood."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pulsar_sansio.model.errors import FrameError
from pulsar_sansio.wire import (
    Flow,
    FrameDecoder,
    MessageCommand,
    Send,
    SendReceipt,
    encode_command,
    encode_flow,
    encode_ping,
    encode_pong,
    encode_send_receipt,
    max_frame_size,
    proto,
)
from tests.wire import oracle
from tests.wire.commands.test_delivery_commands import frame_command_with
from tests.work import check_in_proportion

LIMIT = max_frame_size()
PING, PONG, ERROR, SUCCESS, LOOKUP = 18, 19, 14, 13, 23

COMMANDS = [field for field in proto.BaseCommand.DESCRIPTOR.fields if field.message_type is not None]
COLD = [field for field in COMMANDS if field.number not in (6, 7, 9, 10, 11)]


def frame(command: bytes, payload: bytes = b"") -> bytes:
    """A frame around the bytes of a BaseCommand."""
    return (
        (len(command) + 4 + len(payload)).to_bytes(4, "big")
        + len(command).to_bytes(4, "big")
        + command
        + payload
    )


def decode(data: bytes) -> tuple[int, Any]:
    found = FrameDecoder().decode(data, 0, LIMIT)
    assert found is not None
    assert found[2] == len(data)
    return found[0], found[1]


# --- whole frames ----------------------------------------------------------------------------------


def test_the_limit_counts_the_size_field_too() -> None:
    assert max_frame_size() == 5 * 1024 * 1024 + 10 * 1024 - 4
    assert max_frame_size(1000) == 1000 + 10 * 1024 - 4


def test_ping_and_pong() -> None:
    assert encode_ping().hex() == "00000009000000050812920100"
    assert decode(encode_ping()) == (PING, proto.CommandPing())
    assert decode(encode_pong()) == (PONG, proto.CommandPong())


@pytest.mark.parametrize("field", COLD, ids=lambda field: str(field.name))
def test_every_cold_command_comes_back(field: Any) -> None:
    @settings(max_examples=8)
    @given(oracle.messages(field.message_type._concrete_class))
    def comes_back(command: Any) -> None:
        data = encode_command(field.number, command)
        assert decode(data) == (field.number, command)
        base = proto.BaseCommand(type=field.number)
        getattr(base, field.name).CopyFrom(command)
        assert data == frame(base.SerializeToString())

    comes_back()


@settings(max_examples=30)
@given(
    st.lists(
        st.sampled_from(
            [
                encode_ping(),
                encode_flow(3, 500),
                encode_send_receipt(1, 2, 3, 4),
                Send(1, 2, payload=b"\x0e\x01" + bytes(30)).encode(),
                MessageCommand(1, 2, 3, payload=bytes(300)).encode(),
                frame(b"\x08\x63"),
                frame(b"\x08\x63\x9a\x06\x01x", b"payload"),
                encode_command(ERROR, proto.CommandError(request_id=2**64 - 1, error=3, message="é")),  # type: ignore[arg-type]
            ]
        ),
        max_size=6,
    ),
    st.data(),
)
def test_any_cutting_gives_the_same_commands(frames: list[bytes], data: st.DataObject) -> None:
    stream = b"".join(frames)
    buffer = b""
    found = []
    position = start = 0
    while start < len(stream) or not stream:
        size = data.draw(st.integers(1, 40))
        buffer += stream[start : start + size]
        start += size
        while (one := FrameDecoder().decode(buffer, position, LIMIT)) is not None:
            found.append(one[:2])
            position = one[2]
        if not stream:
            break
    assert found == [decode(each) for each in frames]
    assert position == len(stream)


def test_every_prefix_of_a_frame_is_incomplete() -> None:
    for data in (
        encode_ping(),
        encode_flow(1, 1),
        Send(1, 2, payload=bytes(20)).encode(),
        frame(b"\x08\x63"),
    ):
        for end in range(len(data)):
            assert FrameDecoder().decode(data[:end], 0, LIMIT) is None
            assert FrameDecoder().decode(b"xyz" + data[:end], 3, LIMIT) is None


# --- refused ---------------------------------------------------------------------------------------


def test_a_frame_over_the_limit_is_refused_as_soon_as_its_size_is_there() -> None:
    size = (LIMIT + 1).to_bytes(4, "big")
    assert FrameDecoder().decode(size[:3], 0, LIMIT) is None
    for more in (b"", b"\0", b"\0\0\0\5", bytes(100)):
        with pytest.raises(FrameError, match="over the limit"):
            FrameDecoder().decode(size + more, 0, LIMIT)
    assert FrameDecoder().decode(LIMIT.to_bytes(4, "big"), 0, LIMIT) is None


@pytest.mark.parametrize(
    ("first", "words"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n", "answers in HTTP: this is a port for HTTP, such as 8080"),
        (b"<!DOCTYPE html>", "answers in HTML: this is a port for HTTP"),
        (b"GET / HTTP/1.1\r\n", "asks in HTTP: its port for HTTP is another one"),
        (b"POST /admin HTTP/1.1\r\n", "asks in HTTP"),
        (b"PUT /admin HTTP/1.1\r\n", "asks in HTTP"),
        (b"DELETE /admin HTTP/1.1\r\n", "asks in HTTP"),
        (b"PRI * HTTP/2.0\r\n", "asks in HTTP"),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", "begins a TLS handshake"),
        (b"\x15\x03\x01\x00\x02\x02\x46", "answers in TLS: this is a port for TLS, such as 6651"),
        (b"SSH-2.0-OpenSSH_9.6\r\n", "speaks SSH"),
    ],
)
def test_bytes_of_another_protocol_are_named(first: bytes, words: str) -> None:
    for end in range(4, len(first) + 1):
        with pytest.raises(FrameError) as raised:
            FrameDecoder().decode(first[:end], 0, LIMIT)
        assert words in str(raised.value)
        assert "Pulsar's binary protocol is on 6650 by default" in str(raised.value)
        assert "over the limit" in str(raised.value)


def test_other_sizes_over_the_limit_name_no_protocol() -> None:
    with pytest.raises(FrameError) as raised:
        FrameDecoder().decode(b"\x16\x04\x00\x00" + bytes(20), 0, LIMIT)
    assert "6650" not in str(raised.value)


def test_a_frame_of_exactly_the_limit_is_taken() -> None:
    data = Send(1, 2, payload=bytes(100)).encode()
    assert FrameDecoder().decode(data, 0, len(data) - 4) is not None
    with pytest.raises(FrameError, match="over the limit"):
        FrameDecoder().decode(data, 0, len(data) - 5)


@pytest.mark.parametrize("total", [0, 1, 3])
def test_a_frame_without_room_for_its_commands_size_is_refused(total: int) -> None:
    for more in (b"", bytes(20)):
        with pytest.raises(FrameError, match="cannot hold"):
            FrameDecoder().decode(total.to_bytes(4, "big") + more, 0, LIMIT)


@pytest.mark.parametrize("more", [b"", b"\x08\x12\x92\x01\x00", bytes(40)])
def test_a_command_larger_than_its_frame_is_refused(more: bytes) -> None:
    data = (9).to_bytes(4, "big") + (6).to_bytes(4, "big") + more
    with pytest.raises(FrameError, match="cannot hold"):
        FrameDecoder().decode(data, 0, LIMIT)


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (b"", "without a type"),
        (b"\x92\x01\x00", "without a type"),
        (b"\x08", "malformed"),
        (b"\x08\x12\x92\x01\x05", "malformed"),
        (b"\x08\x12\x92\x01", "malformed"),
        (b"\x08\x12", "without its field ping"),
        (b"\x08\x12\x9a\x01\x00", "without its field ping"),
        (b"\x08\x12\x90\x01\x00", "without its field ping"),
        (b"\x08\x0d\x6a\x00", "required"),
        (b"\x08\x0d\x6a\x02\x08\x01\x72\x00", "required"),
        (b"\x08\x06\x32\x00", "producer_id"),
        (b"\x08\x06\x32\x02\x08\x01", "sequence_id"),
        (b"\x08\x09\x4a\x02\x08\x01", "message_id"),
        (b"\x08\x09\x4a\x06\x08\x01\x12\x02\x08\x01", "entry_id"),
        (b"\x08\x07\x3a\x06\x08\x01\x10\x02\x1a\x00", "ends inside"),
        (b"\x08\x0a\x52\x02\x08\x01", "ack_type"),
        (b"\x08\x0b\x5a\x02\x08\x01", "message_permits"),
        (b"\x08\x0b\x5a\x03\x08\x01\x10", "ends inside"),
        (b"\x08\x0b\x5a\x0d\x08" + b"\xff" * 10 + b"\x01\x10", "ten bytes"),
        (b"\x08\x0b\x5a\x05\x08\x01\x10\x01\x0f", "wire type"),
        (b"\x08\x0b\x5a\x05\x08\x01\x10\x01\x00", "number 0"),
        (b"\x08\x0b\x5a\x05\x08\x01\x10\x01\x0b", "group"),
    ],
)
def test_a_malformed_or_incomplete_command_is_refused(command: bytes, words: str) -> None:
    with pytest.raises(FrameError, match=words):
        FrameDecoder().decode(frame(command), 0, LIMIT)


def test_text_that_is_not_utf8_is_refused_in_cold_commands() -> None:
    for command in (
        b"\x08\x0e\x72\x07\x08\x01\x10\x03\x1a\x01\xff",  # ERROR, its message
        b"\x08\x21\x8a\x02\x06\x08\x01\x12\x02\xc3\x28",  # GET_TOPICS_OF_NAMESPACE_RESPONSE, a topic
        b"\x08\x05\x2a\x0f\x0a\x01t\x10\x01\x18\x01\x32\x06\x0a\x01\xff\x12\x01v",  # PRODUCER, a pair's key
    ):
        with pytest.raises(FrameError, match="not UTF-8"):
            FrameDecoder().decode(frame(command), 0, LIMIT)


@pytest.mark.parametrize(
    "data",
    [
        encode_ping(),
        encode_flow(1, 1),
        encode_send_receipt(1, 2, 3, 4),
        frame(b"\x08\x0a\x52\x04\x08\x01\x10\x00"),
    ],
)
def test_only_send_and_message_may_have_a_payload(data: bytes) -> None:
    longer = (int.from_bytes(data[:4], "big") + 1).to_bytes(4, "big") + data[4:] + b"x"
    with pytest.raises(FrameError, match="belong to nothing"):
        FrameDecoder().decode(longer, 0, LIMIT)


def test_frames_before_a_bad_one_are_not_lost() -> None:
    data = encode_ping() + encode_flow(1, 2) + frame(b"\x08")
    first = FrameDecoder().decode(data, 0, LIMIT)
    assert first is not None
    second = FrameDecoder().decode(data, first[2], LIMIT)
    assert second is not None
    assert second[1] == Flow(1, 2)
    with pytest.raises(FrameError):
        FrameDecoder().decode(data, second[2], LIMIT)


@settings(max_examples=300)
@given(st.binary(max_size=40), st.integers(0, 3))
def test_nothing_but_a_frame_error_comes_out_of_any_bytes(data: bytes, position: int) -> None:
    for candidate in (data, frame(data), frame(b"\x08" + data), frame(b"\x08\x07\x3a" + data, b"p")):
        with suppress(FrameError):
            FrameDecoder().decode(candidate, min(position, len(candidate)), LIMIT)


# --- lenient where the protocol asks for it --------------------------------------------------------


@pytest.mark.parametrize(
    "command", [b"\x08\x63", b"\x08\x63\x9a\x06\x02\x08\x01", b"\x08\x45", b"\x08\x80\x01", b"\x08\x00"]
)
def test_a_type_this_schema_does_not_have_is_no_command(command: bytes) -> None:
    number = command[1] if command[1] < 0x80 else 128
    assert decode(frame(command)) == (number, None)
    assert decode(frame(command, b"with a payload")) == (number, None)


@pytest.mark.parametrize(
    "command",
    [Send(5, 6, payload=b"p"), MessageCommand(5, 6, 7, payload=b"p"), Flow(5, 6), SendReceipt(5, 6, 7, 8)],
)
def test_hot_commands_in_odd_envelopes(command: Any) -> None:
    data = command.encode()
    size = int.from_bytes(data[4:8], "big")
    base, payload = data[8 : 8 + size], data[8 + size :]
    kind, field = base[:2], base[2:]
    for odd in (
        field + kind,
        kind + kind + field,
        b"\x08\x12" + base,
        base + b"\x92\x01\x00",
        base + b"\xa0\x06\x07",
    ):
        assert decode(frame(odd, payload)) == (base[1], command)
    # The same field twice is one command: the later fields win.
    assert decode(frame(kind + field + field, payload)) == (base[1], command)


def test_a_long_size_of_a_short_command_is_understood() -> None:
    flow = b"\x08\x05\x10\x06"
    assert decode(frame(b"\x08\x0b\x5a\x84\x00" + flow)) == (11, Flow(5, 6))


def test_a_command_of_more_than_127_bytes_is_understood() -> None:
    ids = b"".join(b"\x1a\x04\x08\x05\x10" + bytes([entry]) for entry in range(100))
    found = decode(frame_command_with(10, b"\x08\x01\x10\x00" + ids))[1]
    assert found.message_ids == [(5, entry, None) for entry in range(100)]


@pytest.mark.parametrize(
    ("start", "filling"),
    [
        pytest.param(b"\x08\x06\x32", b"\xa2\x06\x14" + bytes(20), id="unknown fields of SEND"),
        pytest.param(
            b"\x08\x07\x3a",
            b"\x1a\x17\xa2\x06\x14" + bytes(20),
            id="positions of SEND_RECEIPT, to be merged",
        ),
        pytest.param(b"\x08\x09\x4a", b"\x20\x01", id="words of the ack set of MESSAGE"),
        pytest.param(b"\x08\x0a\x52", b"\x2a\x04\x0a\x00\x10\x00", id="properties of ACK"),
    ],
)
def test_what_is_collected_field_by_field_is_not_copied_for_each_field(start: bytes, filling: bytes) -> None:
    """A frame of small fields costs work in proportion to its size; a square of it would be minutes."""
    required = b"\x08\x01\x12\x04\x08\x01\x10\x02" if start[1] == 9 else b"\x08\x01\x10\x01"
    if start[1] == 7:
        required += b"\x1a\x04\x08\x05\x10\x06"

    def of_fields(count: int) -> Callable[[], Any]:
        body = required + filling * count
        data = frame(start + oracle.varint(len(body)) + body)
        return lambda: decode(data)

    assert of_fields(300)()[1][0] == 1
    check_in_proportion(of_fields, 300)


UNKNOWN = {
    "fixed32": bytes([15 << 3 | 5, *[0xFD] * 4]),
    "fixed64": bytes([15 << 3 | 1, *[0xFD] * 8]),
    "varint": bytes([15 << 3, 0xFD, 0xFD, 0x01]),
    "bytes": bytes([15 << 3 | 2, 2, 0xFD, 0xFD]),
    "group": bytes([15 << 3 | 3, 0xF9, 0x01, *[0xFD] * 8, 15 << 3 | 4]),
}
"""Fields that no command of today has, full of bytes that could go on as a varint."""

HOT: dict[str, tuple[int, int, bytes, tuple[int, bytes] | None]] = {
    "SEND": (6, 6, b"\x08\x01\x10\x02", None),
    "SEND_RECEIPT": (7, 7, b"\x08\x01\x10\x02", None),
    "MESSAGE": (9, 9, b"\x08\x01", (0x12, b"\x08\x03\x10\x04")),
    "ACK": (10, 10, b"\x08\x01\x10\x00", (0x1A, b"\x08\x03\x10\x04")),
    "FLOW": (11, 11, b"\x08\x01\x10\x02", None),
}


@pytest.mark.parametrize("name", HOT)
@pytest.mark.parametrize("unknown", UNKNOWN)
@pytest.mark.parametrize("inside", [False, True])
def test_a_field_of_a_later_version_may_stand_at_the_end_of_the_frame(
    name: str, unknown: str, inside: bool
) -> None:
    """The decoder accepts an unknown field, whatever its type and whatever follows; `inside`: a field of the
    message id."""
    kind, number, body, position = HOT[name]
    if position:
        tag, fields = position
        fields += UNKNOWN[unknown] if inside else b""
        body += bytes([tag, len(fields)]) + fields
    elif inside:
        return
    body += b"" if inside else UNKNOWN[unknown]
    data = frame(bytes([8, kind, number << 3 | 2, len(body)]) + body)
    found = decode(data)
    followed = FrameDecoder().decode(data + encode_ping(), 0, LIMIT)
    assert found[0] == kind
    assert followed == (*found, len(data))
    assert FrameDecoder().decode(found[1].encode(), 0, LIMIT) == (*found, len(found[1].encode()))


def test_a_command_does_not_begin_with_a_zero() -> None:
    """A zero would be the number of a field; the bytes after it are those of a MESSAGE."""
    message = b"\x08\x09\x4a\x08\x08\x01\x12\x04\x08\x03\x10\x04"
    assert decode(frame(message))[0] == 9
    with pytest.raises(FrameError):
        decode(frame(b"\0" + message))
    with pytest.raises(FrameError):
        decode(frame(b"\0\x08\x09\x4a\x0b\x08\x01\x12\x07\x08\x03\x10\x04\x30\x03\x20"))
