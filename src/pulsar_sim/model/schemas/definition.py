"""`Definition`: a record of named fields as the reference model knows it.

Owns Avro's rules of resolution as far as these worlds need them: fields are found by name, a field that the
writer lacks has its default, one that the reader lacks is skipped. It shares no code with the library.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

Value: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class RecordField:
    """One field of a record."""

    name: str
    type: str
    default: Any = None
    """None means that the field has no default."""

    @property
    def as_avro(self) -> dict[str, Any]:
        found = {"name": self.name, "type": self.type}
        return found if self.default is None else {**found, "default": self.default}


@dataclass(frozen=True, slots=True)
class Definition:
    """A record as a producer or consumer defines it."""

    name: str
    fields: tuple[RecordField, ...]

    @property
    def text(self) -> str:
        """The definition in Avro's JSON."""
        return json.dumps(
            {"type": "record", "name": "Item", "fields": [field.as_avro for field in self.fields]},
            separators=(",", ":"),
        )

    def reads(self, writer: "Definition") -> bool:
        """True when every value of `writer` gives a value of this definition."""
        written = {field.name: field for field in writer.fields}
        return all(
            field.default is not None if field.name not in written else written[field.name].type == field.type
            for field in self.fields
        )

    def read(self, value: Value) -> dict[str, Any]:
        """Return the value as a reader with this definition has it."""
        return {field.name: value.get(field.name, field.default) for field in self.fields}

    def value(self, number: int, text: str) -> dict[str, Any]:
        """Return a value of this definition for a message, with a text that names it."""
        given = {"name": text, "number": number, "colour": f"{number % 3}", "size": 2 * number}
        found = {field.name: given[field.name] for field in self.fields}
        return {**found, "number": str(number)} if self is FOREIGN else found


_NAMED = (RecordField("name", "string"), RecordField("number", "long"))

PLAIN = Definition("plain", _NAMED)
"""The definition that every topic has from the beginning."""

COLOURED = Definition("coloured", (*_NAMED, RecordField("colour", "string", "grey")))
SIZED = Definition("sized", (RecordField("size", "long", 7), *_NAMED))
"""These two may follow PLAIN and each other, in any order."""

MEASURED = Definition("measured", (RecordField("size", "long"), *_NAMED))
"""All others read it, and it reads SIZED alone: it may follow SIZED where only the latest version counts."""

FOREIGN = Definition("foreign", (RecordField("name", "string"), RecordField("number", "string")))
"""No other definition reads it, and it reads no other."""

COMPATIBLE = (PLAIN, COLOURED, SIZED)
"""The definitions that read each other."""

DEFINITIONS = (*COMPATIBLE, MEASURED, FOREIGN)
