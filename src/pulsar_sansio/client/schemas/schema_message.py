"""`SchemaInfo` as the message Schema of PRODUCER and SUBSCRIBE, and back from GET_SCHEMA_RESPONSE."""

from typing import Any

from ...model.errors import RemoteProtocolError
from ...model.schema import Schema, SchemaInfo, SchemaType
from ...wire import proto

_Type = proto.Schema.Type


def schema_message(schema: Schema[Any] | None, protocol_version: int) -> proto.Schema | None:
    """Return what a producer or consumer registers; None for bytes (rules SCHEMA-04, CONS-13).

    A broker older than protocol version 21 does not know AUTO_CONSUME, and one older than 13 no definition of
    JSON (rule SCHEMA-05): these get nothing of it.
    """
    info = None if schema is None else schema.info
    if info is None or info.type is SchemaType.NONE:
        return None
    if protocol_version < _SINCE.get(info.type, 0):
        return None
    message = proto.Schema(name=info.name, schema_data=info.data, type=_Type.Name(info.type))
    for key, value in info.properties:
        message.properties.add(key=key, value=value)
    return message


_SINCE = {SchemaType.AUTO_CONSUME: 21, SchemaType.JSON: 13}
"""The protocol versions that brought these types to the wire."""


def schema_info(message: proto.Schema) -> SchemaInfo:
    """Return the definition in a broker's answer. Raises `RemoteProtocolError` for a type that this version
    does not know."""
    try:
        kind = SchemaType(message.type)
    except ValueError:
        raise RemoteProtocolError(f"schema type {message.type} is not known") from None
    pairs = tuple((pair.key, pair.value) for pair in message.properties)
    return SchemaInfo(kind, message.name, message.schema_data, pairs)
