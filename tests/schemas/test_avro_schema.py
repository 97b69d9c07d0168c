"""`AvroSchema`: models and dicts as Avro, evolution, and payloads that are none."""

import json
import pickle
import subprocess
import sys
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time
from decimal import Decimal
from io import BytesIO
from typing import Any
from uuid import UUID

import fastavro
import msgspec
import pulsar.schema as official
import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsar_sansio.model.errors import InvalidConfiguration, InvalidMessage, SchemaDecodingError
from pulsar_sansio.model.schema import SchemaInfo, SchemaType
from pulsar_sansio.schemas import INT32, AvroSchema, Int32

from .models import Color, Line, Node, Note, Order

ORDER = Order(
    id="o1",
    at=datetime(2026, 1, 31, 12, 30, 15, 123456, tzinfo=UTC),
    day=date(2026, 1, 31),
    clock=time(12, 30, 15, 999),
    key=UUID(int=7),
    price=Decimal("12.50"),
    color=Color.RED,
    rate=1.5,
    paid=True,
    photo=b"\x00\xff",
    lines=[Line("tea", 2), Line("milk")],
    pair=(1, -2),
    weights={"a": 0.5},
    extra=Note("hi"),
    chain=Node(1, Node(2)),
)


def info(definition: object) -> SchemaInfo:
    return SchemaInfo(SchemaType.AVRO, "", json.dumps(definition).encode())


def test_a_payload_is_the_bare_datum() -> None:
    """SCHEMA-10: Avro's binary encoding without a header."""

    @dataclass
    class E:
        a: str | None = None
        b: Int32 = 0

    schema = AvroSchema(E)
    assert schema.encode(E("x", 3)).hex() == "02027806"
    assert schema.decode(bytes.fromhex("02027806")) == E("x", 3)


def test_every_kind_of_field_comes_back() -> None:
    schema = AvroSchema(Order)
    assert schema.decode(schema.encode(ORDER)) == ORDER
    other = replace(ORDER, extra=Line("x"), comment="text", tags=["t"], chain=None, second=Color.RED)
    assert schema.decode(schema.encode(other)) == other
    assert schema.decode(schema.encode(replace(ORDER, extra=None))).extra is None


def test_fastavro_reads_what_is_written_by_the_registered_definition() -> None:
    schema = AvroSchema(Order)
    definition = fastavro.parse_schema(json.loads(schema.info.data))
    plain: Any = fastavro.schemaless_reader(BytesIO(schema.encode(ORDER)), definition, None)
    assert plain["id"] == "o1"
    assert plain["price"] == Decimal("12.50")
    assert plain["color"] == "RED"
    assert plain["extra"] == {"text": "hi"}
    assert plain["chain"] == {"value": 1, "next": {"value": 2, "next": None}}


def test_the_definition_is_compact_and_each_type_stands_once() -> None:
    @dataclass
    class Two:
        first: Line
        second: Line

    assert AvroSchema(Two, namespace="shop").info.data.decode() == (
        '{"type":"record","name":"Two","namespace":"shop","fields":['
        '{"name":"first","type":{"type":"record","name":"Line","namespace":"shop","fields":['
        '{"name":"item","type":"string"},{"name":"amount","type":"int","default":1}]}},'
        '{"name":"second","type":"shop.Line"}]}'
    )


class OfficialLine(official.Record):  # type: ignore[misc]
    item = official.String(required=True)
    amount = official.Integer(default=1)


class OfficialOrder(official.Record):  # type: ignore[misc]
    id = official.String(required=True)
    amount = official.Integer(required=True)
    price = official.Double(required=True)
    note = official.String(default=None, required_default=True)
    lines = official.Array(official.Long(), required=True)
    marks = official.Map(official.Boolean(), required=True)


def test_the_definition_equals_that_of_the_official_client() -> None:
    @dataclass(kw_only=True)
    class Ours:
        id: str
        amount: Int32
        price: float
        note: str | None = None
        lines: list[int]
        marks: dict[str, bool]

    Ours.__name__ = "OfficialOrder"
    assert json.loads(AvroSchema(Ours).info.data) == OfficialOrder.schema()


