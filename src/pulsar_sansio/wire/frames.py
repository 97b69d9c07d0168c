"""Frames: where commands begin and end in a stream of bytes (GAP-01).

This module does not keep the bytes, and does not know what a command means. Hot commands are decoded to
records of `hot_commands`, all others to messages of protobuf.
"""

from struct import Struct
from typing import Any

from google.protobuf.message import DecodeError, Message

from ..model.errors import FrameError, TlsProtocolMismatch
from . import proto
from .command_frame import command_tag, frame_command
from .commands.cold_commands import COLD_DECODERS
from .commands.hot_commands import DeliveryDecoder, ReceiptDecoder, hot_decoders
from .fields import ENUM, Field, Layout
from .varint import read_varint

DEFAULT_MAX_MESSAGE_SIZE = 5 * 1024 * 1024
"""Bytes of a message before CONNECTED, and after one that names no limit."""

FRAME_PADDING = 10 * 1024
"""Bytes a frame may be larger than a message, for command and metadata."""

_SIZE_FIELD = 4
_read_front = Struct(">III").unpack_from
"""Total size, size of the command, and the command's first four bytes."""


def _front(number: int) -> int:
    """Give the first three or four bytes of a command: its type, and the tag of the field that it
    announces."""
    return int.from_bytes(command_tag(number), "big")


_cold_decoder_by_front = {_front(number): decoder for number, decoder in COLD_DECODERS.items()}.get

PING, PONG = 18, 19

_FIELD_BY_TYPE: dict[int, str] = {
    field.number: field.name
    for field in proto.BaseCommand.DESCRIPTOR.fields
    if field.message_type is not None
}


def max_frame_size(max_message_size: int = DEFAULT_MAX_MESSAGE_SIZE) -> int:
    """The largest `total_size` accepted. The Java peer counts the four bytes of that field itself too."""
    return max_message_size + FRAME_PADDING - _SIZE_FIELD


# --- decoding --------------------------------------------------------------------------------------


class FrameDecoder:
    """Decodes the frames of one connection, in both directions. It owns the decoders that learn templates."""

    __slots__ = ("_hot", "_hot_by_front", "deliveries", "receipts")

    def __init__(self) -> None:
        self.deliveries = DeliveryDecoder()
        self.receipts = ReceiptDecoder()
        self._hot = hot_decoders(self.deliveries, self.receipts)
        self._hot_by_front = {_front(number): decoder for number, decoder in self._hot.items()}.get

    def decode(self, data: bytes, position: int, limit: int) -> tuple[int, Any, int] | None:
        """Decode the frame at `position`: type, command and the position behind it; None when it is
        incomplete.

        `limit`: the largest `total_size`, see `max_frame_size`. The type is a number of BaseCommand.Type. The
        command is a record of `hot_commands` for SEND, MESSAGE, SEND_RECEIPT, ACK and FLOW. It is None for a
        type that this schema does not have, else the protobuf message of the type.

        Raises `FrameError` when the frame is over the limit (as soon as its size is there), or its sizes
        contradict each other. It also raises it for a malformed command, a missing required field, text that
        is not UTF-8, and a type without its command.
        """
        length = len(data)
        if length - position < 12:
            return self._decode_short(data, position, limit)
        total_size, command_size, front = _read_front(data, position)
        if total_size > limit or command_size + 4 > total_size:
            raise _wrong_sizes(total_size, command_size, limit, data[position : position + 4])
        end: int = position + 4 + total_size
        if end > length:
            return None
        # The way of nearly all frames: the type, then exactly the field of that type.
        start = position + 12
        size = front & 0xFF
        try:
            decoder = self._hot_by_front(front >> 8) or _cold_decoder_by_front(front >> 8)
            if decoder is None and front > 0xFFFFFF and start < end:  # with a tag of two bytes, perhaps
                decoder = _cold_decoder_by_front(front)
                size = data[start]
                start += 1
            if decoder is not None:
                if size > 0x7F:
                    size, start = read_varint(data, start - 1)
                command_end = start + size
                if command_end == position + 8 + command_size:
                    return front >> 16 & 0xFF, decoder(data, start, command_end, end), end
        except IndexError:
            raise FrameError("a command ends inside a field") from None
        return *self._decode_any(data, position + 8, position + 8 + command_size, end), end

    def _decode_short(self, data: bytes, position: int, limit: int) -> tuple[int, Any, int] | None:
        """Decode a frame where fewer than twelve bytes are left: most likely the frame is still arriving."""
        available = len(data) - position
        if available < 4:
            return None
        total_size = int.from_bytes(data[position : position + 4], "big")
        # Four bytes say only whether the size is allowed; the size of the command is there or taken as
        # fitting.
        command_size = int.from_bytes(data[position + 4 : position + 8], "big") if available >= 8 else 0
        if not 4 <= total_size <= limit or command_size + 4 > total_size:
            raise _wrong_sizes(total_size, command_size, limit, data[position : position + 4])
        end = position + 4 + total_size
        if end > len(data):
            return None
        return *self._decode_any(data, position + 8, position + 8 + command_size, end), end

    def _decode_any(self, data: bytes, start: int, command_end: int, end: int) -> tuple[int, Any]:
        """Type and command by protobuf's own parser, which settles repeated fields and their order."""
        base = proto.BaseCommand()
        try:
            base.MergeFromString(data[start:command_end])
        except DecodeError as error:
            raise FrameError(f"a command is malformed: {error}") from None
        if not base.HasField("type"):
            unknown = _unknown_type(data, start, command_end)
            if unknown is None:
                raise FrameError("a command without a type")
            return unknown, None
        name = _FIELD_BY_TYPE[base.type]
        if not base.HasField(name):
            raise FrameError(f"a command of type {base.type} without its field {name}")
        if not base.IsInitialized():
            raise FrameError(f"a command of type {base.type} without all of its required fields")
        body = getattr(base, name).SerializeToString()
        frame = body + data[command_end:end]
        decode: Any = self._hot.get(base.type) or COLD_DECODERS[base.type]
        return base.type, decode(frame, 0, len(body), len(frame))


