"""Schemas: values of an application's types as payloads that every Pulsar client reads.

`Schema` is the interface; `schema_of` finds the schema of a Python type. Nothing here does I/O: the client
registers definitions with the broker and fetches those of other producers.
"""

from ..model.schema import Schema, SchemaInfo, SchemaType
from .annotations import AvroType, Float32, Int32
from .auto import AutoConsume
from .auto_publish import AutoPublish
from .avro_schema import AvroSchema
from .choice import schema_of
from .encoding import message_of
from .json_schema import JsonSchema
from .key_value import KeyValue, KeyValueEncoding, KeyValueSchema
from .primitives import (
    BOOLEAN,
    BYTES,
    DATE,
    DOUBLE,
    FLOAT,
    INSTANT,
    INT8,
    INT16,
    INT32,
    INT64,
    LOCAL_DATE,
    LOCAL_DATE_TIME,
    LOCAL_TIME,
    STRING,
    TIME,
    TIMESTAMP,
)
from .protobuf_schema import ProtobufNativeSchema, ProtobufSchema
from .registered_schema import RegisteredSchema

__all__ = [
    "AutoConsume",
    "AutoPublish",
    "AvroSchema",
    "AvroType",
    "BOOLEAN",
    "BYTES",
    "DATE",
    "DOUBLE",
    "FLOAT",
    "Float32",
    "INSTANT",
    "INT16",
    "INT32",
    "INT64",
    "INT8",
    "Int32",
    "JsonSchema",
    "KeyValue",
    "KeyValueEncoding",
    "KeyValueSchema",
    "LOCAL_DATE",
    "LOCAL_DATE_TIME",
    "LOCAL_TIME",
    "ProtobufNativeSchema",
    "ProtobufSchema",
    "RegisteredSchema",
    "STRING",
    "Schema",
    "SchemaInfo",
    "SchemaType",
    "TIME",
    "TIMESTAMP",
    "message_of",
    "schema_of",
]
