"""Values of messages as JSON: `consume` prints it, and `produce` takes it."""

from base64 import b64encode
from collections.abc import Mapping
from datetime import date, datetime, time
from decimal import Decimal
from math import isfinite
from typing import Any
from uuid import UUID

from google.protobuf.json_format import MessageToDict
from google.protobuf.message import Message

from pulsar_sansio.schemas import KeyValue


def json_of_value(value: Any) -> Any:
    """Return plain data that JSON can write: dates and times as ISO 8601 text, bytes as Base64, decimals,
    UUIDs and numbers that are not finite as text, a pair as an object with `key` and `value`."""
    match value:
        case float() if not isfinite(value):
            return _NOT_FINITE.get(value, "NaN")
        case None | bool() | int() | float() | str():
            return value
        case bytes():
            return b64encode(value).decode()
        case datetime() | date() | time():
            return value.isoformat()
        case KeyValue():
            return {"key": json_of_value(value.key), "value": json_of_value(value.value)}
        case Mapping():
            return {str(key): json_of_value(each) for key, each in value.items()}
        case list() | tuple():
            return [json_of_value(each) for each in value]
        case Message():
            return MessageToDict(value, preserving_proto_field_name=True)
        case Decimal() | UUID():
            return str(value)
    raise TypeError(f"no JSON for {type(value).__name__}")


_NOT_FINITE = {float("inf"): "Infinity", float("-inf"): "-Infinity"}
