"""`AvroDefinition`: definitions of strangers, read and written anew."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsar_sansio.schemas.definitions import MAX_DEPTH, AvroDefinition, DefinitionError


def record(name: str, *types: Any, **more: Any) -> dict[str, Any]:
    fields = [{"name": f"f{index}", "type": each} for index, each in enumerate(types)]
    return {"type": "record", "name": name, "fields": fields, **more}


@pytest.mark.parametrize(
    "definition",
    [
        "int",
        {"type": "array", "items": "string"},
        {"type": "map", "values": ["null", "long"]},
        record("Outer$Inner", "int", namespace="a.b$"),
        {"type": "enum", "name": "E", "symbols": ["A", "B"], "default": "A"},
        {"type": "fixed", "name": "F", "size": 16},
        {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2},
        {"type": "long", "logicalType": "timestamp-millis"},
        record("A", record("B", ["null", "A"]), "B"),
    ],
)
def test_a_definition_comes_out_as_it_was(definition: Any) -> None:
    assert AvroDefinition(json.dumps(definition)).avro == definition
    assert AvroDefinition(json.dumps(definition).encode()).avro == definition


def test_only_known_attributes_come_out() -> None:
    """fastavro takes a definition for checked that says so itself."""
    given = {
        "type": "record", "name": "A", "doc": "text", "aliases": ["B"], "__fastavro_parsed": True,
        "__named_schemas": {},
        "fields": [{"name": "x", "type": {"type": "int", "logicalType": "unknown"}, "order": "ignore"}],
    }  # fmt: skip
    assert AvroDefinition(given).avro == record("A") | {"fields": [{"name": "x", "type": "int"}]}


def test_names_are_found_within_their_namespace() -> None:
    definition = AvroDefinition(record("A", record("B"), "B", "x.B", namespace="x"))
    assert [field["type"] for field in definition.avro["fields"]][1:] == ["x.B", "x.B"]
    dotted = AvroDefinition(record("x.y.A", ["null", "A"]))
    assert dotted.avro["namespace"] == "x.y"
    assert dotted.recursive


def test_recursive_is_a_record_that_holds_itself() -> None:
    assert AvroDefinition(record("A", ["null", "A"])).recursive
    assert AvroDefinition(record("A", record("B", {"type": "map", "values": "A"}))).recursive
    assert not AvroDefinition(record("A", record("B", "int"), "B")).recursive


@pytest.mark.parametrize(
    ("definition", "words"),
    [
        ("", "no JSON"),
        ("[" * 5000, "no JSON|types within each other"),
        ("5", "a type is text, a list or an object, not 5"),
        ("null ", "a type is text"),
        ('"foo"', "unknown type 'foo'"),
        ({"type": "foo"}, "unknown type 'foo'"),
        ({"type": 5}, "an object without a type"),
        ({}, "an object without a type"),
        ([], "a union without branches"),
        (["int", ["null"]], "a union directly within a union"),
        (["int", {"type": ["null"]}], "a union directly within a union"),
        (["int", "int"], "a union with one type twice"),
        (["int", {"type": "array", "items": "int"}, {"type": "array", "items": "long"}], "one type twice"),
        ({"type": "array"}, "an array without items"),
        ({"type": "map"}, "a map without values"),
        ({"type": "record", "name": "A"}, "record A: fields is a list, not None"),
        ({"type": "record", "fields": []}, "record: a name of letters"),
        (record("a-b"), "record: a name of letters"),
        (record("A", namespace=5), "record A: a wrong namespace 5"),
        (record("int"), "record int: the name is taken"),
        (record("A", record("A")), "A.f0: record A: the name is taken"),
        ({"type": "record", "name": "A", "fields": [5]}, "record A: a field has a name and a type, not 5"),
        ({"type": "record", "name": "A", "fields": [{"name": "x"}]}, "a field has a name and a type"),
        (
            {"type": "record", "name": "A", "fields": [{"name": "x", "type": "int"}] * 2},
            "record A: two fields x",
        ),
        ({"type": "enum", "name": "E", "symbols": ["a-b"]}, "enum E: symbols is a list of names"),
        ({"type": "enum", "name": "E", "symbols": ["A", "A"]}, "enum E: a symbol twice"),
        ({"type": "enum", "name": "E", "symbols": ["A"], "default": "B"}, "default 'B' is none of"),
        ({"type": "fixed", "name": "F", "size": -1}, "fixed F: size is a whole number from 0"),
        ({"type": "fixed", "name": "F", "size": True}, "fixed F: size is a whole number from 0"),
        ({"type": "bytes", "logicalType": "decimal"}, "decimal bytes: precision from 1"),
        (
            {"type": "bytes", "logicalType": "decimal", "precision": 2, "scale": 3},
            "scale from 0 to precision",
        ),
        (record("A", record("B", {"type": "list"})), "A.f0: B.f0: unknown type 'list'"),
    ],
)
def test_what_is_wrong_is_named_with_its_place(definition: Any, words: str) -> None:
    given = definition if isinstance(definition, str) else json.dumps(definition)
    with pytest.raises(DefinitionError, match=words):
        AvroDefinition(given)


def test_types_within_types_have_a_limit() -> None:
    def nested(depth: int) -> Any:
        definition: Any = "int"
        for _ in range(depth):
            definition = {"type": "array", "items": definition}
        return definition

    AvroDefinition(nested(MAX_DEPTH))
    with pytest.raises(DefinitionError, match=f"more than {MAX_DEPTH} types within each other"):
        AvroDefinition(nested(MAX_DEPTH + 1))


@pytest.mark.parametrize(
    "items",
    ["null", record("A"), record("A", "null", record("B")), {"type": "fixed", "name": "F", "size": 0}],
)
def test_an_array_of_nothing_would_have_no_limit(items: Any) -> None:
    with pytest.raises(DefinitionError, match="items that take no bytes"):
        AvroDefinition({"type": "array", "items": items})
    AvroDefinition({"type": "array", "items": ["null", items] if items != "null" else ["null"]})


def test_records_do_not_multiply_out_of_nothing() -> None:
    """Each record holds the one before it twice: thirty of them make a billion values of no bytes."""
    definition: Any = record("R0")
    for number in range(1, 31):
        definition = record(f"R{number}", definition, f"R{number - 1}")
    with pytest.raises(DefinitionError, match="values that take no bytes, 100 are allowed"):
        AvroDefinition(definition)


@given(
    st.recursive(
        st.sampled_from(["int", "null", "string", "A", "record", 5, None]),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(
                    ["type", "name", "fields", "items", "values", "symbols", "size", "logicalType"]
                ),
                inner,
            )
        ),
        max_leaves=12,
    )
)
def test_any_json_is_a_definition_or_the_declared_error(given: Any) -> None:
    try:
        definition = AvroDefinition(json.dumps(given))
    except DefinitionError:
        return
    assert AvroDefinition(json.dumps(definition.avro)).avro == definition.avro
