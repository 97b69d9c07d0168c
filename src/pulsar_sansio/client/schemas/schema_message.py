"""`SchemaInfo` as the message Schema of PRODUCER and SUBSCRIBE, and back from GET_SCHEMA_RESPONSE."""

from typing import Any

from ...model.errors import RemoteProtocolError
from ...model.schema import Schema, SchemaInfo, SchemaType
from ...wire import proto

_Type = proto.Schema.Type


def schema_message(schema: Schema[Any] | None, protocol_version: int) -> proto.Schema | None:
    """Return what a producer or consumer registers; None for bytes (rules SCHEMA-04, CONS-13).

    A broker older than protocol version 21 does not know AUTO_CONSUME, and gets nothing of it.
    """
    info = None if schema is None else schema.info
    if info is None or info.type is SchemaType.NONE:
        return None
    if info.type is SchemaType.AUTO_CONSUME and protocol_version < _AUTO_CONSUME_SINCE:
        return None
    message = proto.Schema(name=info.name, schema_data=info.data, type=_Type.Name(info.type))
    for key, value in info.properties:
        message.properties.add(key=key, value=value)
    return message


_AUTO_CONSUME_SINCE = 21
"""The protocol version that brought AUTO_CONSUME to the wire."""


def schema_info(message: proto.Schema) -> SchemaInfo:
    """Return the definition in a broker's answer. Raises `RemoteProtocolError` for a type that this version
    does not know."""
    try:
        kind = SchemaType(message.type)
    except ValueError:
        raise RemoteProtocolError(f"schema type {message.type} is not known") from None
    pairs = tuple((pair.key, pair.value) for pair in message.properties)
    return SchemaInfo(kind, message.name, message.schema_data, pairs)
