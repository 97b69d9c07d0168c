"""Values of each primitive type, between this client and the one in Java: each reads the other's."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from typing import Any

import pytest

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
    AutoConsume,
    Schema,
)
from pulsar_trio import Client
from tests.interop.typed_program import TypedProgram
from tests.suite.brokers import BrokerUnderTest

pytestmark = [pytest.mark.real, pytest.mark.slow]


@dataclass
class Case:
    """Values of a schema with the text that Java has for each. `read_only`: values that only Java can write,
    because Python's types are coarser, with the values that are read here."""

    schema: Schema[Any]
    both: Sequence[tuple[Any, str]]
    read_only: Sequence[tuple[Any, str]] = ()


def whole_numbers(schema: Schema[int], bits: int) -> Case:
    numbers = (-(2 ** (bits - 1)), -1, 0, 1, 2 ** (bits - 1) - 1)
    return Case(schema, [(number, str(number)) for number in numbers])


MOMENTS = [
    (datetime(1969, 12, 31, 23, 59, 59, 999_000, UTC), "-1"),
    (datetime(1970, 1, 1, tzinfo=UTC), "0"),
    (datetime(1, 1, 1, tzinfo=UTC), "-62135596800000"),
    (datetime(9999, 12, 31, 23, 59, 59, 999_000, UTC), "253402300799999"),
]
NUMBERS = [(1.5, "1.5"), (-0.0, "-0.0"), (math.inf, "Infinity"), (-math.inf, "-Infinity"), (math.nan, "NaN")]

CASES = [
    Case(BYTES, [(b"\x00\xff", "00ff"), (b"", "")]),
    Case(STRING, [("text", "text"), ("", ""), ("é中\U0001f600\x00", "é中\U0001f600\x00")]),
    Case(BOOLEAN, [(True, "true"), (False, "false")]),
    whole_numbers(INT8, 8),
    whole_numbers(INT16, 16),
    whole_numbers(INT32, 32),
    whole_numbers(INT64, 64),
    Case(FLOAT, [*NUMBERS, (3.4028234663852886e38, "3.4028235E38"), (2**-149, "1.4E-45")]),
    Case(DOUBLE, [*NUMBERS, (1.7976931348623157e308, "1.7976931348623157E308"), (5e-324, "4.9E-324")]),
    Case(DATE, MOMENTS),
    Case(TIMESTAMP, MOMENTS),
    Case(TIME, [(time(0), "0"), (time(23, 59, 59, 999_000), "86399999")], [(time(23), "-3600000")]),
    Case(
        INSTANT,
        [
            (datetime(1969, 12, 31, 23, 59, 59, 999_999, UTC), "1969-12-31T23:59:59.999999Z"),
            (datetime(1, 1, 1, tzinfo=UTC), "0001-01-01T00:00:00Z"),
            (datetime(9999, 12, 31, 23, 59, 59, 999_999, UTC), "9999-12-31T23:59:59.999999Z"),
        ],
        [(datetime(1969, 12, 31, 23, 59, 59, 123_456, UTC), "1969-12-31T23:59:59.123456789Z")],
    ),
    Case(
        LOCAL_DATE, [(date(1969, 12, 31), "1969-12-31"), (date.min, "0001-01-01"), (date.max, "9999-12-31")]
    ),
    Case(
        LOCAL_TIME,
        [(time(0), "00:00"), (time(23, 59, 59, 999_999), "23:59:59.999999")],
        [(time(1, 2, 3, 123_456), "01:02:03.123456789")],
    ),
    Case(
        LOCAL_DATE_TIME,
        [
            (datetime(1969, 12, 31, 23, 59, 59, 999_999), "1969-12-31T23:59:59.999999"),
            (datetime.min, "0001-01-01T00:00"),
            (datetime.max, "9999-12-31T23:59:59.999999"),
        ],
        [(datetime(1960, 2, 29, 1, 2, 3, 123_456), "1960-02-29T01:02:03.123456789")],
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.schema.info.type.name)
async def test_each_client_reads_what_the_other_one_wrote(
    broker: BrokerUnderTest, client: Client, topic: str, java: TypedProgram, case: Case
) -> None:
    """SCHEMA-08"""
    spec = {"type": case.schema.info.type.name}
    values = [value for value, _ in case.both] + [None]
    texts = [text for _, text in case.both] + [None]
    async with client.create_producer(topic, schema=case.schema) as producer:
        await producer.send_many(values)
    await java.send(broker.url, topic, spec, [*texts, *(text for _, text in case.read_only)])
    written = [*texts, *texts, *(text for _, text in case.read_only)]
    for type in (spec, {"type": "AUTO_CONSUME"}):
        assert await java.receive(broker.url, topic, type, len(written)) == written
    expected = [*values, *values, *(value for value, _ in case.read_only)]
    for schema in (case.schema, AutoConsume()):
        async with client.create_reader(topic, "earliest", schema=schema) as reader:
            found: list[Any] = [message.value async for message in reader.until_latest()]
        assert list(map(repr, found)) == list(map(repr, expected))