def test_the_official_client_and_this_one_read_each_other() -> None:
    theirs = official.AvroSchema(OfficialLine)
    ours = AvroSchema(Line)
    writer = SchemaInfo(SchemaType.AVRO, "", json.dumps(OfficialLine.schema()).encode())
    payload = theirs.encode(OfficialLine(item="tea", amount=4))
    line: Any = AvroSchema(definition=json.dumps(OfficialLine.schema())).decoder(writer)(payload)
    assert line == {"item": "tea", "amount": 4}
    renamed = json.dumps(OfficialLine.schema()).replace("OfficialLine", "Line")
    assert ours.decoder(SchemaInfo(SchemaType.AVRO, "", renamed.encode()))(payload) == Line("tea", 4)


# --- evolution --------------------------------------------------------------------------------------------


@dataclass
class Version2:
    id: str
    amount: float
    note: str = "none"


def test_a_payload_is_resolved_from_its_writers_definition() -> None:
    """An int becomes a double, a dropped field is skipped, an added one has its default."""
    writer = info(
        {
            "type": "record",
            "name": "Version2",
            "fields": [
                {"name": "gone", "type": {"type": "array", "items": "string"}},
                {"name": "amount", "type": "int"},
                {"name": "id", "type": "string"},
            ],
        }
    )
    payload = AvroSchema(definition=writer.data.decode()).encode({"gone": ["x"], "amount": 7, "id": "o1"})
    assert AvroSchema(Version2).decoder(writer)(payload) == Version2("o1", 7.0, "none")


def test_a_default_of_a_definition_becomes_a_value_of_its_own() -> None:
    definition = {
        "type": "record",
        "name": "R",
        "fields": [
            {"name": "data", "type": "bytes", "default": "ÿ"},
            {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}, "default": 1000},
            {"name": "list", "type": {"type": "array", "items": "int"}, "default": [1]},
            {"name": "inner", "type": record_with_default(), "default": {}},
            {"name": "price", "type": decimal_type(), "default": "\u0004\u00e2"},
            {"name": "either", "type": ["int", "null"], "default": 5},
            {"name": "map", "type": {"type": "map", "values": "E"}, "default": {"k": "B"}},
        ],
    }
    schema = AvroSchema(definition=definition)
    empty = info({"type": "record", "name": "R", "fields": []})
    expected = {
        "data": b"\xff",
        "at": datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC),
        "list": [1],
        "inner": {"e": "A"},
        "price": Decimal("12.50"),
        "either": 5,
        "map": {"k": "B"},
    }
    first, second = schema.decoder(empty)(b""), schema.decoder(empty)(b"")
    assert first == second == expected
    assert first["list"] is not second["list"]
    assert schema.decode(schema.encode({})) == expected


def record_with_default() -> Any:
    symbols = {"type": "enum", "name": "E", "symbols": ["A", "B"]}
    return {"type": "record", "name": "Inner", "fields": [{"name": "e", "type": symbols, "default": "A"}]}


def decimal_type() -> Any:
    return {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}


def test_a_writers_definition_may_have_defaults_that_avro_does_not_allow() -> None:
    """Java does not validate defaults; a writer's are not used."""
    writer = info(
        {
            "type": "record",
            "name": "Line",
            "fields": [
                {"name": "item", "type": "string", "default": None},
                {"name": "amount", "type": "int", "default": "many"},
            ],
        }
    )
    assert AvroSchema(Line).decoder(writer)(b"\x02x\x04") == Line("x", 2)


@pytest.mark.parametrize(
    ("writer", "words"),
    [
        (INT32.info, "written as INT32"),
        (SchemaInfo(SchemaType.AVRO, "", b"{"), "producer's definition is wrong: no JSON"),
        (info({"type": "array", "items": "null"}), "items that take no bytes"),
    ],
)
def test_a_definition_that_cannot_be_read_is_refused_at_once(writer: SchemaInfo, words: str) -> None:
    with pytest.raises(SchemaDecodingError, match=words):
        AvroSchema(Line).decoder(writer)


def test_a_definition_of_another_record_is_a_declared_error() -> None:
    other = info({"type": "record", "name": "Other", "fields": [{"name": "item", "type": "long"}]})
    with pytest.raises(SchemaDecodingError, match="SchemaResolutionError"):
        AvroSchema(Line).decoder(other)(b"\x02")


