"""Unions of several types: which one a value is written as."""

from typing import Any

import pytest

from pulsar_sansio.model.errors import InvalidMessage
from pulsar_sansio.schemas import AvroSchema


def union(*types: Any) -> AvroSchema[Any]:
    return AvroSchema(definition={"type": "record", "name": "R", "fields": [{"name": "a", "type": [*types]}]})


def record(name: str, field: str) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": [{"name": field, "type": "int"}]}


def test_a_dict_is_written_as_the_record_that_it_fits() -> None:
    """SCHEMA-10"""
    schema = union("null", record("X", "x"), record("Y", "y"))
    assert schema.encode({"a": {"x": 1}}) == b"\x02\x02"
    assert schema.encode({"a": {"y": 1}}) == b"\x04\x02"
    with pytest.raises(InvalidMessage, match="a: X has no field 'z'"):
        schema.encode({"a": {"z": 1}})


def test_a_number_is_written_as_the_type_that_holds_it() -> None:
    """SCHEMA-10"""
    schema = union("int", "long")
    assert schema.encode({"a": 1}) == b"\0\x02"
    assert schema.decode(schema.encode({"a": 2**40})) == {"a": 2**40}
