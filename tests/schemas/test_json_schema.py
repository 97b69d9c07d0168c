"""`JsonSchema`: models and dicts as JSON, and payloads that are none."""

import json
import pickle
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Annotated

import msgspec
import pulsar.schema as official
import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsar_sansio.model.errors import InvalidMessage, SchemaDecodingError
from pulsar_sansio.model.schema import SchemaInfo, SchemaType
from pulsar_sansio.schemas import AvroSchema, AvroType, Int32, JsonSchema

from .models import Line, Money, Node, Note, Order
from .test_avro_schema import ORDER


@dataclass
class Small:
    id: str
    amount: Int32
    note: str | None = None


def test_a_payload_is_compact_json() -> None:
    schema = JsonSchema(Small)
    assert schema.encode(Small("ö1", 7)) == '{"id":"ö1","amount":7,"note":null}'.encode()
    assert schema.decode(b'{"id":"o1","amount":7}') == Small("o1", 7)


def test_the_definition_is_an_avro_type() -> None:
    """SCHEMA-05: the form of JSON schemas since Pulsar 2.1."""
    info = JsonSchema(Small, namespace="shop").info
    assert info.type is SchemaType.JSON
    assert info.data == AvroSchema(Small, namespace="shop").info.data


def test_every_kind_of_field_comes_back() -> None:
    schema = JsonSchema(Order)
    assert schema.decode(schema.encode(ORDER)) == ORDER
    plain = json.loads(schema.encode(ORDER))
    assert plain["at"] == "2026-01-31T12:30:15.123456+00:00"
    assert plain["day"] == "2026-01-31"
    assert plain["clock"] == "12:30:15.000999"
    assert plain["price"] == "12.50"
    assert plain["photo"] == "AP8="
    assert plain["color"] == "RED"
    assert plain["key"] == "00000000-0000-0000-0000-000000000007"


def test_a_logical_type_makes_numbers_of_times() -> None:
    @dataclass
    class Event:
        at: Annotated[datetime, AvroType({"type": "long", "logicalType": "timestamp-millis"})]
        day: Annotated[date, AvroType({"type": "int", "logicalType": "date"})]

    schema = JsonSchema(Event)
    event = Event(datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC), date(1970, 1, 3))
    assert schema.encode(event) == b'{"at":1000,"day":2}'
    assert schema.decode(b'{"at":1000,"day":2}') == event
    with pytest.raises(SchemaDecodingError, match="at: a moment that a datetime can hold"):
        schema.decode(b'{"at":9223372036854775807,"day":2}')


@pytest.mark.parametrize(
    ("text", "price"), [('"-1234.56"', "-1234.56"), ("-1234.56", "-1234.56"), ("12", "12"), ("1e3", "1000.0")]
)
def test_a_decimal_is_read_from_text_and_from_the_number_that_java_writes(text: str, price: str) -> None:
    @dataclass
    class Item:
        price: Money

    assert JsonSchema(Item).decode(b'{"price":%s}' % text.encode()) == Item(Decimal(price))
    for bad in (b"true", b"1.234", b"1e400"):
        with pytest.raises(SchemaDecodingError, match="price: "):
            JsonSchema(Item).decode(b'{"price":%s}' % bad)


def test_unknown_fields_are_ignored_and_absent_ones_are_null_or_their_default() -> None:
    schema = JsonSchema(Line)
    assert schema.decode(b'{"item":"tea","new":{"a":[1]}}') == Line("tea", 1)

    @dataclass
    class Both:
        a: int | None
        b: int

    assert JsonSchema(Both).decode(b'{"b":1}') == Both(None, 1)
    with pytest.raises(SchemaDecodingError, match="b: the field is missing"):
        JsonSchema(Both).decode(b'{"a":1}')


class OfficialLine(official.Record):  # type: ignore[misc]
    item = official.String(required=True)
    amount = official.Integer(default=1)


