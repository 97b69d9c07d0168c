"""Records as Avro and as JSON, between this client and the one in Java."""

from dataclasses import asdict, dataclass
from datetime import UTC, date, datetime, time
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any
from uuid import UUID

import pytest

from pulsar_sansio.schemas import AutoConsume, AvroSchema, AvroType, Float32, Int32, JsonSchema, Schema
from pulsar_trio import Client
from tests.interop.typed_program import TypedProgram
from tests.suite.brokers import BrokerUnderTest

pytestmark = [pytest.mark.real, pytest.mark.slow]

NAMESPACE = "interop.Typed"
"""The Java program's name for the classes within it."""


def logical(base: str, name: str, **attributes: int) -> AvroType:
    return AvroType({"type": base, "logicalType": name, **attributes})


class Color(Enum):
    RED = "RED"
    GREEN = "GREEN"


@dataclass
class Inner:
    name: str | None
    count: Int32


@dataclass
class Plain:
    """As the Java program defines it: each field that is no number is a union with null."""

    flag: bool = False
    small: Int32 = 0
    large: int = 0
    single: Float32 = 0.0
    wide: float = 0.0
    text: str | None = None
    raw: bytes | None = None
    maybe: Int32 | None = None
    color: Color | None = None
    inner: Inner | None = None
    inners: list[Inner] | None = None
    counts: dict[str, int] | None = None
    choice: str | int | None = None
    price: Annotated[Decimal, logical("bytes", "decimal", precision=9, scale=2)] | None = None
    unique: UUID | None = None


@dataclass
class Dated(Plain):
    day: date | None = None
    coarse: Annotated[time, logical("int", "time-millis")] | None = None
    fine: time | None = None
    moment: Annotated[datetime, logical("long", "timestamp-millis")] | None = None
    instant: datetime | None = None


PLAIN: dict[str, Any] = {
    "flag": True,
    "small": -(2**31),
    "large": 2**63 - 1,
    "single": 1.5,
    "wide": 5e-324,
    "text": "é\x00\U0001f600",
    "color": Color.GREEN,
    "inner": Inner("", 1),
    "inners": [Inner("a", -1), Inner(None, 2)],
    "counts": {"": 2**40, "b": -1},
    "choice": "text",
    "raw": b"\x00\xff",
    "price": Decimal("-1234.56"),
    "unique": UUID("12345678-1234-1234-1234-123456789abc"),
}
PLAIN_OF_JAVA: dict[str, Any] = PLAIN | {
    "color": "GREEN",
    "inner": {"name": "", "count": 1},
    "inners": [{"name": "a", "count": -1}, {"name": None, "count": 2}],
    "raw": "AP8=",
    "price": -1234.56,
    "unique": "12345678-1234-1234-1234-123456789abc",
    "maybe": None,
}
DATES: dict[str, Any] = {
    "day": date(1969, 12, 31),
    "coarse": time(23, 59, 59, 999_000),
    "fine": time(23, 59, 59, 999_999),
    "instant": datetime(1969, 12, 31, 23, 59, 59, 999_999, UTC),
}
DATES_OF_JAVA = {
    "day": "1969-12-31",
    "coarse": "23:59:59.999",
    "fine": "23:59:59.999999",
    "instant": "1969-12-31T23:59:59.999999Z",
}

MOMENT = datetime(1969, 12, 31, 23, 59, 59, 999_000, UTC)
"""Only Java writes one: its client reads timestamp-millis as the properties of the writer's schema say, which
those of Java alone have."""

MOMENT_OF_JAVA = {"moment": "1969-12-31T23:59:59.999Z"}


@dataclass
class Case:
    """`values`, and `texts`, the JSON that Java has for them. `read_only`: more of Java's."""

    type: str
    schema: Schema[Any]
    values: list[Plain]
    texts: list[dict[str, Any]]
    read_only: list[tuple[Plain, dict[str, Any]]]


EMPTY_OF_JAVA = dict.fromkeys(PLAIN_OF_JAVA) | {
    "flag": False,
    "small": 0,
    "large": 0,
    "single": 0.0,
    "wide": 0.0,
    "choice": None,
}
NO_DATES_OF_JAVA = dict.fromkeys((*DATES_OF_JAVA, "moment"))
CASES = [
    Case(
        "AVRO",
        AvroSchema(Dated, namespace=NAMESPACE),
        [Dated(**PLAIN, **DATES), Dated()],
        [NO_DATES_OF_JAVA | PLAIN_OF_JAVA | DATES_OF_JAVA, EMPTY_OF_JAVA | NO_DATES_OF_JAVA],
        [(Dated(moment=MOMENT), EMPTY_OF_JAVA | NO_DATES_OF_JAVA | MOMENT_OF_JAVA)],
    ),
    Case(
        "JSON",
        JsonSchema(Plain, namespace=NAMESPACE),
        [Plain(**PLAIN), Plain(choice=7)],
        [PLAIN_OF_JAVA, EMPTY_OF_JAVA | {"choice": 7}],
        [],
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.type)
@pytest.mark.parametrize("first", ["ours", "java"])
async def test_each_client_reads_the_records_of_the_other_one(
    broker: BrokerUnderTest, client: Client, topic: str, java: TypedProgram, case: Case, first: str
) -> None:
    """SCHEMA-10: also where the other client's definition is the first one of the topic."""
    spec = {"type": case.type, "model": type(case.values[0]).__name__}

    async def send() -> None:
        async with client.create_producer(topic, schema=case.schema) as producer:
            await producer.send_many([*case.values, None])

    texts: list[Any] = [*case.texts, None]
    more = [text for _, text in case.read_only]
    if first == "ours":
        await send()
    await java.send(broker.url, topic, spec, [*texts, *more])
    if first == "java":
        await send()
    order = [*texts, *texts, *more] if first == "ours" else [*texts, *more, *texts]
    assert await java.receive(broker.url, topic, spec, len(order)) == order
    values: list[Any] = [*case.values, None]
    read_only = [value for value, _ in case.read_only]
    async with client.create_reader(topic, "earliest", schema=case.schema) as reader:
        found = [message.value async for message in reader.until_latest()]
    expected = [*values, *values, *read_only] if first == "ours" else [*values, *read_only, *values]
    assert found == expected
    if case.type == "AVRO":
        async with client.create_reader(topic, "earliest", schema=AutoConsume()) as generic:
            plain: list[Any] = [message.value async for message in generic.until_latest()]
        assert plain == [value and asdict(value) | {"color": _name(value.color)} for value in expected]


def _name(color: Color | None) -> str | None:
    return None if color is None else color.name