OTHER_PROTOCOLS = {
    b"HTTP": "the peer answers in HTTP: this is a port for HTTP, such as 8080",
    b"<!DO": "the peer answers in HTML: this is a port for HTTP, such as 8080",
    b"GET ": "the peer asks in HTTP: its port for HTTP is another one, such as 8080",
    b"SSH-": "the peer speaks SSH",
    b"\x15\x03": "the peer answers in TLS: this is a port for TLS, such as 6651 (pulsar+ssl://)",
    b"\x16\x03": "the peer begins a TLS handshake: the port for TLS is another one, such as 6651",
}
"""The meaning of first bytes that are no size, by how they begin. All of these would be sizes of hundreds of
megabytes."""

for _method in (b"POST", b"PUT ", b"HEAD", b"DELE", b"OPTI", b"PATC", b"CONN", b"PRI "):
    OTHER_PROTOCOLS[_method] = OTHER_PROTOCOLS[b"GET "]


def _wrong_sizes(total_size: int, command_size: int, limit: int, first: bytes) -> FrameError:
    if total_size > limit:
        text = f"a frame of {total_size} bytes is over the limit of {limit}"
        other = OTHER_PROTOCOLS.get(first) or OTHER_PROTOCOLS.get(first[:2])
        if other is not None:
            text = f"{other}; Pulsar's binary protocol is on 6650 by default ({text})"
        if first[:2] in (b"\x15\x03", b"\x16\x03"):
            return TlsProtocolMismatch(text)
        return FrameError(text)
    return FrameError(f"a frame of {total_size} bytes cannot hold a command of {command_size} and its size")


_TYPE_ONLY = Layout("BaseCommand", [Field(1, "type", ENUM)])


def _unknown_type(data: bytes, start: int, end: int) -> int | None:
    """The last type of a BaseCommand that protobuf could parse but whose type it does not know."""
    values, _ = _TYPE_ONLY.decode(data, start, end)
    number: int | None = values.get("type")
    return number


# --- encoding --------------------------------------------------------------------------------------


def encode_command(type: int, command: Message) -> bytes:
    """The simple frame of a command; `type` is its number in BaseCommand.Type.

    Not for SEND and MESSAGE, which have a payload, and no way for ACK, SEND_RECEIPT and FLOW either:
    their records know how. Raises `EncodeError` (protobuf) when a required field is not set.
    """
    return frame_command(type, command.SerializeToString())


_PING = encode_command(PING, proto.CommandPing())
_PONG = encode_command(PONG, proto.CommandPong())


def encode_ping() -> bytes:
    """The PING frame."""
    return _PING


def encode_pong() -> bytes:
    """The PONG frame."""
    return _PONG