# --- values and payloads that are none --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"id": 5}, "id: text, not an int"),
        ({"id": None}, "id: text, not a NoneType"),
        ({"at": datetime(2026, 1, 1)}, "at: a datetime with a time zone"),
        ({"day": datetime(2026, 1, 1)}, "day: a date without a time"),
        ({"price": Decimal("1.234")}, "price: a Decimal of at most 9 digits, 2 of them decimal places"),
        ({"price": Decimal("NaN")}, "price: a finite Decimal"),
        ({"color": "RED"}, "color: a Color, not a str"),
        ({"rate": "1"}, "rate: a number, not a str"),
        ({"paid": 1}, "paid: True or False, not an int"),
        ({"photo": "x"}, "photo: bytes, not a str"),
        ({"lines": [Line("a"), Line("b", 2**31)]}, r"lines\[1\].amount: a whole number from -2\*\*31"),
        ({"lines": [Line("a"), "b"]}, r"lines\[1\]: a Line, not a str"),
        ({"lines": "ab"}, "lines: a list, not a str"),
        ({"pair": (1, 2.5)}, r"pair\[1\]: a whole number"),
        ({"pair": (True,)}, r"pair\[0\]: a whole number.*not a bool"),
        ({"weights": {"a": None}}, r"weights\['a'\]: a number"),
        ({"weights": {1: 1.0}}, r"weights\[1\]: text, not an int"),
        ({"extra": "x"}, "extra: a value of"),
        ({"kind": "mail"}, "kind: one of 'web', 'shop'"),
        ({"chain": Node(1, Node("x"))}, "chain.next.value: a whole number"),  # type: ignore[arg-type]
        ({"comment": "\ud800"}, "comment: text without half surrogate pairs"),
    ],
)
def test_a_wrong_value_names_its_field_and_is_not_shown(change: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidMessage, match=words):
        AvroSchema(Order).encode(replace(ORDER, **change))


def test_a_value_of_another_class_is_refused() -> None:
    with pytest.raises(InvalidMessage, match="a Line, not a Note"):
        AvroSchema(Line).encode(Note("x"))  # type: ignore[arg-type]


@given(st.binary(max_size=60))
def test_any_payload_gives_a_value_or_the_declared_error(data: bytes) -> None:
    for model in (Order, Node, Line):
        try:
            AvroSchema(model).decode(data)
        except SchemaDecodingError:
            continue


