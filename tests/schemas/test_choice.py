"""`schema_of`: schemas of Python types."""

from datetime import date, datetime, time

import pydantic
import pytest

from pulsar_sansio.model.errors import InvalidConfiguration
from pulsar_sansio.model.schema import SchemaType
from pulsar_sansio.schemas import INT8, AvroSchema, schema_of
from pulsar_sansio.wire import proto

from .models import Line


class PydanticLine(pydantic.BaseModel):
    item: str


@pytest.mark.parametrize(
    ("given", "kind"),
    [
        (bytes, SchemaType.NONE),
        (str, SchemaType.STRING),
        (bool, SchemaType.BOOLEAN),
        (int, SchemaType.INT64),
        (float, SchemaType.DOUBLE),
        (datetime, SchemaType.INSTANT),
        (date, SchemaType.LOCAL_DATE),
        (time, SchemaType.LOCAL_TIME),
        (Line, SchemaType.JSON),
        (PydanticLine, SchemaType.JSON),
        (proto.KeyValue, SchemaType.PROTOBUF_NATIVE),
        (INT8, SchemaType.INT8),
        (AvroSchema(Line), SchemaType.AVRO),
    ],
)
def test_a_type_has_one_schema(given: object, kind: SchemaType) -> None:
    assert schema_of(given).info.type is kind


@pytest.mark.parametrize("given", [None, 5, "str", list, dict[str, int], object, Line("x")])
def test_anything_else_is_refused_with_what_is_allowed(given: object) -> None:
    with pytest.raises(InvalidConfiguration, match=r"a Schema, bytes, str, .*a dataclass.* not "):
        schema_of(given)
