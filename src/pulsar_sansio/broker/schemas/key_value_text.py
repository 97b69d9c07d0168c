"""Definitions of keys and values over HTTP: one JSON text in place of two definitions behind their lengths.

The text is `{"key": …, "value": …}`. Each half is the JSON of a struct's definition, and an empty text for
other types. The types stand in the properties, on the wire and over HTTP alike.
"""

import json
from typing import Any

from ...model.errors import IncompatibleSchema
from ...model.schema import SchemaInfo, SchemaType
from ...schemas.key_value import join_inline, parts_of
from ...schemas.shapes.shape import avro_text
from .strategies import AVRO_TYPES


def pair_definition(text: str) -> bytes:
    """Return the definition for the wire. Raises `IncompatibleSchema` for other text."""
    try:
        pair = json.loads(text)
        return join_inline(_data(pair["key"]), _data(pair["value"]))
    except (ValueError, TypeError, LookupError, RecursionError):
        raise IncompatibleSchema(
            'Invalid schema definition data for KEY_VALUE schema: it is not {"key": …, "value": …}'
        ) from None


def pair_text(info: SchemaInfo) -> str:
    """Return the text of a valid definition."""
    key, value, _ = parts_of(info)
    return avro_text({"key": _plain(key), "value": _plain(value)})


def _data(half: Any) -> bytes:
    return b"" if half in (None, "") else avro_text(half).encode()


def _plain(half: SchemaInfo) -> Any:
    if half.type in AVRO_TYPES or half.type is SchemaType.PROTOBUF_NATIVE:
        return json.loads(half.data)
    return ""
