"""All commands but the five hot ones: protobuf parses them.

A decoder is made once for each: it parses the command by itself, without the BaseCommand around it, and sees
to what protobuf lets pass. Knows nothing of frames.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from google.protobuf.message import DecodeError, Message
from google.protobuf.message_factory import GetMessageClass

from ...model.errors import FrameError
from .. import proto
from ..command_frame import check_no_payload
from .hot_commands import HOT_NUMBERS


class _Texts(NamedTuple):
    """The fields of a message that may hold text: its own, and those of messages inside."""

    single: list[str]
    repeated: list[str]
    inside: "list[tuple[str, bool, _Texts]]"
    """Field, whether it is repeated, where there is text in it."""


def _texts_of(message: Any) -> _Texts:
    texts = _Texts([], [], [])
    for field in message.fields:
        if field.type == field.TYPE_STRING:
            (texts.repeated if field.is_repeated else texts.single).append(field.name)
        elif field.message_type not in (None, message):  # an id with one inside has no text
            inner = _texts_of(field.message_type)
            if any(inner):
                texts.inside.append((field.name, field.is_repeated, inner))
    return texts


def _check_text(message: Message, texts: _Texts) -> None:
    """Text that is not UTF-8 would come out of protobuf as bytes, where everybody expects text."""
    single, repeated, inside = texts
    for name in single:
        if type(getattr(message, name)) is bytes:
            raise _not_text(message, name)
    for name in repeated:
        if bytes in map(type, getattr(message, name)):
            raise _not_text(message, name)
    for name, is_repeated, inner in inside:
        part = getattr(message, name)
        for each in part if is_repeated else (part,):
            _check_text(each, inner)


def _not_text(message: Message, name: str) -> FrameError:
    return FrameError(f"the text {message.DESCRIPTOR.full_name}.{name} is not UTF-8")


def _decoder_of(number: int, command: Any) -> Callable[[bytes, int, int, int], Message]:
    parse = GetMessageClass(command).FromString
    texts = _texts_of(command)
    has_text = any(texts)

    def decode(data: bytes, start: int, end: int, frame_end: int) -> Message:
        if end != frame_end:
            check_no_payload(number, end, frame_end)
        body = data[start:end]
        try:
            message = parse(body)
        except DecodeError as error:
            raise FrameError(f"a command of type {number} is malformed: {error}") from None
        if not message.IsInitialized():
            raise FrameError(f"a command of type {number} without all of its required fields")
        if has_text and not body.isascii():
            _check_text(message, texts)
        return message

    return decode


COLD_DECODERS: dict[int, Callable[[bytes, int, int, int], Message]] = {
    field.number: _decoder_of(field.number, field.message_type)
    for field in proto.BaseCommand.DESCRIPTOR.fields
    if field.message_type is not None and field.number not in HOT_NUMBERS
}
"""The decoders of the other commands, called as a `Decoder` of `hot_commands` is.

They raise `FrameError` for a command that is malformed, lacks a required field, has text that is
not UTF-8, or is followed by anything."""
