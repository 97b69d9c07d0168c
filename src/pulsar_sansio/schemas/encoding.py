"""The function that makes a message's payload and key of a value, for a producer with a schema."""

from collections.abc import Callable
from typing import Any, TypeAlias

from ..model.errors import InvalidMessage
from ..model.schema import Schema
from .key_value import KeyValueEncoding, KeyValueSchema

Encoder: TypeAlias = Callable[[Any], tuple[bytes | None, bytes | None]]
"""Takes a value; returns the payload, None for a null value, and the key that the value itself has, None for
no such key. Raises `InvalidMessage` for a value that is none of the schema."""


def encoder_of(schema: Schema[Any]) -> Encoder:
    """Return the function for values of this schema. None is a null value for each of them."""
    if isinstance(schema, KeyValueSchema) and schema.encoding is KeyValueEncoding.SEPARATED:
        return _separated(schema)
    encode = schema.encode

    def encoded(value: Any) -> tuple[bytes | None, bytes | None]:
        if value is None:
            return None, None
        try:
            return encode(value), None
        except InvalidMessage:
            raise
        except Exception as error:
            raise _cannot_encode(schema, value) from error

    return encoded


def _cannot_encode(schema: Schema[Any], value: Any) -> InvalidMessage:
    """Return the error for an exception in the code of an application's own schema."""
    return InvalidMessage(f"{schema!r:.100} cannot encode a {type(value).__name__}")


def _separated(schema: KeyValueSchema[Any, Any]) -> Encoder:
    def encoded(value: Any) -> tuple[bytes | None, bytes | None]:
        if value is None:
            raise InvalidMessage("schema KEY_VALUE: a KeyValue, whose value may be None, not None")
        try:
            payload = schema.encode(value)
            return None if value[1] is None else payload, schema.encode_key(value)
        except InvalidMessage:
            raise
        except Exception as error:
            raise _cannot_encode(schema, value) from error

    return encoded
