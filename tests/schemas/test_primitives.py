"""`pulsar_sansio.schemas.primitives`: payloads of text, numbers, dates and times."""

import pickle
from datetime import UTC, date, datetime, time, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsar_sansio.model.errors import InvalidMessage, SchemaDecodingError
from pulsar_sansio.model.schema import Schema, SchemaType
from pulsar_sansio.schemas import (
    BOOLEAN,
    BYTES,
    DATE,
    DOUBLE,
    FLOAT,
    INSTANT,
    INT8,
    INT16,
    INT32,
    INT64,
    LOCAL_DATE,
    LOCAL_DATE_TIME,
    LOCAL_TIME,
    STRING,
    TIME,
    TIMESTAMP,
)

MOMENT = datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC)


@pytest.mark.parametrize(
    ("schema", "value", "payload"),
    [
        (BYTES, b"\x00\xff", "00ff"),
        (STRING, "héllo", "68c3a96c6c6f"),
        (BOOLEAN, True, "01"),
        (INT8, -2, "fe"),
        (INT16, -2, "fffe"),
        (INT32, 0x12345678, "12345678"),
        (INT64, -1, "ffffffffffffffff"),
        (FLOAT, 1.5, "3fc00000"),
        (DOUBLE, -2.25, "c002000000000000"),
        (DATE, MOMENT, "0000018bcfe56800"),
        (TIMESTAMP, MOMENT + timedelta(milliseconds=123), "0000018bcfe5687b"),
        (TIME, time(22, 13, 20, 5000), "0000000004c4b405"),
        (INSTANT, MOMENT + timedelta(microseconds=123456), "000000006553f100075bca00"),
        (LOCAL_DATE, date(2023, 11, 14), "0000000000004cdb"),
        (LOCAL_TIME, time(22, 13, 20), "000048c273950000"),
        (LOCAL_DATE_TIME, datetime(2023, 11, 14, 22, 13, 20), "0000000000004cdb000048c273950000"),
    ],
    ids=repr,
)
def test_a_value_has_one_payload(schema: Schema[Any], value: object, payload: str) -> None:
    """SCHEMA-08: the payloads of the primitive types."""
    assert schema.encode(value).hex() == payload
    decoded = schema.decode(bytes.fromhex(payload))
    assert decoded == value
    assert type(decoded) is type(value)
    assert schema.decoder(None)(bytes.fromhex(payload)) == value


@pytest.mark.parametrize(
    ("schema", "payload", "value"),
    [
        (INSTANT, "000000006553f100075bcd15", MOMENT + timedelta(microseconds=123456)),
        (LOCAL_TIME, "000048c273950005", time(22, 13, 20)),
        (LOCAL_DATE_TIME, "0000000000004cdb000048c2739503e9", datetime(2023, 11, 14, 22, 13, 20, 1)),
    ],
    ids=repr,
)
def test_nanoseconds_below_a_microsecond_are_dropped(
    schema: Schema[Any], payload: str, value: object
) -> None:
    assert schema.decode(bytes.fromhex(payload)) == value


def test_a_moment_may_have_any_zone() -> None:
    elsewhere = MOMENT.astimezone(timezone(timedelta(hours=5, minutes=30)))
    for schema in (DATE, TIMESTAMP, INSTANT):
        assert schema.encode(elsewhere) == schema.encode(MOMENT)
        assert schema.decode(schema.encode(elsewhere)).tzinfo is UTC


def test_a_moment_before_1970_has_negative_seconds_and_positive_nanoseconds() -> None:
    before = datetime(1969, 12, 31, 23, 59, 59, 250_000, tzinfo=UTC)
    assert INSTANT.encode(before).hex() == "ffffffffffffffff0ee6b280"
    assert INSTANT.decode(INSTANT.encode(before)) == before


@pytest.mark.parametrize("payload", ["01", "02", "ff"])
def test_any_byte_but_zero_is_true(payload: str) -> None:
    assert BOOLEAN.decode(bytes.fromhex(payload)) is True
    assert BOOLEAN.decode(b"\x00") is False


