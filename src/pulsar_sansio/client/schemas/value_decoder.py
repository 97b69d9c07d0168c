"""Decoders of messages: one for each definition that messages of a consumer were written with."""

from collections.abc import Callable
from typing import Any

from ...model.errors import SchemaDecodingError, SchemaUnavailable
from ...model.message import Message
from ...model.schema import Schema, SchemaInfo, SchemaType
from ...schemas import AutoConsume, KeyValueEncoding, KeyValueSchema
from ...schemas.auto import schema_of_definition
from ...schemas.key_value import parts_of


class WriterDecoder:
    """Decodes messages that were written with the definition `writer`; None: the schema needs none, or the
    producer had none. It asks the schema for its function when the first value is looked at."""

    __slots__ = ("_decode", "_schema", "_separated", "_writer")

    def __init__(self, schema: Schema[Any], writer: SchemaInfo | None) -> None:
        self._schema = schema
        self._writer = writer
        self._separated = _is_separated(schema, writer)
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
        schema, writer = self._schema, self._writer
        if not self._separated:
            return schema.decoder(writer)
        pairs = schema_of_definition(writer) if isinstance(schema, AutoConsume) else schema
        assert isinstance(pairs, KeyValueSchema)
        return pairs.separated_decoder(writer)

    def __reduce__(self) -> tuple[Any, ...]:
        return WriterDecoder, (self._schema, self._writer)


def _is_separated(schema: Schema[Any], writer: SchemaInfo | None) -> bool:
    """True when the key of the pair is the message's key; with AutoConsume the definition says so."""
    if isinstance(schema, KeyValueSchema):
        return schema.encoding is KeyValueEncoding.SEPARATED
    if not isinstance(schema, AutoConsume) or writer is None or writer.type is not SchemaType.KEY_VALUE:
        return False
    try:
        return parts_of(writer)[2] is KeyValueEncoding.SEPARATED
    except SchemaDecodingError:  # the decoder says so where the value is looked at
        return False


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