def test_the_official_client_and_this_one_read_each_other() -> None:
    theirs = official.JsonSchema(OfficialLine)
    assert JsonSchema(Line).decode(theirs.encode(OfficialLine(item="tea", amount=4))) == Line("tea", 4)
    line = theirs.decode(JsonSchema(Line).encode(Line("tea", 4)))
    assert (line.item, line.amount) == ("tea", 4)


@pytest.mark.parametrize(
    ("payload", "words"),
    [
        (b"", "no JSON"),
        (b"\xff", "no JSON"),
        (b"[]", "an object with the fields of Line, not a list"),
        (b'{"item":5}', "item: text, not an int"),
        (b'{"item":"x","amount":null}', "amount: a whole number"),
        (b'{"item":"x","amount":2147483648}', "amount: a whole number"),
        (b'{"item":"x","amount":1.0}', "amount: a whole number from .* not a float"),
        (b'{"item":"x","amount":true}', "amount: a whole number from .* not a bool"),
        (b'{"item":"x","amount":NaN}', "NaN is no JSON"),
        (b'{"item":"\\ud800"}', "item: text without half surrogate pairs"),
        (b"[" * 100_000, "nested too deep"),
        (b'{"item":"x","amount":' + b"1" * 10_000 + b"}", "no JSON"),
    ],
)
def test_a_payload_that_is_none_is_a_declared_error(payload: bytes, words: str) -> None:
    with pytest.raises(SchemaDecodingError, match=words):
        JsonSchema(Line).decode(payload)


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("photo", "!", "photo: Base64 text"),
        ("photo", 5, "photo: Base64 text, not an int"),
        ("at", "2026-01-31T12:30:15", "at: an ISO 8601 moment with a time zone"),
        ("day", "yesterday", "day: an ISO 8601 date"),
        ("clock", 7, "clock: an ISO 8601 time"),
        ("price", "1.234", "price: the text of a decimal number"),
        ("price", "Infinity", "price: the text of a decimal number"),
        ("key", "7", "key: the text of a UUID"),
        ("color", "GREEN", "color: one of RED, BLUE"),
        ("lines", {"a": 1}, "lines: a list"),
        ("lines", [{}], r"lines\[0\].item: the field is missing"),
        ("weights", [1], "weights: a dict"),
        ("weights", {"a": "x"}, r"weights\['a'\]: a number"),
        ("weights", {"a": 10**400}, r"weights\['a'\]: a number that 64 bits can hold"),
        ("extra", 5, "extra: a value of"),
    ],
)
def test_a_wrong_field_is_named(field: str, value: object, words: str) -> None:
    plain = json.loads(JsonSchema(Order).encode(ORDER))
    with pytest.raises(SchemaDecodingError, match=words):
        JsonSchema(Order).decode(json.dumps({**plain, field: value}).encode())


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
        lambda inner: (
            st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["item", "id", "at"]), inner)
        ),
    )
)
def test_any_json_gives_a_value_or_the_declared_error(value: object) -> None:
    for model in (Order, Node, Line):
        try:
            JsonSchema(model).decode(json.dumps(value).encode())
        except SchemaDecodingError:
            continue


def test_a_number_that_json_cannot_hold_is_refused() -> None:
    schema = JsonSchema(Order)
    for number in (float("nan"), float("inf")):
        with pytest.raises(InvalidMessage, match="rate: a number that JSON can hold"):
            schema.encode(replace(ORDER, rate=number))


def test_a_number_with_too_large_an_exponent_is_refused() -> None:
    """The number would be infinite, and could not be written again."""
    schema = JsonSchema(Order)
    payload = schema.encode(replace(ORDER, rate=1.5))
    with pytest.raises(SchemaDecodingError, match="rate: a number that 64 bits can hold"):
        schema.decode(payload.replace(b'"rate":1.5', b'"rate":1e999'))


def test_a_union_takes_the_first_record_that_fits() -> None:
    schema = JsonSchema(Order)
    for extra in (Line("tea", 3), Note("text"), None):
        assert schema.decode(schema.encode(replace(ORDER, extra=extra))).extra == extra


