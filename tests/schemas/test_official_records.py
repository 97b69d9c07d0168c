"""The official client's `Record` types beside models of equal fields: definitions and payloads."""

import dataclasses
import json
from typing import Any

import pulsar.schema as official
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pulsar_sansio.schemas import AvroSchema, Float32, Int32, JsonSchema

from .drawn_models import INTS, LONGS, TEXT, make_model
from .models import Color

FLOATS = st.floats(allow_nan=False, allow_infinity=False)

KINDS: list[tuple[Any, Any, st.SearchStrategy[Any]]] = [
    (official.Boolean, bool, st.booleans()),
    (official.Integer, Int32, INTS),
    (official.Long, int, LONGS),
    (official.Float, Float32, st.floats(allow_nan=False, allow_infinity=False, width=32)),
    (official.Double, float, FLOATS),
    (official.String, str, TEXT),
    (lambda **how: official.Array(official.Long(), **how), list[int], st.lists(LONGS, max_size=3)),
    (
        lambda **how: official.Map(official.String(), **how),
        dict[str, str],
        st.dictionaries(TEXT, TEXT, max_size=3),
    ),
]
"""A field of the official client's, the type that stands for it, and its values."""


@dataclasses.dataclass
class Pair:
    """A definition and a value, once for each client."""

    ours: type
    theirs: Any
    our_value: Any
    their_value: Any


@st.composite
def pairs(draw: st.DrawFn) -> Pair:
    """Draw a record with a record in it, its optional fields without a default."""
    fields = draw(st.lists(st.tuples(st.sampled_from(KINDS), st.booleans()), min_size=1, max_size=5))
    ours, theirs, values = [], {}, {}
    for index, ((their_kind, kind, strategy), required) in enumerate(fields):
        name = f"x{index}"
        theirs[name] = their_kind(required=required)
        ours.append((name, kind if required else kind | None))
        # The official client writes the default of its type in place of None: False for a boolean.
        none = st.nothing() if required or kind is bool else st.none()
        values[name] = draw(strategy | none)
    our_inner = make_model("dataclasses", "Inner", ours)
    their_inner: Any = type("Inner", (official.Record,), theirs)
    inner, their_value = our_inner(**values), their_inner(**values)
    if not draw(st.booleans()):
        return Pair(our_inner, their_inner, inner, their_value)
    our_outer = make_model("dataclasses", "Outer", [("first", our_inner), ("many", list[our_inner])])  # type: ignore[valid-type]
    their_outer: Any = type(
        "Outer",
        (official.Record,),
        {"first": their_inner(required=True), "many": official.Array(their_inner(), required=True)},
    )
    outer = our_outer(first=inner, many=[inner])
    return Pair(our_outer, their_outer, outer, their_outer(first=their_value, many=[their_value]))


@settings(max_examples=60)
@given(pair=pairs())
def test_both_clients_have_one_definition_and_one_avro(pair: Pair) -> None:
    ours: AvroSchema[Any] = AvroSchema(pair.ours)
    theirs = official.AvroSchema(pair.theirs)
    assert json.loads(ours.info.data) == json.loads(theirs.schema_info().schema())
    payload = ours.encode(pair.our_value)
    assert payload == theirs.encode(pair.their_value)
    assert ours.decode(payload) == pair.our_value
    assert theirs.decode(payload) == pair.their_value


@settings(max_examples=60)
@given(pair=pairs())
def test_both_clients_have_one_json(pair: Pair) -> None:
    ours: JsonSchema[Any] = JsonSchema(pair.ours)
    theirs = official.JsonSchema(pair.theirs)
    assert json.loads(ours.info.data) == json.loads(theirs.schema_info().schema())
    payload, other = ours.encode(pair.our_value), theirs.encode(pair.their_value)
    assert json.loads(payload) == json.loads(other)
    assert ours.decode(other) == pair.our_value
    assert theirs.decode(payload) == pair.their_value


class Colored(official.Record):  # type: ignore[misc]
    """Fields of which the official client writes another JSON."""

    color = official.CustomEnum(Color, required=True)
    data = official.Bytes(required=True)


DIFFERENCES = {
    "color": ("BLUE", 2),  # Java writes names, and the official client the members' values
    "data": ("eA==", "x"),  # Java writes Base64, and the official client text
}
"""Field -> what this client and Java write into JSON, and what the official client writes."""


@pytest.mark.parametrize("field", DIFFERENCES)
def test_json_of_enums_and_bytes_is_java_s(field: str) -> None:
    model = make_model("dataclasses", "Colored", [("color", Color), ("data", bytes)])
    values = {"color": Color.BLUE, "data": b"x"}
    ours = json.loads(JsonSchema(model).encode(model(**values)))
    theirs = json.loads(official.JsonSchema(Colored).encode(Colored(**values)))
    assert (ours[field], theirs[field]) == DIFFERENCES[field]
    avro: AvroSchema[Any] = AvroSchema(model)
    assert json.loads(avro.info.data) == json.loads(official.AvroSchema(Colored).schema_info().schema())
    assert avro.encode(model(**values)) == official.AvroSchema(Colored).encode(Colored(**values))
