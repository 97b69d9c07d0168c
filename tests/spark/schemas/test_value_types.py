"""`conform`: what was written as what is read, by Avro's rules."""

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from pulsar_spark.schemas.spark_types import TIMESTAMP
from pulsar_spark.schemas.value_types import (
    UnfitError,
    ValueField,
    ValueType,
    check_fit,
    conform,
    list_of,
    map_type,
    struct_of,
)

pytestmark = pytest.mark.spark

MILLIS = pa.timestamp("ms", tz="UTC")


@pytest.mark.parametrize(
    ("source", "target", "value", "expected"),
    [
        (pa.int32(), pa.int64(), 7, 7),
        (pa.int8(), pa.int32(), -7, -7),
        (pa.int64(), pa.float32(), 2**24 + 1, 2.0**24),
        (pa.int64(), pa.float64(), 2**53 + 1, 2.0**53),
        (pa.float32(), pa.float64(), 0.5, 0.5),
        (pa.string(), pa.binary(), "ü", "ü".encode()),
        (pa.binary(), pa.string(), "ü".encode(), "ü"),
        (pa.large_string(), pa.string(), "a", "a"),
        (MILLIS, TIMESTAMP, 5, datetime(1970, 1, 1, 0, 0, 0, 5000, UTC)),
        (TIMESTAMP, MILLIS, 5999, datetime(1970, 1, 1, 0, 0, 0, 5000, UTC)),
        (MILLIS, pa.int64(), 5, 5),
        (pa.date32(), pa.int32(), 5, 5),
        (pa.decimal128(4, 1), pa.decimal128(6, 2), Decimal("1.5"), Decimal("1.50")),
        (pa.list_(pa.int32()), pa.list_(pa.field("element", pa.int64())), [1, None], [1, None]),
        (map_type(pa.string(), pa.int32()), map_type(pa.string(), pa.float64()), [("a", 1)], [("a", 1.0)]),
        (
            pa.struct([("a", pa.int32()), ("b", pa.string())]),
            pa.struct([("c", pa.string()), ("a", pa.int64())]),
            {"a": 1, "b": "x"},
            {"c": None, "a": 1},
        ),
    ],
    ids=str,
)
def test_what_fits(source: Any, target: Any, value: Any, expected: Any) -> None:
    """Rule SCHEMA-10. Each array has a null, and is a slice."""
    array = pa.array([value, value, None], source).slice(1)
    found = conform(array, target)
    assert found.type == target
    assert found.to_pylist() == [expected, None]


@pytest.mark.parametrize(
    ("source", "target", "says"),
    [
        (pa.int64(), pa.int32(), "value: bigint where int is wanted"),
        (pa.float64(), pa.float32(), "value: double where float is wanted"),
        (pa.float64(), pa.int64(), "value: double where bigint is wanted"),
        (pa.string(), pa.int64(), "value: string where bigint is wanted"),
        (pa.int64(), TIMESTAMP, "value: bigint where timestamp is wanted"),
        (pa.timestamp("us"), TIMESTAMP, "value: timestamp_ntz where timestamp is wanted"),
        (pa.decimal128(5, 1), pa.decimal128(5, 2), r"decimal\(5,1\) where decimal\(5,2\) is wanted"),
        (pa.list_(pa.int64()), pa.int64(), "value: array<bigint> where bigint is wanted"),
        (pa.list_(pa.int64()), pa.list_(pa.string()), r"value\[\]: bigint where string is wanted"),
        (
            pa.struct([("a", pa.struct([("b", pa.int64())]))]),
            pa.struct([("a", pa.struct([("b", pa.string())]))]),
            "value.a.b: bigint where string is wanted",
        ),
    ],
    ids=str,
)
def test_what_does_not_fit_says_where(source: Any, target: Any, says: str) -> None:
    with pytest.raises(UnfitError, match=says):
        check_fit(source, target)


def test_fields_that_the_writer_lacks_have_the_reader_s_defaults() -> None:
    inner = struct_of((ValueField("x", ValueType(pa.int32())), ValueField("at", ValueType(MILLIS), 1500)))
    reader = struct_of(
        (
            ValueField("a", ValueType(pa.int64())),
            ValueField("b", list_of(ValueType(pa.string())), ["d"]),
            ValueField("c", list_of(inner), None),
        )
    )
    moment = pa.struct([("x", pa.int32()), ("at", TIMESTAMP)])
    target = pa.struct(
        [
            ("a", pa.int64()),
            ("b", pa.list_(pa.field("element", pa.string()))),
            ("c", pa.list_(pa.field("element", moment))),
        ]
    )
    written = pa.struct([("a", pa.int64()), ("c", pa.list_(pa.struct([("x", pa.int32())])))])
    array = pa.array([{"a": 1, "c": [{"x": 2}]}, None], written)
    assert conform(array, target, reader).to_pylist() == [
        {"a": 1, "b": ["d"], "c": [{"x": 2, "at": datetime(1970, 1, 1, 0, 0, 1, 500_000, UTC)}]},
        None,
    ]
    with pytest.raises(UnfitError, match=r"value\.a: the field is missing, and has no default"):
        check_fit(pa.struct([("b", pa.list_(pa.string()))]), target, reader)


def test_not_null_is_kept_where_a_record_is_there() -> None:
    source = pa.struct([("a", pa.int32())])
    target = pa.struct([pa.field("a", pa.int64(), nullable=False)])
    absent = pa.array([True, False])
    array = pa.StructArray.from_arrays([pa.array([None, 1], pa.int32())], fields=list(source), mask=absent)
    assert conform(array, target).to_pylist() == [None, {"a": 1}]
    with pytest.raises(UnfitError, match=r"value\.a: null where NOT NULL is wanted"):
        conform(pa.array([{"a": None}, None], source), target)
    items = pa.list_(pa.field("element", pa.int64(), nullable=False))
    with pytest.raises(UnfitError, match=r"value\[\]: null where NOT NULL is wanted"):
        conform(pa.array([[1, None]], pa.list_(pa.int32())), items)


def test_moments_beyond_64_bits_are_refused() -> None:
    with pytest.raises(pa.ArrowInvalid, match="out of bounds"):
        conform(pa.array([2**62], MILLIS), TIMESTAMP)