class PydanticLine(pydantic.BaseModel):
    item: str
    amount: int = pydantic.Field(default=1, ge=0)


class StructLine(msgspec.Struct, rename="camel"):
    item_name: str
    amount: int = 1


def test_pydantic_models_write_and_read_their_own_json() -> None:
    schema = JsonSchema(PydanticLine)
    assert schema.encode(PydanticLine(item="tea")) == b'{"item":"tea","amount":1}'
    assert schema.decode(b'{"item":"tea","amount":"3"}') == PydanticLine(item="tea", amount=3)
    with pytest.raises(SchemaDecodingError, match="PydanticLine refuses the JSON: ValidationError") as caught:
        schema.decode(b'{"item":"tea","amount":-1}')
    assert isinstance(caught.value.__cause__, pydantic.ValidationError)


def test_msgspec_structs_write_and_read_their_own_json() -> None:
    schema = JsonSchema(StructLine)
    assert schema.encode(StructLine("tea")) == b'{"itemName":"tea","amount":1}'
    assert schema.decode(b'{"itemName":"tea"}') == StructLine("tea")
    with pytest.raises(SchemaDecodingError, match="StructLine refuses the JSON: DecodeError"):
        schema.decode(b"{")
    with pytest.raises(InvalidMessage, match="an instance of StructLine, not of Line"):
        schema.encode(Line("tea"))  # type: ignore[arg-type]


def test_the_definition_has_the_names_that_the_payload_has() -> None:
    class Aliased(pydantic.BaseModel):
        item_name: str = pydantic.Field(alias="itemName")

    for model, names in ((StructLine, ["itemName", "amount"]), (Aliased, ["itemName"])):
        fields = json.loads(JsonSchema(model).info.data)["fields"]
        assert [field["name"] for field in fields] == names
    aliased = Aliased(itemName="tea")
    assert JsonSchema(Aliased).encode(aliased) == b'{"itemName":"tea"}'
    assert JsonSchema(Aliased).decode(b'{"itemName":"tea"}') == aliased
    avro = AvroSchema(Aliased)
    assert avro.decode(avro.encode(aliased)) == aliased


def test_a_dataclass_may_hold_other_models() -> None:
    @dataclass
    class Basket:
        lines: list[StructLine]
        first: PydanticLine

    schema = JsonSchema(Basket)
    basket = Basket([StructLine("tea", 2)], PydanticLine(item="milk"))
    assert schema.encode(basket) == (
        b'{"lines":[{"itemName":"tea","amount":2}],"first":{"item":"milk","amount":1}}'
    )
    assert schema.decode(schema.encode(basket)) == basket
    with pytest.raises(SchemaDecodingError, match="first: PydanticLine refuses its fields: ValidationError"):
        schema.decode(b'{"lines":[],"first":{"item":"x","amount":-1}}')


def test_dicts_by_a_definition() -> None:
    schema = JsonSchema(definition=JsonSchema(Line).info.data.decode())
    assert schema.encode({"item": "tea", "amount": 2}) == b'{"item":"tea","amount":2}'
    assert schema.decode(b'{"item":"tea","amount":2}') == {"item": "tea", "amount": 2}
    with pytest.raises(SchemaDecodingError, match="item: the field is missing"):
        schema.decode(b'{"amount":2}')


def test_a_message_of_another_kind_of_schema_is_refused() -> None:
    schema = JsonSchema(Line)
    assert schema.decoder(None)(b'{"item":"x"}') == Line("x")
    assert schema.decoder(schema.info)(b'{"item":"x"}') == Line("x")
    with pytest.raises(SchemaDecodingError, match="written as AVRO"):
        schema.decoder(SchemaInfo(SchemaType.AVRO))


def test_schemas_pickle_to_equal_ones() -> None:
    for schema in (JsonSchema(Order), JsonSchema(Line, namespace="a.b"), JsonSchema(PydanticLine)):
        assert pickle.loads(pickle.dumps(schema)).info == schema.info
