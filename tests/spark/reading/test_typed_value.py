"""The column `value` of a type: what runs and messages one by one become, and messages that hold no value."""

from base64 import b64encode
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsar_sansio.schemas import INT32, STRING, KeyValueEncoding, KeyValueSchema, SchemaInfo
from pulsar_spark.errors import UndecodableMessage
from pulsar_spark.reading.columns import Builder
from pulsar_spark.schemas.definitions import Definitions
from tests.spark.reading.test_columns import Member, batch

pytestmark = pytest.mark.spark

INT, TEXT, GONE, PAIR = (bytes(7) + bytes([number]) for number in range(4))
"""Versions of a topic; the broker has all but one."""

KNOWN: dict[bytes | None, SchemaInfo] = {
    INT: INT32.info,
    TEXT: STRING.info,
    PAIR: KeyValueSchema(INT32, STRING, KeyValueEncoding.SEPARATED).info,
    None: INT32.info,
}
INTEGERS = pa.int32()


def built(*items: Any, type: Any = INTEGERS, fails: bool = False) -> Any:
    """Return the record batch of values, and of payloads that hold none."""
    definitions = Definitions(lambda _, version: KNOWN.get(version), type, None)
    schema = pa.schema([("__undecodable", pa.binary()), ("value", type), ("__entryId", pa.int64())])
    builder = Builder(schema, definitions, fails)
    for item in items:
        builder.add(item)
    found = builder.finish()
    found.validate(full=True)
    return found


def member(payload: bytes | None) -> Member:
    return ({"null_value": True}, b"") if payload is None else ({}, payload)


PAYLOADS = st.sampled_from([None, b"\0\0\0\1", b"\0\0\0\2", b"\0\0\0", b"abcde"])
ENTRIES = st.lists(
    st.tuples(
        st.sampled_from([INT, TEXT, GONE, None]),
        st.lists(st.tuples(PAYLOADS, st.integers(1, 9)), min_size=1, max_size=4),
    ),
    min_size=1,
    max_size=5,
)


@given(ENTRIES)
def test_every_message_has_its_value_or_its_bytes(
    entries: list[tuple[bytes | None, list[tuple[bytes | None, int]]]],
) -> None:
    """Only numbers have values here: text is no number, and a version that is gone says nothing."""
    items, expected = [], []
    for number, (version, runs) in enumerate(entries):
        payloads = [payload for payload, times in runs for _ in range(times)]
        items.append(batch([member(each) for each in payloads], (5, number), schema_version=version))
        for payload in payloads:
            holds = version in (INT, None) and payload is not None and len(payload) == 4
            value = int.from_bytes(payload, "big") if holds and payload is not None else None
            kept = None if holds else payload
            expected.append({"__undecodable": kept, "value": value, "__entryId": number})
    assert built(*items).to_pylist() == expected


@pytest.mark.parametrize(
    ("version", "bad", "says"),
    [
        (INT, 6, r"message 5:7:6 \(schema version 0\) has .*: INT32 takes 4 bytes, not 5"),
        (TEXT, 0, r"message 5:7:0 \(schema version 1\) has .*: value: string where int is wanted"),
        (GONE, 0, r"message 5:7:0 \(schema version 2\) has .*: the broker has no such version"),
        (None, 6, r"message 5:7:6 \(no schema version\) has .*: INT32 takes 4 bytes, not 5"),
    ],
)
def test_the_error_names_the_first_message_that_holds_no_value(
    version: bytes | None, bad: int, says: str
) -> None:
    """Messages before it are a run, and so are those that it begins."""
    before, after = (
        batch([member(None)] * 5, (5, 6), schema_version=version),
        [b"\0\0\0\1"] * 6 + [b"abcde"] * 6,
    )
    with pytest.raises(UndecodableMessage, match=f"t-partition-3: {says}.*undecodable=bytes continue"):
        built(before, batch([member(each) for each in after], schema_version=version), fails=True)


def test_the_error_names_a_message_within_a_run() -> None:
    texts = [member(b"a")] * 7 + [member(b"\xff")] + [member(b"b")] * 3
    with pytest.raises(UndecodableMessage, match=r"message 5:7:7 \(schema version 1\)"):
        built(batch(texts, schema_version=TEXT), type=pa.string(), fails=True)


def test_a_separate_key_in_a_run_is_decoded() -> None:
    """Rule SCHEMA-09."""
    keys = [number.to_bytes(4, "big") for number in range(6)]
    members: list[Member] = [
        ({"partition_key": b64encode(key).decode(), "partition_key_b64_encoded": True}, b"v") for key in keys
    ]
    kind = pa.struct([("key", pa.int32()), ("value", pa.string())])
    found = built(batch(members, schema_version=PAIR), type=kind)
    assert found.column("value").to_pylist() == [{"key": number, "value": "v"} for number in range(6)]


def test_a_builder_begins_anew_after_each_record_batch() -> None:
    definitions = Definitions(lambda _, version: KNOWN[version], pa.int32(), None)
    builder = Builder(pa.schema([("value", pa.int32())]), definitions, False)
    for number in (1, 2):
        payload = number.to_bytes(4, "big")
        builder.add(batch([member(payload)] * number, schema_version=INT))
        assert builder.finish().column("value").to_pylist() == [number] * number
    assert builder.finish().num_rows == 0
