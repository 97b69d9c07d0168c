"""`AutoPublish`: payloads that a producer has already, for a topic whose definition decides about them.

A program that forwards messages has bytes and no model. The producer adopts the definition of its topic, and
refuses bytes that hold no value of it (rule SCHEMA-06).
"""

from collections.abc import Callable
from typing import Any

from ..model.errors import InvalidMessage, SchemaDecodingError
from ..model.schema import Schema, SchemaInfo, SchemaType
from .auto import schema_of_definition
from .key_value import KeyValueEncoding, parts_of, split_inline
from .primitives import BYTES

_NO_GENERIC_READER = (SchemaType.PROTOBUF, SchemaType.EXTERNAL)
"""Types whose payloads can only be read with the producer's own classes."""


class AutoPublish(Schema[bytes]):
    """For producers: bytes, which are a payload of the topic's definition.

    A topic without a definition takes any bytes. Sending raises `InvalidMessage` for bytes that the
    definition does not fit. Payloads of the type PROTOBUF are not checked.
    """

    adopts = True

    @property
    def info(self) -> SchemaInfo:
        return BYTES.info

    def encode(self, value: bytes) -> bytes:
        return BYTES.encode(value)

    def decode(self, data: bytes) -> bytes:
        return data

    def adopted(self, topic: SchemaInfo | None) -> Schema[bytes]:
        return self if topic is None else _Adopted(topic)

    def __repr__(self) -> str:
        return "<schema AUTO_PUBLISH>"


class _Adopted(AutoPublish):
    """The definition of the topic, with the function that checks payloads of it."""

    adopts = False

    def __init__(self, info: SchemaInfo) -> None:
        self._info = info
        self._check = _checker(info)

    @property
    def info(self) -> SchemaInfo:
        return self._info

    def encode(self, value: bytes) -> bytes:
        data = BYTES.encode(value)
        try:
            self._check(data)
        except SchemaDecodingError as error:
            raise InvalidMessage(
                f"schema AUTO_PUBLISH: no payload of the topic's definition: {error}"
            ) from None
        return data

    def __reduce__(self) -> tuple[Any, ...]:
        return _Adopted, (self._info,)


def _checker(info: SchemaInfo) -> Callable[[bytes], object]:
    if info.type in _NO_GENERIC_READER:
        return BYTES.decode
    if info.type is SchemaType.KEY_VALUE:
        key, value, encoding = parts_of(info)
        if encoding is KeyValueEncoding.SEPARATED:
            return _checker(value)
        return _pair_checker(_checker(key), _checker(value))
    return schema_of_definition(info).decoder(info)


def _pair_checker(
    check_key: Callable[[bytes], object], check_value: Callable[[bytes], object]
) -> Callable[[bytes], object]:
    """Return a function for INLINE payloads, whose parts are checked by themselves."""

    def check(data: bytes) -> None:
        key, value = split_inline(data)
        if key is not None:
            check_key(key)
        if value is not None:
            check_value(value)

    return check
