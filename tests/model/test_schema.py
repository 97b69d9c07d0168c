"""`Schema`: a schema of an application's own."""

import pytest

from pulsar_sansio.model.errors import InvalidMessage, SchemaDecodingError
from pulsar_sansio.model.schema import Schema, SchemaInfo, SchemaType
from pulsar_sansio.schemas import STRING, KeyValue, KeyValueEncoding, KeyValueSchema, schema_of


class Celsius(Schema[float]):
    """Degrees as text, registered as a string."""

    @property
    def info(self) -> SchemaInfo:
        return SchemaInfo(SchemaType.STRING, "celsius")

    def encode(self, value: float) -> bytes:
        if not isinstance(value, float):
            raise InvalidMessage(f"degrees, not {type(value).__name__}")
        return f"{value:.1f}°C".encode()

    def decode(self, data: bytes) -> float:
        text = data.decode(errors="replace")
        if not text.endswith("°C"):
            raise SchemaDecodingError("no degrees")
        return float(text.removesuffix("°C"))


def test_an_application_may_have_a_schema_of_its_own() -> None:
    """SCHEMA-02: a schema encodes, decodes and describes itself."""
    schema = Celsius()
    assert schema_of(schema) is schema
    assert schema.encode(21.5) == "21.5°C".encode()
    assert schema.decoder(None)("21.5°C".encode()) == 21.5
    assert schema.decoder(SchemaInfo(SchemaType.STRING))("-3.0°C".encode()) == -3.0
    assert not schema.wants_writer


def test_it_goes_with_the_others() -> None:
    schema = KeyValueSchema(STRING, Celsius(), KeyValueEncoding.INLINE)
    assert schema.decode(schema.encode(KeyValue("kitchen", 21.5))) == KeyValue("kitchen", 21.5)
    assert dict(schema.info.properties)["value.schema.name"] == "celsius"


def test_a_schema_without_its_parts_cannot_be_made() -> None:
    class Half(Schema[int]):
        def encode(self, value: int) -> bytes:
            return bytes(value)

    with pytest.raises(TypeError, match="abstract"):
        Half()  # type: ignore[abstract]
