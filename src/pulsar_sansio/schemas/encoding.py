"""The functions that make a message's payload and key of a value, and whole messages of values."""

from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar, Unpack

from ..model.config import NULL_KEY, NullKey, OutgoingFields, OutgoingMessage
from ..model.errors import InvalidMessage
from ..model.schema import Schema
from .key_value import KeyValueEncoding, KeyValueSchema

T = TypeVar("T")

Encoder: TypeAlias = Callable[[Any], tuple[bytes | None, bytes | NullKey | None]]
"""Takes a value; returns the payload, None for a null value, and the key that the value itself has,
`NULL_KEY` for a null one, None for no such key. Raises `InvalidMessage` for a value that is none of the
schema."""


def encoder_of(schema: Schema[Any]) -> Encoder:
    """Return the function for values of this schema. None is a null value for each of them."""
    if isinstance(schema, KeyValueSchema) and schema.encoding is KeyValueEncoding.SEPARATED:
        return _separated(schema)
    encode = schema.encode

    def encoded(value: Any) -> tuple[bytes | None, None]:
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
    def encoded(value: Any) -> tuple[bytes | None, bytes | NullKey]:
        if value is None:
            raise InvalidMessage("schema KEY_VALUE: a KeyValue, whose value may be None, not None")
        try:
            payload = schema.encode(value)
            key = schema.encode_key(value)
            return None if value[1] is None else payload, NULL_KEY if key is None else key
        except InvalidMessage:
            raise
        except Exception as error:
            raise _cannot_encode(schema, value) from error

    return encoded


def message_of(value: T | None, schema: Schema[T], **fields: Unpack[OutgoingFields]) -> OutgoingMessage:
    """Return a message of a value whose schema is not the producer's.

    The producer registers the schema with the broker before it sends the first such message. None is a null
    value. With a `KeyValueSchema` in SEPARATED, the key of the value is the message's key. `fields`: as in
    `OutgoingMessage`. Raises `InvalidMessage` for a value that is none of the schema, a wrong field, or a
    schema without a definition of its own.
    """
    payload, key = encoder_of(schema)(value)
    if key is not None:
        if fields.get("key") is not None:
            raise InvalidMessage("key: the key of the value is the key of the message; give no other one")
        fields["key"] = key
    return OutgoingMessage(payload, schema=schema, **fields)
