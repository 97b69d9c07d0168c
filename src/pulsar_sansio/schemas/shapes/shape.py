"""`Shape`: one type of a structured value, as Avro defines it, with its conversions to and from plain data.

Plain data is what an Avro or JSON library takes: dicts, lists, text, numbers, and for Avro also bytes, dates
and times. Each `Form` has its own conversions. This module knows neither applications' classes nor payloads.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any

Convert = Callable[[Any], Any]


class Form(Enum):
    """The encoding that plain data is meant for."""

    AVRO = "Avro"
    JSON = "JSON"


class WrongValueError(ValueError):
    """A value does not fit its type. `path` names the fields and items that lead to it."""

    def __init__(self, words: str, path: tuple[str, ...] = ()) -> None:
        super().__init__(words)
        self.words = words
        self.path = path

    def within(self, step: str) -> "WrongValueError":
        """Return the error as the value around sees it: `step` is its field or item."""
        return WrongValueError(self.words, (step, *self.path))

    def __str__(self) -> str:
        return f"{''.join(self.path).lstrip('.')}: {self.words}" if self.path else self.words


@dataclass(frozen=True, slots=True)
class Shape:
    """`avro`: the type as Avro's JSON has it. `encode` gives plain data and checks the value, `decode` gives
    the value of plain data; both raise `WrongValueError`. `default` gives a default as a definition has it.

    `decode` is None where plain data is the value already, which the encoding itself has checked.
    """

    avro: Any
    encode: Convert
    decode: Convert | None
    default: Convert
    fits: Convert
    """True for a value that belongs to this shape rather than to another one of a union."""
    record: str | None = None
    """The full name where it is a record."""


class Absent(Enum):
    """Plain data of a field that the payload's writer has not, and that its reader has a default for."""

    ABSENT = "absent"


ABSENT = Absent.ABSENT


def same(value: Any) -> Any:
    """Return the value: a conversion that has nothing to do."""
    return value


def wrong(words: str, value: object) -> WrongValueError:
    """Name the type of a wrong value. The value is not shown: errors are logged, payloads are not."""
    return WrongValueError(f"{words}, not {article(type(value).__name__)}")


def article(name: str) -> str:
    return f"an {name}" if name[:1] in "aeiouAEIOU" else f"a {name}"


def avro_text(avro: Any) -> str:
    """Return a definition as compact JSON text."""
    return json.dumps(avro, separators=(",", ":"), ensure_ascii=False)


def full_name(avro: dict[str, Any]) -> str:
    """Return the name of a record, enum or fixed type with its namespace."""
    name: str = avro["name"]
    namespace = avro.get("namespace")
    return f"{namespace}.{name}" if namespace and "." not in name else name
