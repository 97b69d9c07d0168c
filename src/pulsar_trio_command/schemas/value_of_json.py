"""`ValueOfJson`: plain data that was read as JSON, as a value of an Avro type.

JSON has no bytes, dates and decimals, so text and numbers become them where the definition says so. The
schema that encodes the value checks the rest.
"""

from base64 import b64decode
from collections.abc import Callable, Mapping
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any
from uuid import UUID

from pulsar_sansio.schemas.definitions import AvroDefinition
from pulsar_sansio.schemas.shapes.leaves import LOGICAL
from pulsar_sansio.schemas.shapes.shape import Form, WrongValueError, wrong

NOT_FINITE = ("NaN", "Infinity", "-Infinity")
"""Numbers that JSON cannot write, as text."""

_ISO: dict[str, tuple[Callable[[str], Any], str]] = {
    "timestamp-millis": (datetime.fromisoformat, "an ISO 8601 moment"),
    "timestamp-micros": (datetime.fromisoformat, "an ISO 8601 moment"),
    "local-timestamp-millis": (datetime.fromisoformat, "an ISO 8601 moment"),
    "local-timestamp-micros": (datetime.fromisoformat, "an ISO 8601 moment"),
    "date": (date.fromisoformat, "an ISO 8601 date"),
    "time-millis": (time.fromisoformat, "an ISO 8601 time"),
    "time-micros": (time.fromisoformat, "an ISO 8601 time"),
    "uuid": (UUID, "the text of a UUID"),
}
"""Logical types that are text in JSON; dates and times may also be numbers, as Avro has them."""


class ValueOfJson:
    """Makes values of one definition. Raises `WrongValueError`, which names the field."""

    def __init__(self, definition: AvroDefinition) -> None:
        self._avro = definition.avro
        self._named = definition.named

    def __call__(self, plain: Any) -> Any:
        return self._value(self._avro, plain)

    def _value(self, avro: Any, plain: Any) -> Any:
        if isinstance(avro, list):
            return self._of_union(avro, plain)
        if isinstance(avro, str):
            avro = self._named.get(avro, {"type": avro})
        kind, logical = avro["type"], avro.get("logicalType")
        if logical == "decimal":
            return _decimal(plain)
        if logical is not None:
            return _logical(kind, logical, plain)
        if kind in ("bytes", "fixed"):
            return parsed(bytes_of_base64, "Base64 text", plain)
        if kind in ("float", "double"):
            return float(plain) if plain in NOT_FINITE else plain
        if kind == "array" and isinstance(plain, list):
            return [self._inner(f"[{at}]", avro["items"], each) for at, each in enumerate(plain)]
        if kind == "map" and isinstance(plain, Mapping):
            return {key: self._inner(f"[{key!r}]", avro["values"], each) for key, each in plain.items()}
        if kind == "record" and isinstance(plain, Mapping):
            types = {field["name"]: field["type"] for field in avro["fields"]}
            return {
                key: self._inner(f".{key}", types[key], each) if key in types else each
                for key, each in plain.items()
            }
        return plain

    def _inner(self, step: str, avro: Any, plain: Any) -> Any:
        try:
            return self._value(avro, plain)
        except WrongValueError as error:
            raise error.within(step) from None

    def _of_union(self, branches: list[Any], plain: Any) -> Any:
        """Take the branch that JSON of this kind can only mean; among several, the first that fits."""
        fitting = [each for each in branches if self._fits(each, plain)]
        for branch in fitting[:-1]:
            try:
                return self._value(branch, plain)
            except WrongValueError:
                continue
        return self._value(fitting[-1], plain) if fitting else plain

    def _fits(self, avro: Any, plain: Any) -> bool:
        if isinstance(avro, str):
            avro = self._named.get(avro, {"type": avro})
        kind, logical = avro["type"], avro.get("logicalType")
        match plain:
            case None:
                return bool(kind == "null")
            case bool():
                return bool(kind == "boolean")
            case int() | float():
                return kind in ("int", "long", "float", "double") or logical == "decimal"
            case str():
                if kind == "enum":
                    return plain in avro["symbols"]
                is_number = kind in ("float", "double") and plain in NOT_FINITE
                return kind in ("string", "bytes", "fixed") or logical is not None or is_number
            case list():
                return bool(kind == "array")
        if kind == "record":
            return set(plain) <= {field["name"] for field in avro["fields"]}
        return bool(kind == "map")


def bytes_of_base64(text: str) -> bytes:
    return b64decode(text, validate=True)


def parsed(parse: Callable[[str], Any], words: str, plain: Any) -> Any:
    """Return what text of JSON means. Raises `WrongValueError`, which does not show the text."""
    if not isinstance(plain, str):
        raise wrong(words, plain)
    try:
        return parse(plain)
    except (ValueError, ArithmeticError):
        raise WrongValueError(f"{words}, not other text") from None


def _decimal(plain: Any) -> Any:
    if isinstance(plain, (int, float)) and not isinstance(plain, bool):
        return Decimal(str(plain))
    return parsed(Decimal, "the text of a decimal number", plain)


def _logical(kind: str, logical: str, plain: Any) -> Any:
    if isinstance(plain, int) and kind != "string":
        convert = LOGICAL[kind, logical][Form.JSON].decode
        assert convert is not None, "JSON has a number for each date and time"
        return convert(plain)
    return parsed(*_ISO[logical], plain)
