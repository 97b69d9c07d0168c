"""`MemberTemplate`: the fields in the header of one member of a batch, and which bits of the header are
fixed.

A member is the size of its header, the header (SingleMessageMetadata) and the payload. Members are uniform
with the one that gave the template if the fixed bits of their headers are equal. Then they are rows of a
table, and each field is a column of it. `take_uniform` and `take_keyed` know two such headers; a template
describes any other one.
"""

from dataclasses import dataclass, field

from ...model.errors import FrameError
from ..varint import read_varint
from .members import (
    BASE64_TAG,
    COMPACTED_OUT_TAG,
    EVENT_TIME_TAG,
    KEY_TAG,
    NULL_KEY_TAG,
    NULL_VALUE_TAG,
    ORDERING_KEY_TAG,
    PAYLOAD_SIZE_TAG,
    PROPERTY_TAG,
    SEQUENCE_ID_TAG,
)

Place = tuple[int, int]
"""The position of a field in a header (its size in front counts), and its number of bytes."""

LONGEST_HEADER = 1024
"""Bytes; a member with a longer header has no template."""


@dataclass(slots=True)
class MemberTemplate:
    """The properties that all headers of uniform members share."""

    header: int
    """Bytes in front of the payload."""
    payload: int = -1
    """Bytes of the payload."""
    mask: bytes = b""
    """The bits of the header that all members have in common."""
    common: bytes = b""
    """The values of these bits."""
    sequence_id: Place | None = None
    event_time: Place | None = None
    key: Place | None = None
    key_is_base64: bool = False
    ordering_key: Place | None = None
    null_value: bool = False
    compacted_out: bool = False
    properties: list[tuple[Place, Place]] = field(default_factory=list)

    @property
    def stride(self) -> int:
        """Bytes from one member to the next."""
        return self.header + self.payload


def member_template(data: bytes | memoryview, position: int) -> MemberTemplate | None:
    """Learn the template of the member at `position`.

    Gives None for an incomplete member, and for one with a field that no template describes.
    """
    room = len(data) - position
    if room < 6:
        return None
    size = int.from_bytes(data[position : position + 4], "big")
    if not 2 <= size <= min(room - 4, LONGEST_HEADER):
        return None
    header = bytes(data[position : position + 4 + size])
    mask = bytearray(b"\xff" * len(header))
    template = MemberTemplate(len(header))
    at = 4
    try:
        while at < len(header):
            at = _add_field(template, header, mask, at)
    except (IndexError, FrameError, _Unknown):
        return None
    if at != len(header) or template.payload < 0 or template.stride > room:
        return None
    template.mask = bytes(mask)
    template.common = bytes(byte & fixed for byte, fixed in zip(header, mask, strict=True))
    return template


class _Unknown(Exception):
    """A field that no template describes, or one that the header has twice."""


def _add_field(template: MemberTemplate, header: bytes, mask: bytearray, at: int) -> int:
    """Add the field at `at`; return where the next one begins."""
    tag = header[at]
    value, behind = read_varint(header, at + 1)
    if tag == PAYLOAD_SIZE_TAG and template.payload < 0 and value < 1 << 31:
        template.payload = value
    elif tag in _NUMBERS:
        _set_once(template, _NUMBERS[tag], (at + 1, behind - at - 1))
        for position in range(at + 1, behind):
            mask[position] = 0x80
    elif tag in _TEXTS:
        _set_once(template, _TEXTS[tag], (behind, value))
        behind = _free(header, mask, behind, value)
    elif tag == PROPERTY_TAG:
        end = behind + value
        name_size, name = _tagged(header, 0x0A, behind)
        value_size, text = _tagged(header, 0x12, name + name_size)
        if text + value_size != end:
            raise _Unknown
        template.properties.append(((name, name_size), (text, value_size)))
        _free(header, mask, name, name_size)
        behind = _free(header, mask, text, value_size)
    elif tag in _FLAGS:
        setattr(template, _FLAGS[tag], value != 0)
    elif tag != NULL_KEY_TAG:  # there is no key then
        raise _Unknown
    return behind


_NUMBERS = {EVENT_TIME_TAG: "event_time", SEQUENCE_ID_TAG: "sequence_id"}
_TEXTS = {KEY_TAG: "key", ORDERING_KEY_TAG: "ordering_key"}
_FLAGS = {COMPACTED_OUT_TAG: "compacted_out", BASE64_TAG: "key_is_base64", NULL_VALUE_TAG: "null_value"}


def _set_once(template: MemberTemplate, name: str, place: Place) -> None:
    if getattr(template, name) is not None:
        raise _Unknown
    setattr(template, name, place)


def _tagged(header: bytes, tag: int, at: int) -> tuple[int, int]:
    """Return size and place of the bytes of the field with this tag."""
    if header[at] != tag:
        raise _Unknown
    return read_varint(header, at + 1)


def _free(header: bytes, mask: bytearray, start: int, size: int) -> int:
    """Let these bytes differ between members; return where they end."""
    end = start + size
    if end > len(header):
        raise IndexError
    mask[start:end] = bytes(size)
    return end
