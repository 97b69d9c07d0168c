"""The general codec by table: presence, order, conversions, and what of the unknown it can stand."""

from typing import Any

import pytest

from pulsar_sansio.model.errors import FrameError, InvalidMessage
from pulsar_sansio.wire import proto
from pulsar_sansio.wire.fields import (
    BOOL,
    BYTES,
    INT32,
    INT64,
    TEXT,
    UINT32,
    UINT64,
    Field,
    Kind,
    Layout,
    decode_text,
    encode_text,
    message_kind,
)
from tests.wire import oracle

PAIR = Layout("Pair", [Field(1, "name", TEXT, required=True), Field(2, "number", UINT64)])


def _read_pair(data: bytes) -> dict[str, Any]:
    return PAIR.decode(data, 0, len(data))[0]


LAYOUT = Layout(
    "Sample",
    [
        Field(1, "id", UINT64, required=True),
        Field(2, "pairs", message_kind(_read_pair, PAIR.encode), repeated=True),
        Field(3, "numbers", INT64, repeated=True),
        Field(20, "raw", BYTES, merged=True),
    ],
)


def decode(data: bytes) -> tuple[dict[str, Any], bytes]:
    return LAYOUT.decode(data, 0, len(data))


def test_fields_are_written_in_the_order_of_their_numbers() -> None:
    values = {"raw": b"r", "numbers": [1, -1], "pairs": [{"number": 2, "name": "n"}], "id": 300}
    data = LAYOUT.encode(values, b"\xa0\x06\x00")
    assert data.hex() == "08ac0212050a016e1002180118ffffffffffffffffff01a2010172a00600"
    assert decode(data) == (values, b"\xa0\x06\x00")


def test_none_and_empty_lists_are_left_out() -> None:
    assert LAYOUT.encode({"id": 1, "raw": None, "pairs": []}) == b"\x08\x01"


def test_presence_is_membership() -> None:
    assert decode(b"\x08\x00") == ({"id": 0}, b"")
    assert decode(b"\x08\x00\xa2\x01\x00") == ({"id": 0, "raw": b""}, b"")


def test_the_last_single_value_wins_and_messages_inside_are_merged() -> None:
    data = b"\x08\x01\xa2\x01\x02\x08\x01\x08\x02\xa2\x01\x03\x12\x01x"
    assert decode(data) == ({"id": 2, "raw": b"\x08\x01\x12\x01x"}, b"")


def test_each_part_of_a_message_inside_is_a_message() -> None:
    """A field that begins in one part and ends in the next makes no sense, though both together would."""
    for parts in (b"\xa2\x01\x02\x12\x01\xa2\x01\x01x", b"\xa2\x01\x01\x08\xa2\x01\x01\x01"):
        with pytest.raises(FrameError, match="ends inside"):
            decode(b"\x08\x01" + parts)


def test_repeated_numbers_may_be_packed() -> None:
    assert decode(b"\x08\x01\x1a\x03\x05\x80\x01\x18\x07") == ({"id": 1, "numbers": [5, 128, 7]}, b"")
    for bad in (b"\x1a\x02\x05\x80", b"\x1a\x01\x80\x05"):
        with pytest.raises(FrameError, match="ends inside"):
            decode(b"\x08\x01" + bad)


def test_an_empty_packed_field_is_not_there() -> None:
    """An ack set of no words would say that nothing is to be delivered."""
    assert decode(b"\x08\x01\x1a\x00") == ({"id": 1}, b"")


def test_a_known_field_of_another_wire_type_is_unknown() -> None:
    assert decode(b"\x08\x01\x10\x05") == ({"id": 1}, b"\x10\x05")


def test_a_part_may_lack_what_the_whole_must_have() -> None:
    assert LAYOUT.decode_part(b"\x18\x07", 0, 2) == ({"numbers": [7]}, b"")
    with pytest.raises(FrameError, match="Sample without its required field id"):
        decode(b"\x18\x07")


def test_only_the_given_range_is_read() -> None:
    assert LAYOUT.decode(b"\xff\x08\x01\xff", 1, 3) == ({"id": 1}, b"")
    with pytest.raises(FrameError, match="ends inside"):
        LAYOUT.decode(b"\x08\x01\xa2\x01\x02ab", 0, 6)


@pytest.mark.parametrize(
    ("kind", "wire", "value"),
    [
        (UINT64, 2**64 - 1, 2**64 - 1),
        (INT64, 2**64 - 1, -1),
        (INT32, 2**64 - 1, -1),
        (INT32, 2**31, -(2**31)),
        (INT32, 2**32 + 5, 5),
        (UINT32, 2**32 + 5, 5),
        (BOOL, 0, False),
        (BOOL, 2, True),
    ],
)
def test_numbers_are_read_as_their_types(kind: Kind, wire: int, value: int) -> None:
    assert (wire if kind.read is None else kind.read(wire)) == value


def test_groups_are_passed_over_a_hundred_deep_and_no_deeper() -> None:
    def nested(depth: int) -> bytes:
        return b"\x08\x01" + b"\x2b" * depth + b"\x2c" * depth

    assert decode(nested(100)) == ({"id": 1}, nested(100)[2:])
    with pytest.raises(FrameError, match="group"):
        decode(nested(101))


@pytest.mark.parametrize("group", [b"\x2b", b"\x2b\x34", b"\x2c", b"\x2b\x10", b"\x2b\x08\x80"])
def test_groups_that_do_not_end_are_refused(group: bytes) -> None:
    with pytest.raises(FrameError):
        decode(b"\x08\x01" + group)


def test_tags_of_more_than_32_bits_are_refused() -> None:
    assert decode(b"\x88\x80\x80\x80\x00\x01") == ({"id": 1}, b"")
    for tag in (b"\x88\x80\x80\x80\x80\x00", b"\xf8\xff\xff\xff\x1f"):
        with pytest.raises(FrameError, match="32 bits"):
            decode(tag + b"\x01")


def test_text_keeps_what_is_not_utf8() -> None:
    assert decode_text(b"caf\xc3\xa9") == "café"
    for data in (b"\xff", b"a\xc3", b"\xed\xa0\x80"):
        assert encode_text(decode_text(data)) == data
    with pytest.raises(InvalidMessage, match="UTF-8"):
        encode_text("\ud800")


@pytest.mark.parametrize("inside", [b"", b"\x00\x01", b"\x02\x01a", b"\x03\x04", b"\x04"])
def test_the_number_0_in_an_unknown_group_is_judged_as_protobuf_does(inside: bytes) -> None:
    group = b"\xa3\x06" + inside + b"\xa4\x06"
    refused = oracle.read(proto.CommandPing, group) is None
    try:
        decode(b"\x08\x01" + group)
    except FrameError:
        assert refused
    else:
        assert not refused
