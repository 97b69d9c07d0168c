"""The tables of conversion: Avro's types as Spark's, and back."""

import json
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from pulsar_sansio.schemas import SchemaInfo, SchemaType
from pulsar_spark.schemas.avro_types import (
    NoSparkTypeError,
    definition_of,
    payload_definition,
    tree_of,
    type_of,
)
from pulsar_spark.schemas.spark_types import NoArrowTypeError, arrow_of, as_spark, ddl_of
from pulsar_spark.schemas.value_types import ValueType

pytestmark = pytest.mark.spark


def read(tree: Any, kind: SchemaType = SchemaType.AVRO) -> ValueType:
    return type_of(tree_of(SchemaInfo(kind, "", json.dumps(tree).encode())), kind)


def record(*fields: Any, name: str = "R") -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": [*fields]}


def field(avro: Any) -> dict[str, Any]:
    """A record of one field."""
    return record({"name": "a", "type": avro})


def logical(base: str, name: str, **more: Any) -> dict[str, Any]:
    return {"type": base, "logicalType": name, **more}


A_FIELD = {"name": "a", "type": "int"}


@pytest.mark.parametrize(
    ("avro", "ddl"),
    [
        ("boolean", "boolean"),
        ("int", "int"),
        ("long", "bigint"),
        ("float", "float"),
        ("double", "double"),
        ("string", "string"),
        ("bytes", "binary"),
        (logical("int", "date"), "date"),
        (logical("long", "timestamp-millis"), "timestamp"),
        (logical("long", "timestamp-micros"), "timestamp"),
        (logical("long", "local-timestamp-millis"), "timestamp_ntz"),
        (logical("long", "local-timestamp-micros"), "timestamp_ntz"),
        (logical("int", "time-millis"), "int"),
        (logical("long", "time-micros"), "bigint"),
        (logical("string", "uuid"), "string"),
        (logical("bytes", "decimal", precision=9, scale=2), "decimal(9,2)"),
        ({"type": "fixed", "name": "F", "size": 4}, "binary"),
        ({"type": "fixed", "name": "F", "size": 4, "logicalType": "decimal", "precision": 9}, "decimal(9,0)"),
        ({"type": "enum", "name": "E", "symbols": ["A"]}, "string"),
        (["null", "long"], "bigint"),
        (["long", "null"], "bigint"),
        (["long"], "bigint"),
        ({"type": "array", "items": ["null", "string"]}, "array<string>"),
        ({"type": "map", "values": {"type": "array", "items": "int"}}, "map<string,array<int>>"),
        (
            record(A_FIELD, {"name": "b", "type": record(A_FIELD, name="n.S")}),
            "struct<`a`:int,`b`:struct<`a`:int>>",
        ),
        (
            record(
                {"name": "a", "type": record(A_FIELD, name="n.S")}, {"name": "b", "type": ["null", "n.S"]}
            ),
            "struct<`a`:struct<`a`:int>,`b`:struct<`a`:int>>",
        ),
        (record({"name": "a$", "type": "int"}), "struct<`a$`:int>"),
    ],
)
def test_a_definition_has_a_type(avro: Any, ddl: str) -> None:
    """JSON schemas have definitions of the same types."""
    assert ddl_of(as_spark(read(avro).arrow)) == ddl
    assert ddl_of(as_spark(read(avro, SchemaType.JSON).arrow)) == ddl


@pytest.mark.parametrize(
    ("avro", "says"),
    [
        (field("null"), "value.a: always null"),
        (field(["null"]), "value.a: always null"),
        (record(), "value: a record without fields"),
        (record({"name": "next", "type": ["null", "R"]}), "value.next: recursive, R holds itself"),
        (
            field(record({"name": "b", "type": {"type": "map", "values": "R"}}, name="S")),
            r"value.a.b\[\]: recursive, R holds itself",
        ),
        (field(logical("bytes", "decimal", precision=39)), "value.a: a decimal of 39 digits"),
        (
            field(["string", "null", record({"name": "b", "type": ["null", "S"]}, name="S")]),
            r"value.a.member1.b: recursive, S holds itself, .*from_avro",
        ),
        (field("unknown"), "the definition is wrong: .*unknown type 'unknown'"),
    ],
)
def test_a_definition_without_a_type_says_where(avro: Any, says: str) -> None:
    with pytest.raises(NoSparkTypeError, match=says):
        read(avro)


