"""The frame around a hot command: sizes, type, and the tag of the command's field in its BaseCommand.

Knows the numbers of the hot commands and nothing of what is in them.
"""

from struct import Struct

from ..model.errors import FrameError
from .varint import SMALL_VARINTS, encode_varint

_pack_sizes = Struct(">II").pack

SEND, SEND_RECEIPT, MESSAGE, ACK, FLOW = 6, 7, 9, 10, 11
"""Numbers in BaseCommand.Type, and of the commands' fields in BaseCommand."""

JOIN_LIMIT = 16 * 1024
"""Bytes up to which copying a payload behind its command is cheaper than handing on two chunks."""


def command_tag(number: int) -> bytes:
    """Encode the bytes in front of a command in its BaseCommand: the type, and the tag of its field."""
    return b"\x08" + encode_varint(number) + encode_varint(number << 3 | 2)


def build_frame(tag: bytes, body: bytes, payload_size: int = 0) -> bytes:
    """A frame up to the end of its command; `payload_size` bytes of headers and payload follow it."""
    size = len(body)
    command = tag + (SMALL_VARINTS[size] if size < 16384 else encode_varint(size)) + body
    size = len(command)
    return _pack_sizes(size + 4 + payload_size, size) + command


_TAGS = [command_tag(number) for number in range(128)]


def frame_command(number: int, body: bytes) -> bytes:
    """The simple frame of the command with this number in BaseCommand.Type, below 128."""
    return build_frame(_TAGS[number], body)


def check_no_payload(number: int, command_end: int, frame_end: int) -> None:
    """Raises `FrameError` when a command that has no payload is followed by something."""
    if command_end != frame_end:
        raise FrameError(f"a command of type {number} is followed by bytes that belong to nothing")
