"""Decoders of messages: one for each definition that messages of a consumer were written with."""

from collections.abc import Callable
from typing import Any

from ...model.errors import SchemaDecodingError, SchemaUnavailable
from ...model.message import Message
from ...model.schema import Schema, SchemaInfo
from ...schemas import AutoConsume, KeyValueSchema

_OF_PAIRS = (KeyValueSchema, AutoConsume)
"""The schemas whose values may have a part in the message's key."""


class WriterDecoder:
    """Decodes messages that were written with the definition `writer`; None: the schema needs none, or the
    producer had none. It asks the schema for its function when the first value is looked at."""

    __slots__ = ("_decode", "_schema", "_separated", "_writer")

    def __init__(self, schema: Schema[Any], writer: SchemaInfo | None) -> None:
        self._schema = schema
        self._writer = writer
        self._separated = isinstance(schema, _OF_PAIRS) and schema.keys_are_separate(writer)
        self._decode: Callable[..., Any] | None = None

    def value_of(self, message: Message[Any]) -> Any:
        """See `ValueDecoder`. A null value is None, or a pair with a key."""
        payload = message.payload
        if payload is None and not self._separated:
            return None
        try:
            decode = self._decode
            if decode is None:
                decode = self._decode = self._decoder()
            return decode(message.key_bytes, payload) if self._separated else decode(payload)
        except SchemaDecodingError:
            raise
        except Exception as error:  # the code of an application's own schema, and a key that is no Base64
            text = f"{self._schema!r:.100} cannot decode message {message.message_id}"
            raise SchemaDecodingError(f"{text}: {type(error).__name__}") from error

    def _decoder(self) -> Callable[..., Any]:
        schema = self._schema
        if isinstance(schema, _OF_PAIRS) and self._separated:
            return schema.separated_decoder(self._writer)
        return schema.decoder(self._writer)

    def __reduce__(self) -> tuple[Any, ...]:
        return WriterDecoder, (self._schema, self._writer)


class NoDecoder:
    """Stands for a definition that could not be had: each value but null raises `SchemaUnavailable`."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def value_of(self, message: Message[Any]) -> None:
        """See `ValueDecoder`."""
        if message.payload is not None:
            raise SchemaUnavailable(self._text)

    def __reduce__(self) -> tuple[Any, ...]:
        return NoDecoder, (self._text,)