@pytest.mark.parametrize(
    ("schema", "value", "words"),
    [
        (BYTES, "text", "BYTES: bytes, not str"),
        (STRING, b"bytes", "STRING: text, not bytes"),
        (STRING, "\ud800", "STRING: half a surrogate pair"),
        (BOOLEAN, 1, "BOOLEAN: True or False, not int"),
        (INT8, 128, r"INT8: a whole number from -2\*\*7 to 2\*\*7 - 1"),
        (INT16, -32769, "INT16"),
        (INT32, 2**31, "INT32"),
        (INT64, 2**63, "INT64"),
        (INT64, True, "INT64.*not bool"),
        (INT64, 1.0, "INT64.*not float"),
        (FLOAT, 1e39, "FLOAT: a number that 32 bits can hold"),
        (DOUBLE, "1", "DOUBLE: a number, not str"),
        (DOUBLE, True, "DOUBLE: a number, not bool"),
        (DATE, date(2023, 11, 14), "DATE: a datetime with a time zone, not date"),
        (TIMESTAMP, datetime(2023, 11, 14), "a datetime with a time zone"),
        (INSTANT, datetime(2023, 11, 14), "a datetime with a time zone"),
        (LOCAL_DATE, datetime(2023, 11, 14), "LOCAL_DATE: a date without a time, not datetime"),
        (LOCAL_TIME, time(1, tzinfo=UTC), "LOCAL_TIME: a time without a zone"),
        (TIME, 5, "TIME: a time without a zone, not int"),
        (LOCAL_DATE_TIME, MOMENT, "LOCAL_DATE_TIME: a datetime without a time zone"),
        (LOCAL_DATE_TIME, date(2023, 11, 14), "LOCAL_DATE_TIME"),
    ],
    ids=repr,
)
def test_a_wrong_value_is_refused(schema: Schema[Any], value: object, words: str) -> None:
    with pytest.raises(InvalidMessage, match=words):
        schema.encode(value)


@pytest.mark.parametrize(
    "schema",
    [
        BOOLEAN,
        INT8,
        INT16,
        INT32,
        INT64,
        FLOAT,
        DOUBLE,
        DATE,
        TIME,
        TIMESTAMP,
        INSTANT,
        LOCAL_DATE,
        LOCAL_TIME,
    ],
    ids=repr,
)
def test_a_payload_of_another_length_is_refused(schema: Schema[Any]) -> None:
    length = {SchemaType.BOOLEAN: 1, SchemaType.INT8: 1, SchemaType.INT16: 2, SchemaType.INSTANT: 12}.get(
        schema.info.type, 4 if schema.info.type in (SchemaType.INT32, SchemaType.FLOAT) else 8
    )
    schema.decode(bytes(length))
    for wrong in (0, length - 1, length + 1):
        with pytest.raises(SchemaDecodingError, match=f"{length} bytes, not {wrong}"):
            schema.decode(bytes(wrong))


@pytest.mark.parametrize(
    ("schema", "payload"),
    [
        (STRING, "ff"),
        (DATE, "7fffffffffffffff"),
        (INSTANT, "7fffffffffffffff00000000"),
        (LOCAL_DATE, "7fffffffffffffff"),
        (LOCAL_TIME, "ffffffffffffffff"),
        (LOCAL_TIME, (86_400_000_000_000).to_bytes(8, "big").hex()),
        (LOCAL_DATE_TIME, "7fffffffffffffff0000000000000000"),
    ],
    ids=repr,
)
def test_a_payload_without_a_value_is_refused(schema: Schema[Any], payload: str) -> None:
    with pytest.raises(SchemaDecodingError, match=schema.info.type.name):
        schema.decode(bytes.fromhex(payload))


@given(st.binary(max_size=20))
def test_any_bytes_give_a_value_or_the_declared_error(data: bytes) -> None:
    for schema in (STRING, BOOLEAN, INT8, INT64, DOUBLE, DATE, TIME, INSTANT, LOCAL_TIME, LOCAL_DATE_TIME):
        try:
            schema.decode(data)
        except SchemaDecodingError:
            continue


def test_schemas_pickle_to_themselves() -> None:
    for schema in (STRING, BYTES, INT8, LOCAL_DATE_TIME):
        assert pickle.loads(pickle.dumps(schema)).info == schema.info
    assert pickle.loads(pickle.dumps(INSTANT)) is INSTANT


def test_bytes_register_nothing_and_the_others_their_type() -> None:
    """SCHEMA-04: no schema info is sent for BYTES."""
    assert BYTES.info.type is SchemaType.NONE
    assert (INT32.info.name, INT32.info.type, INT32.info.data) == ("INT32", SchemaType.INT32, b"")
    names = [schema.info.name for schema in (STRING, BOOLEAN, FLOAT, LOCAL_DATE_TIME)]
    assert names == ["String", "Boolean", "Float", "LocalDateTime"]
