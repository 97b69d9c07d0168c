"""`schema_of`: the schema of a Python type, for `schema=str` and `schema=Order`."""

from datetime import date, datetime, time
from typing import Any

from google.protobuf.message import Message

from ..model.errors import InvalidConfiguration
from ..model.schema import Schema
from .json_schema import JsonSchema
from .models import is_model
from .primitives import BOOLEAN, BYTES, DOUBLE, INSTANT, INT64, LOCAL_DATE, LOCAL_TIME, STRING
from .protobuf_schema import ProtobufNativeSchema

_BY_TYPE: dict[type, Schema[Any]] = {
    bytes: BYTES,
    str: STRING,
    bool: BOOLEAN,
    int: INT64,
    float: DOUBLE,
    datetime: INSTANT,
    date: LOCAL_DATE,
    time: LOCAL_TIME,
}


def schema_of(given: Any) -> Schema[Any]:
    """Return the schema that an application means: a schema, or a type that has one.

    Models (dataclasses, pydantic models, msgspec Structs) are JSON, and protobuf classes PROTOBUF_NATIVE: for
    Avro, say `AvroSchema(Order)`. Raises `InvalidConfiguration` for anything else.
    """
    if isinstance(given, Schema):
        return given
    if isinstance(given, type):
        if given in _BY_TYPE:
            return _BY_TYPE[given]
        if is_model(given):
            return JsonSchema(given)
        if issubclass(given, Message):
            return ProtobufNativeSchema(given)
    raise InvalidConfiguration(
        f"schema: a Schema, {', '.join(kind.__name__ for kind in _BY_TYPE)}, a dataclass, a pydantic model, "
        f"a msgspec Struct or a protobuf class, not {given!r:.100}"
    )
