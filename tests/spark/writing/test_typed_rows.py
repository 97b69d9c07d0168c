"""Rows with a schema become rows of bytes before the sink sees them."""

import pyarrow as pa
import pytest

from pulsar_sansio.schemas import INT32, STRING, AvroSchema, KeyValueEncoding, KeyValueSchema
from pulsar_spark.errors import InvalidRows
from pulsar_spark.schemas.encoders import encoder_of
from pulsar_spark.writing.typed_rows import encoded

pytestmark = pytest.mark.spark

AVRO = AvroSchema(
    definition={
        "type": "record",
        "name": "R",
        "fields": [{"name": "a", "type": "long"}, {"name": "b", "type": ["null", "string"], "default": None}],
    }
)
PAIRS = [{"key": 1, "value": "v"}, {"key": None, "value": "w"}, {"key": 2, "value": None}, None]


def test_values_become_payloads_and_other_columns_stay() -> None:
    values = pa.array([{"a": 1}, None], pa.struct([("a", pa.int32())]))
    batch = pa.RecordBatch.from_arrays([pa.array(["k", None]), values], ["__key", "value"])
    (found,) = encoded([batch], encoder_of(AVRO.info))
    assert found.to_pylist() == [
        {"__key": "k", "value": AVRO.encode({"a": 1, "b": None})},
        {"__key": None, "value": None},
    ]


def test_pairs_have_their_keys_in_the_payload_or_beside_it() -> None:
    """Rule SCHEMA-09."""
    kind = pa.struct([("value", pa.string()), ("key", pa.int32())])
    batch = pa.RecordBatch.from_arrays([pa.array(PAIRS, kind)], ["value"])
    inline = KeyValueSchema(INT32, STRING, KeyValueEncoding.INLINE).info
    (found,) = encoded([batch], encoder_of(inline))
    nothing = b"\xff\xff\xff\xff"
    assert found.to_pylist() == [
        {"value": b"\0\0\0\4\0\0\0\1\0\0\0\1v"},
        {"value": nothing + b"\0\0\0\1w"},
        {"value": b"\0\0\0\4\0\0\0\2" + nothing},
        {"value": None},
    ]
    separated = KeyValueSchema(INT32, STRING, KeyValueEncoding.SEPARATED).info
    (found,) = encoded([batch], encoder_of(separated))
    assert found.to_pylist() == [
        {"value": b"v", "__key": b"\0\0\0\1"},
        {"value": b"w", "__key": None},
        {"value": None, "__key": b"\0\0\0\2"},
        {"value": None, "__key": None},
    ]


def test_a_row_that_does_not_fit_has_its_number_in_the_task() -> None:
    kind = pa.struct([("a", pa.int64())])
    batches = [
        pa.RecordBatch.from_arrays([pa.array([{"a": each} for each in values], kind)], ["value"])
        for values in ([1, 2, 3], [4, None])
    ]
    with pytest.raises(InvalidRows, match="row 4 of the task, column value: schema AVRO: a: a whole number"):
        list(encoded(batches, encoder_of(AVRO.info)))


def test_a_column_that_does_not_fit_names_its_rows() -> None:
    moments = AvroSchema(
        definition={
            "type": "record",
            "name": "R",
            "fields": [{"name": "at", "type": {"type": "long", "logicalType": "timestamp-micros"}}],
        }
    )
    kind = pa.struct([("at", pa.timestamp("ms", tz="UTC"))])
    batch = pa.RecordBatch.from_arrays([pa.array([{"at": 0}, {"at": 2**62}], kind)], ["value"])
    with pytest.raises(InvalidRows, match=r"rows 0 to 1 of the task, column value: .* out of bounds"):
        list(encoded([batch], encoder_of(moments.info)))
