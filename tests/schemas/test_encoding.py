"""`encoder_of`: payload and key of a value."""

from collections.abc import Callable
from typing import Any

import pytest

from pulsar_sansio.model.config import NULL_KEY
from pulsar_sansio.model.errors import InvalidMessage
from pulsar_sansio.model.schema import Schema, SchemaInfo, SchemaType
from pulsar_sansio.schemas import INT32, STRING, JsonSchema, KeyValue, KeyValueEncoding, KeyValueSchema
from pulsar_sansio.schemas.encoding import encoder_of

from .models import Line

SEPARATED = KeyValueSchema(INT32, STRING)
INLINE = KeyValueSchema(STRING, INT32, KeyValueEncoding.INLINE)


@pytest.mark.parametrize(
    ("schema", "value", "encoded"),
    [
        (STRING, "text", (b"text", None)),
        (STRING, None, (None, None)),
        (JsonSchema(Line), Line("x", 2), (b'{"item":"x","amount":2}', None)),
        (SEPARATED, KeyValue(7, "v"), (b"v", b"\0\0\0\7")),
        (SEPARATED, KeyValue(7, None), (None, b"\0\0\0\7")),
        (SEPARATED, KeyValue(None, "v"), (b"v", NULL_KEY)),
        (INLINE, KeyValue("k", 7), (b"\0\0\0\1k\0\0\0\4\0\0\0\7", None)),
        (INLINE, None, (None, None)),
    ],
)
def test_payload_and_key(schema: Schema[Any], value: Any, encoded: Any) -> None:
    """SCHEMA-09: in SEPARATED the key is the message's key; a null value has no payload."""
    assert encoder_of(schema)(value) == encoded


def test_a_pair_cannot_be_null_as_a_whole_where_its_key_is_the_key_of_the_message() -> None:
    with pytest.raises(InvalidMessage, match="a KeyValue, whose value may be None"):
        encoder_of(SEPARATED)(None)


class Broken(Schema[str]):
    """A schema of an application that does not check its values."""

    @property
    def info(self) -> SchemaInfo:
        return SchemaInfo(SchemaType.STRING, "Broken")

    def encode(self, value: str) -> bytes:
        return value.encode()

    def decode(self, data: bytes) -> str:
        return data.decode()

    def __repr__(self) -> str:
        return "<schema of my own>"


@pytest.mark.parametrize(
    ("make", "value"),
    [
        (Broken, 7),
        (lambda: KeyValueSchema(STRING, Broken()), KeyValue("k", 7)),
        (lambda: KeyValueSchema(Broken(), STRING), KeyValue(7, "v")),
    ],
)
def test_an_exception_of_an_own_schema_is_the_cause_of_ours(
    make: Callable[[], Schema[Any]], value: Any
) -> None:
    with pytest.raises(InvalidMessage, match=r"<schema of my own>.* cannot encode a") as refused:
        encoder_of(make())(value)
    assert isinstance(refused.value.__cause__, AttributeError)
