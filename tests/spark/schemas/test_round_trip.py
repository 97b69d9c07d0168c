"""Any struct of Spark's types, encoded and decoded again, without Spark: the values come back."""

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsar_sansio.schemas import SchemaInfo
from pulsar_spark.schemas.decoders import decoder_of
from pulsar_spark.schemas.encoders import encoder_of, schema_of_column
from pulsar_spark.schemas.spark_types import TIMESTAMP, as_spark
from pulsar_spark.schemas.value_types import conform, map_type

pytestmark = pytest.mark.spark

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=5)
MOMENTS = st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30))

LEAVES: list[tuple[Any, st.SearchStrategy[Any]]] = [
    (pa.bool_(), st.booleans()),
    (pa.int8(), st.integers(-(2**7), 2**7 - 1)),
    (pa.int16(), st.integers(-(2**15), 2**15 - 1)),
    (pa.int32(), st.integers(-(2**31), 2**31 - 1)),
    (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    (pa.float32(), st.floats(width=32, allow_nan=False, allow_infinity=False)),
    (pa.float64(), st.floats(allow_nan=False, allow_infinity=False)),
    (pa.string(), TEXT),
    (pa.binary(), st.binary(max_size=5)),
    (pa.date32(), st.dates(date(1, 1, 1), date(9999, 12, 31))),
    (TIMESTAMP, MOMENTS.map(lambda moment: moment.replace(tzinfo=UTC))),
    (pa.timestamp("us"), MOMENTS),
    (
        pa.decimal128(9, 2),
        st.integers(-(10**9) + 1, 10**9 - 1).map(lambda number: Decimal(number).scaleb(-2)),
    ),
]
"""The types that hold one value, with values of each."""

Typed = tuple[Any, st.SearchStrategy[Any]]


def nullable(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.none() | strategy


def list_of(item: Typed) -> Typed:
    return pa.list_(pa.field("element", item[0])), st.lists(nullable(item[1]), max_size=3)


def map_of(item: Typed) -> Typed:
    pairs = st.dictionaries(TEXT, nullable(item[1]), max_size=3).map(lambda found: list(found.items()))
    return map_type(pa.string(), item[0]), pairs


def struct_of(fields: dict[str, Typed]) -> Typed:
    arrow = pa.struct([pa.field(name, kind) for name, (kind, _) in fields.items()])
    return arrow, st.fixed_dictionaries({name: nullable(values) for name, (_, values) in fields.items()})


def structs(inner: st.SearchStrategy[Typed]) -> st.SearchStrategy[Typed]:
    names = st.from_regex(r"[a-z_][a-z0-9_]{0,3}", fullmatch=True)
    return st.dictionaries(names, inner, min_size=1, max_size=4).map(struct_of)


TYPES = st.recursive(
    st.sampled_from(LEAVES),
    lambda inner: inner.map(list_of) | inner.map(map_of) | structs(inner),
    max_leaves=8,
)


@st.composite
def columns(draw: st.DrawFn) -> Any:
    """An array of structs, some of them null, of a type that is drawn, too."""
    arrow, values = draw(structs(TYPES))
    return pa.array(draw(st.lists(nullable(values), max_size=4)), arrow)


def again(column: Any, info: SchemaInfo) -> Any:
    """Encode the column and decode it, as the type that it has."""
    encoder = encoder_of(info)
    encoder.check(column.type)
    payloads, keys = encoder.encode(column)
    decoder = decoder_of(info)
    return conform(decoder.decode(payloads, keys or [None] * len(payloads)), column.type)


def widened(arrow: Any) -> Any:
    """Return the type that a reader infers: Avro has no integers of 8 and 16 bits."""
    if pa.types.is_struct(arrow):
        return pa.struct([each.with_type(widened(each.type)) for each in arrow])
    if pa.types.is_list(arrow):
        return pa.list_(arrow.value_field.with_type(widened(arrow.value_type)))
    if pa.types.is_map(arrow):
        return map_type(arrow.key_type, widened(arrow.item_type))
    return pa.int32() if arrow in (pa.int8(), pa.int16()) else arrow


@pytest.mark.parametrize("kind", ["avro", "json"])
@given(column=columns())
def test_structs_come_back(kind: str, column: Any) -> None:
    column = conform(column, widened(column.type))
    info = schema_of_column(column.type, kind, "none")
    assert as_spark(decoder_of(info).type.arrow) == column.type
    found = again(column, info)
    found.validate(full=True)
    assert found == column


@pytest.mark.parametrize("encoding", ["inline", "separated"])
@pytest.mark.parametrize("kind", ["avro", "json"])
@given(key=st.sampled_from(LEAVES), column=columns(), data=st.data())
def test_pairs_come_back(kind: str, encoding: str, key: Typed, column: Any, data: st.DataObject) -> None:
    """Rule SCHEMA-09."""
    if pa.types.is_decimal(key[0]):
        return  # no primitive type has decimals
    column = conform(column, widened(column.type))
    keys = pa.array(data.draw(st.lists(nullable(key[1]), min_size=len(column), max_size=len(column))), key[0])
    pairs = pa.StructArray.from_arrays([keys, column], ["key", "value"])
    assert again(pairs, schema_of_column(pairs.type, kind, encoding)) == pairs


@pytest.mark.parametrize(("arrow", "values"), LEAVES[:-1], ids=lambda given: str(given)[:20])
@given(data=st.data())
def test_primitives_come_back(arrow: Any, values: st.SearchStrategy[Any], data: st.DataObject) -> None:
    """Rule SCHEMA-08."""
    column = pa.array(data.draw(st.lists(nullable(values))), arrow)
    info = schema_of_column(arrow, "primitive", "none")
    assert as_spark(decoder_of(info).type.arrow) == arrow
    assert again(column, info) == column


@given(column=columns(), start=st.integers(0, 4))
def test_a_part_of_an_array_becomes_what_the_whole_becomes(column: Any, start: int) -> None:
    """Spark hands over slices. Every number becomes a wider one, so that all arrays are made anew."""
    target = widened(column.type)
    assert conform(column.slice(start), target).to_pylist() == conform(column, target).to_pylist()[start:]