@pytest.mark.parametrize(
    ("union", "ddl"),
    [
        (["int", "string"], "struct<`member0`:int,`member1`:string>"),
        (["string", "null", "bytes"], "struct<`member0`:string,`member1`:binary>"),
        (["null", "int", "long"], "bigint"),
        (["long", "int"], "bigint"),
        (["double", "null", "float"], "double"),
        (["int", "float"], "struct<`member0`:int,`member1`:float>"),
        (
            ["null", logical("int", "date"), record(A_FIELD, name="S")],
            "struct<`member0`:date,`member1`:struct<`a`:int>>",
        ),
    ],
)
def test_a_union_is_a_struct_of_its_members(union: list[Any], ddl: str) -> None:
    """Spark's `from_avro` has these types, too."""
    assert ddl_of(as_spark(read(field(union)).field("a").type.arrow)) == ddl


def test_a_union_in_json_is_refused_unless_it_is_of_numbers() -> None:
    with pytest.raises(NoSparkTypeError, match=r"value.a: a union of int, string; JSON does not say which"):
        read(field(["int", "string"]), SchemaType.JSON)
    assert read(field(["int", "long"]), SchemaType.JSON).field("a").type == ValueType(pa.int64())


def test_a_definition_that_grows_without_end_is_refused() -> None:
    """Each record has five lists of the next record: 5 to the power of 8."""
    tree: Any = record(A_FIELD, name="R8")
    for level in reversed(range(8)):
        items = [tree, *[f"R{level + 1}"] * 4]
        fields = [
            {"name": name, "type": {"type": "array", "items": each}}
            for name, each in zip("abcde", items, strict=True)
        ]
        tree = record(*fields, name=f"R{level}")
    with pytest.raises(NoSparkTypeError, match="a type of more than 10000 fields"):
        read(tree)


def test_logical_types_but_decimals_are_left_to_arrow() -> None:
    decimal = logical("bytes", "decimal", precision=9, scale=2)
    tree = record(
        {"name": "a", "type": ["null", logical("long", "timestamp-millis")], "default": None},
        {
            "name": "b",
            "type": {"type": "array", "items": {"type": "map", "values": logical("string", "uuid")}},
        },
        {"name": "c", "type": decimal},
    )
    assert [each["type"] for each in payload_definition(tree, SchemaType.AVRO)["fields"]] == [
        ["null", "long"],
        {"type": "array", "items": {"type": "map", "values": "string"}},
        decimal,
    ]


def test_defaults_are_values() -> None:
    inner = record({"name": "x", "type": "int", "default": 7}, {"name": "y", "type": "bytes"}, name="S")
    tree = record(
        {"name": "a", "type": "long", "default": 1},
        {"name": "b", "type": "bytes", "default": "\u00ff"},
        {"name": "c", "type": logical("bytes", "decimal", precision=9, scale=2), "default": "\u0000\u007d"},
        {"name": "d", "type": {"type": "array", "items": "bytes"}, "default": ["a"]},
        {"name": "e", "type": {"type": "map", "values": "long"}, "default": {"k": 1}},
        {"name": "f", "type": inner, "default": {"y": "z"}},
        {"name": "g", "type": ["null", "S"], "default": None},
        {"name": "h", "type": ["S", "null"], "default": {"x": 1, "y": ""}},
        {"name": "i", "type": "long"},
    )
    found = {each.name: each.default for each in read(tree).fields}
    assert found == {
        "a": 1,
        "b": b"\xff",
        "c": Decimal("1.25"),
        "d": [b"a"],
        "e": [("k", 1)],
        "f": {"x": 7, "y": b"z"},
        "g": None,
        "h": {"x": 1, "y": b""},
        "i": found["i"],
    }
    assert found["i"] is not None