def test_a_payload_nested_without_end_does_not_end_the_process() -> None:
    """fastavro's C code would overflow the stack: the process would be gone, so another one tries it."""
    program = (
        "from tests.schemas.models import Node\n"
        "from pulsar_sansio.schemas import AvroSchema\n"
        "from pulsar_sansio.model.errors import SchemaDecodingError\n"
        "try:\n"
        "    AvroSchema(Node).decode(bytes([2, 2]) * 1_000_000)\n"
        "except SchemaDecodingError as error:\n"
        "    print(error)\n"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ended.stdout == "schema AVRO: values are nested too deep\n"


def test_a_value_nested_without_end_is_refused() -> None:
    node = Node(0)
    for number in range(100_000):
        node = Node(number, node)
    with pytest.raises(InvalidMessage, match="nested too deep"):
        AvroSchema(Node).encode(node)
    while node.next is not None:  # a destructor would recurse as deep
        following, node.next = node.next, None
        node = following


def test_a_model_that_refuses_its_fields_is_a_declared_error_with_the_cause() -> None:
    @dataclass
    class Positive:
        amount: int

        def __post_init__(self) -> None:
            if self.amount < 0:
                raise RuntimeError("negative")

    schema = AvroSchema(Positive)
    with pytest.raises(SchemaDecodingError, match="Positive refuses its fields: RuntimeError") as caught:
        schema.decode(b"\x01")
    assert isinstance(caught.value.__cause__, RuntimeError)


# --- other models -----------------------------------------------------------------------------------------


class PydanticLine(pydantic.BaseModel):
    item: str
    amount: Int32 = 1
    inner: Line | None = None


class StructLine(msgspec.Struct):
    item: str
    amount: Int32 = 1
    tags: list[str] = msgspec.field(default_factory=list)


def test_pydantic_models_and_msgspec_structs_are_records() -> None:
    schema = AvroSchema(PydanticLine)
    value = PydanticLine(item="tea", inner=Line("milk", 2))
    assert schema.decode(schema.encode(value)) == value
    structs = AvroSchema(StructLine)
    assert structs.decode(structs.encode(StructLine("tea", 3, ["x"]))) == StructLine("tea", 3, ["x"])
    assert json.loads(structs.info.data)["fields"] == [
        {"name": "item", "type": "string"},
        {"name": "amount", "type": "int", "default": 1},
        {"name": "tags", "type": {"type": "array", "items": "string"}, "default": []},
    ]


def test_dicts_by_a_definition() -> None:
    moment_type = {"type": "long", "logicalType": "timestamp-millis"}
    text = json.dumps(
        {
            "type": "record",
            "name": "R",
            "fields": [
                {"name": "a", "type": ["null", "int"], "default": None},
                {"name": "e", "type": {"type": "enum", "name": "E", "symbols": ["X", "Y"]}},
                {"name": "f", "type": {"type": "fixed", "name": "F", "size": 2}},
                {"name": "g", "type": ["E", "F", "null"]},
                {"name": "r", "type": ["null", "R"]},
                {
                    "name": "m",
                    "type": {"type": "map", "values": moment_type},
                },
            ],
        }
    )
    schema = AvroSchema(definition=text)
    moment = datetime(2026, 1, 1, tzinfo=UTC)
    inner: dict[str, Any] = {"a": None, "e": "Y", "f": b"zz", "g": None, "r": None, "m": {}}
    value = {"a": 5, "e": "X", "f": b"ab", "g": "Y", "r": inner, "m": {"k": moment}}
    assert schema.decode(schema.encode(value)) == value
    without_default = {key: item for key, item in value.items() if key != "a"}
    assert schema.decode(schema.encode(without_default)) == {**value, "a": None}
    for wrong, words in (
        ({**value, "b": 1}, "R has no field 'b'; its fields are a, e, f, g, r, m"),
        ({key: item for key, item in value.items() if key != "e"}, "e: the field is missing"),
        ({**value, "e": "Z"}, "e: one of X, Y"),
        ({**value, "f": b"abc"}, "f: 2 bytes, not 3"),
        ({**value, "r": {**inner, "f": 1}}, "r.f: bytes"),
        ([], "a dict with the fields of R"),
    ):
        with pytest.raises(InvalidMessage, match=words):
            schema.encode(wrong)


def test_schemas_pickle_to_equal_ones() -> None:
    for schema in (AvroSchema(Order), AvroSchema(Line, namespace="a.b")):
        again = pickle.loads(pickle.dumps(schema))
        assert again.info == schema.info
    assert AvroSchema(Line, namespace="a.b").info != AvroSchema(Line).info


def test_a_model_or_a_definition_is_needed() -> None:
    with pytest.raises(InvalidConfiguration, match="a model or a definition, and not both"):
        AvroSchema()  # type: ignore[call-overload]
    with pytest.raises(InvalidConfiguration, match="a model or a definition, and not both"):
        AvroSchema(Line, definition="int")  # type: ignore[call-overload]
    with pytest.raises(InvalidConfiguration, match="a dataclass, a pydantic model or a msgspec Struct, not"):
        AvroSchema(int)
    with pytest.raises(InvalidConfiguration, match="definition: unknown type 'foo'"):
        AvroSchema(definition='"foo"')


@pytest.mark.parametrize("kind", ["array", "map", "record", "enum", "fixed", "error", "union"])
def test_a_record_may_have_the_name_of_a_kind_of_types(kind: str) -> None:
    """Found by fuzzing: where such a record was read under another name, its arrays became that record."""

    def record(name: str, *fields: dict[str, object]) -> AvroSchema[Any]:
        inner = {"name": "x", "type": {"type": "array", "items": {"type": "map", "values": "int"}}}
        return AvroSchema(definition={"type": "record", "name": name, "fields": [inner, *fields]})

    again: dict[str, object] = {"name": "again", "type": ["null", kind], "default": None}
    named, other = record(kind, again), record("Order")
    for reader, writer in ((named, other), (other, named)):
        value = reader.decoder(writer.info)(writer.encode({"x": [{"a": 1}]}))
        assert value["x"] == [{"a": 1}]


@pytest.mark.parametrize(
    ("payload", "value"),
    [
        ("feffffffffffffffff0100", 2**63 - 1),
        ("ffffffffffffffffff0100", -(2**63)),
        ("8280808080808080800000", 1),
        ("ffffffffffffffffff0200", None),
        ("80808080808080808080808080808080808000", None),
    ],
)
def test_a_number_of_a_record_that_holds_itself_has_64_bits(payload: str, value: int | None) -> None:
    """Found by fuzzing: fastavro reads numbers of any length, and takes hours for a megabyte."""
    schema = AvroSchema(Node)
    if value is not None:
        assert schema.decode(bytes.fromhex(payload)) == Node(value)
        return
    with pytest.raises(SchemaDecodingError, match="more than 64 bits"):
        schema.decode(bytes.fromhex(payload))


def test_a_negative_length_in_a_record_that_holds_itself_is_refused() -> None:
    definition = {
        "type": "record",
        "name": "R",
        "fields": [{"name": "data", "type": "bytes"}, {"name": "next", "type": ["null", "R"]}],
    }
    schema = AvroSchema(definition=definition)
    assert schema.decode(b"\x02a\0") == {"data": b"a", "next": None}
    with pytest.raises(SchemaDecodingError, match="a negative length"):
        schema.decode(b"\x01\0\0")


def test_a_number_of_32_bits_that_has_more_is_refused() -> None:
    payload = AvroSchema(Line).encode(Line("a", 1))
    with pytest.raises(SchemaDecodingError, match=r"amount: a whole number from -2\*\*31"):
        AvroSchema(Line).decode(payload[:-1] + bytes.fromhex("8080808020"))


def test_a_definition_that_fastavro_refuses_is_a_declared_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """Found by fuzzing: it refused `$` in a symbol, and its error was not declared."""
    schema = AvroSchema(Line)
    writer = SchemaInfo(SchemaType.AVRO, "", schema.info.data.replace(b"int", b"long"))

    def refuse(_: object) -> None:
        raise fastavro.schema.SchemaParseException("it is not known")

    monkeypatch.setattr(fastavro.schema, "parse_schema", refuse)
    with pytest.raises(InvalidConfiguration, match="fastavro refuses it: it is not known"):
        AvroSchema(Line)
    with pytest.raises(SchemaDecodingError, match="fastavro refuses it: it is not known"):
        schema.decoder(writer)


def test_a_symbol_has_no_dollar() -> None:
    """Found by fuzzing: names may have one, and libraries refuse it in symbols."""
    with pytest.raises(InvalidConfiguration, match="symbols is a list of names"):
        AvroSchema(definition={"type": "enum", "name": "E", "symbols": ["A$B"]})


def decimals(size: int | None = None, precision: int = 40) -> AvroSchema[Any]:
    kind = {"type": "bytes"} if size is None else {"type": "fixed", "name": "F", "size": size}
    decimal = {**kind, "logicalType": "decimal", "precision": precision, "scale": 2}
    return AvroSchema(definition={"type": "record", "name": "R", "fields": [{"name": "x", "type": decimal}]})


@pytest.mark.parametrize("text", ["0", "-0.01", "1.28", "-1.28", "1E+3", "9" * 38 + ".99", "-" + "9" * 38])
def test_decimals_are_exact(text: str) -> None:
    """Digits beyond Python's decimal context are kept, and the bytes are those that fastavro writes."""
    value = {"x": Decimal(text)}
    for schema in (decimals(), decimals(17)):
        payload = schema.encode(value)
        assert schema.decode(payload) == value
        out = BytesIO()
        fastavro.schemaless_writer(out, json.loads(schema.info.data), value)
        assert payload == out.getvalue()


def test_a_decimal_of_more_bytes_than_its_precision_needs_is_refused() -> None:
    """Found by fuzzing: a number of a megabyte took hours, and one of ten digits was rounded to nine."""
    schema = decimals(precision=9)
    for number, words in (
        (10**9, "at most 9 digits"),
        (-(10**9), "at most 9 digits"),
        (1 << 800_000, "not of 100001 bytes"),
    ):
        data = number.to_bytes(number.bit_length() // 8 + 1, "big", signed=True)
        payload = AvroSchema(definition="bytes").encode(data)
        with pytest.raises(SchemaDecodingError, match=words):
            schema.decode(payload)


def test_a_decimal_that_its_bytes_cannot_hold_is_refused() -> None:
    with pytest.raises(InvalidMessage, match="x: a Decimal that 1 bytes can hold"):
        decimals(1).encode({"x": Decimal("1.28")})


def test_a_precision_beyond_a_thousand_digits_is_refused() -> None:
    with pytest.raises(InvalidConfiguration, match="precision from 1 to 1000"):
        decimals(precision=1001)
