"""Unions of several types, as structs of member0, member1, …: read and written, compared with the core."""

from typing import Any

import pyarrow as pa
import pytest

from pulsar_sansio.schemas import AvroSchema, SchemaInfo
from pulsar_spark.schemas.decoders import decoder_of
from pulsar_spark.schemas.definitions import Definitions, NoDecoderError
from pulsar_spark.schemas.encoders import UnencodableError, encoder_of
from pulsar_spark.schemas.spark_types import as_spark

pytestmark = pytest.mark.spark


def record(name: str, *fields: tuple[str, Any]) -> dict[str, Any]:
    return {
        "type": "record",
        "name": name,
        "namespace": "n",
        "fields": [{"name": field, "type": kind} for field, kind in fields],
    }


POINT = record("Point", ("x", "int"), ("y", ["null", "string", "int"]))
NAME = record("Name", ("x", "string"))
UNIONS = AvroSchema(
    definition=record(
        "All",
        ("one", ["null", "string", "bytes", POINT, NAME, {"type": "int", "logicalType": "date"}]),
        ("two", {"type": "array", "items": ["long", "n.Point", {"type": "map", "values": "n.Name"}]}),
        ("wide", ["int", "null", "long"]),
        ("real", ["null", "float", "double"]),
        ("flag", ["boolean", {"type": "enum", "name": "E", "symbols": ["A", "B"]}]),
    )
)

VALUES: list[dict[str, Any]] = [
    {"one": "text", "two": [], "wide": 1, "real": 0.1, "flag": True},
    {"one": b"bytes", "two": [5, {"x": 1, "y": None}], "wide": 2**40, "real": None, "flag": "B"},
    {"one": {"x": 3, "y": "s"}, "two": [{"k": {"x": "v"}}], "wide": None, "real": 2.5, "flag": False},
    {"one": {"x": "name"}, "two": [{"x": 7, "y": 8}], "wide": -1, "real": None, "flag": "A"},
    {"one": None, "two": [], "wide": 0, "real": None, "flag": True},
]


def member(index: int, value: Any, count: int) -> dict[str, Any]:
    return {f"member{each}": value if each == index else None for each in range(count)}


def expected(number: int) -> dict[str, Any]:
    """The struct of one of the values."""
    value = VALUES[number]
    one = [
        member(0, "text", 5),
        member(1, b"bytes", 5),
        member(2, {"x": 3, "y": member(0, "s", 2)}, 5),
        member(3, {"x": "name"}, 5),
        None,
    ][number]
    two = [
        [],
        [member(0, 5, 3), member(1, {"x": 1, "y": None}, 3)],
        [member(2, [("k", {"x": "v"})], 3)],
        [member(1, {"x": 7, "y": member(1, 8, 2)}, 3)],
        [],
    ][number]
    flag = member(int(isinstance(value["flag"], str)), value["flag"], 2)
    return {**value, "one": one, "two": two, "flag": flag}


@pytest.mark.parametrize("number", range(len(VALUES)))
def test_a_union_is_read_as_its_member(number: int) -> None:
    """SCHEMA-10"""
    decoder = decoder_of(UNIONS.info)
    (found,) = decoder.decode([UNIONS.encode(VALUES[number])], ()).to_pylist()
    if number == 0:  # the core writes the first type that takes a number
        found["real"] = round(found["real"], 6)
    assert found == expected(number)


@pytest.mark.parametrize("number", range(len(VALUES)))
def test_a_member_is_written_as_its_type(number: int) -> None:
    """SCHEMA-10: what the core reads is the value. A double is no float, so it keeps its digits."""
    encoder = encoder_of(UNIONS.info)
    column = pa.array([expected(number)], as_spark(encoder.type.arrow))
    encoder.check(column.type)
    (payload,) = encoder.encode(column).payloads
    assert payload is not None
    assert UNIONS.decode(payload) == VALUES[number]


@pytest.mark.parametrize(
    ("flag", "says"),
    [
        (member(0, None, 2), "a union has one of member0, member1, not none"),
        ({"member0": True, "member1": "A"}, "not member0 and member1"),
        (None, "flag"),
        ({"member0": None, "member1": "C"}, "flag"),
    ],
)
def test_a_struct_that_is_no_union_is_refused_with_its_row(flag: Any, says: str) -> None:
    encoder = encoder_of(UNIONS.info)
    rows = [expected(0), {**expected(1), "flag": flag}]
    with pytest.raises(UnencodableError, match=says) as caught:
        encoder.encode(pa.array(rows, as_spark(encoder.type.arrow)))
    assert caught.value.row == 1


def test_a_default_is_of_the_first_type() -> None:
    old = AvroSchema(definition=record("R", ("a", "int")))
    tree = record("R", ("a", "int"), ("b", ["string", "int"]))
    tree["fields"][1]["default"] = "d"
    new = decoder_of(AvroSchema(definition=tree).info)
    found = Definitions(lambda topic, version: old.info, as_spark(new.type.arrow), new.type).decode("t", b"v")
    assert found([old.encode({"a": 1})], [None]).to_pylist() == [{"a": 1, "b": member(0, "d", 2)}]


def test_a_member_that_the_reader_lacks_is_no_value() -> None:
    """The stream was planned with fewer types."""
    old, new = (
        AvroSchema(definition=record("R", ("a", {"type": "array", "items": ["string", "int", *more]}))).info
        for more in ([], ["bytes"])
    )
    infos: dict[bytes | None, SchemaInfo] = {b"old": old, b"new": new}

    def definitions(reader: SchemaInfo) -> Definitions:
        kind = decoder_of(reader).type
        return Definitions(lambda _, version: infos[version], as_spark(kind.arrow), kind)

    with pytest.raises(NoDecoderError, match=r"value.a\[\].member2: a type of a union that the reader lacks"):
        definitions(old).decode("t", b"new")
    payload = AvroSchema(definition=old.data.decode()).encode({"a": [1]})
    found = definitions(new).decode("t", b"old")([payload], [None]).to_pylist()
    assert found == [{"a": [member(1, 1, 3)]}]


def test_names_of_a_definition_do_not_meet_those_made_for_it() -> None:
    tree = record("R", ("a", ["string", record("Member1", ("b", "int"))]), ("c", "n.Member1"))
    schema = AvroSchema(definition=tree)
    value = {"a": {"b": 1}, "c": {"b": 2}}
    found = decoder_of(schema.info).decode([schema.encode(value)], ()).to_pylist()
    assert found == [{"a": member(1, {"b": 1}, 2), "c": {"b": 2}}]