@pytest.mark.parametrize(
    ("spark", "avro"),
    [
        ("boolean", "boolean"),
        ("byte", "int"),
        ("short", "int"),
        ("integer", "int"),
        ("long", "long"),
        ("float", "float"),
        ("double", "double"),
        ("string", "string"),
        ("binary", "bytes"),
        ("date", logical("int", "date")),
        ("timestamp", logical("long", "timestamp-micros")),
        ("timestamp_ntz", logical("long", "local-timestamp-micros")),
        ("decimal(9,2)", logical("bytes", "decimal", precision=9, scale=2)),
        (
            {"type": "array", "elementType": "long", "containsNull": False},
            {"type": "array", "items": ["null", "long"]},
        ),
        (
            {"type": "map", "keyType": "string", "valueType": "byte", "valueContainsNull": True},
            {"type": "map", "values": ["null", "int"]},
        ),
    ],
)
def test_a_type_of_spark_has_a_definition(spark: Any, avro: Any) -> None:
    assert definition_of(arrow_of(spark)) == avro


def struct(**fields: Any) -> dict[str, Any]:
    return {
        "type": "struct",
        "fields": [{"name": name, "type": each, "nullable": False} for name, each in fields.items()],
    }


def test_records_are_named_by_the_fields_that_lead_to_them() -> None:
    """Every field may be null, whatever Spark says."""
    items: dict[str, Any] = {"type": "array", "elementType": struct(b="long"), "containsNull": False}
    found = definition_of(arrow_of(struct(a=items)), "value")
    inner = {
        "type": "record",
        "name": "a",
        "namespace": "value",
        "fields": [{"name": "b", "type": ["null", "long"], "default": None}],
    }
    assert found == {
        "type": "record",
        "name": "value",
        "namespace": "",
        "fields": [
            {"name": "a", "type": ["null", {"type": "array", "items": ["null", inner]}], "default": None}
        ],
    }
    assert tree_of(SchemaInfo(SchemaType.AVRO, "", json.dumps(found).encode()))["name"] == "value"


@pytest.mark.parametrize(
    ("spark", "says"),
    [
        (struct(a=struct()), "value.a: a record without fields"),
        (struct(**{"a b": "long"}), "value: 'a b' is no name of a field"),
        (
            struct(a={"type": "map", "keyType": "long", "valueType": "long", "valueContainsNull": True}),
            "value.a: a map whose keys are no text",
        ),
    ],
)
def test_a_type_without_a_definition_says_where(spark: Any, says: str) -> None:
    with pytest.raises(NoSparkTypeError, match=says):
        definition_of(arrow_of(spark))


@pytest.mark.parametrize("spark", ["void", "variant", "interval day to second", "time(6)", {"type": "udt"}])
def test_a_type_of_spark_that_no_topic_has(spark: Any) -> None:
    with pytest.raises(NoArrowTypeError, match="no schema of a topic has the type"):
        arrow_of(spark)


def test_types_are_arrow_s_as_spark_makes_them() -> None:
    """Spark compares the types of record batches with these, names of items included."""
    from pyspark.sql.pandas.types import to_arrow_schema
    from pyspark.sql.types import StructType

    names = ["boolean", "byte", "short", "integer", "long", "float", "double", "string", "binary", "date"]
    names += ["timestamp", "timestamp_ntz", "decimal(9,2)"]
    days = {"type": "map", "keyType": "string", "valueType": "date", "valueContainsNull": False}
    items: dict[str, Any] = {"type": "array", "elementType": struct(x=days), "containsNull": True}
    fields = struct(**{f"a_{name}": name for name in names}, items=items)
    for each in fields["fields"]:
        each["metadata"] = {}
    items["elementType"]["fields"][0]["metadata"] = {}
    expected = to_arrow_schema(StructType.fromJson(fields), timezone="UTC")
    assert arrow_of(fields) == pa.struct(list(expected))
