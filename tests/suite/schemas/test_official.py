"""Values of every schema that the official Python client has: each client reads those of the other one."""

from dataclasses import dataclass
from enum import Enum
from typing import Any

import pulsar
import pytest
from google.protobuf import any_pb2, type_pb2
from pulsar import schema as theirs

from pulsar_sansio.schemas import (
    BYTES,
    STRING,
    AvroSchema,
    Float32,
    Int32,
    JsonSchema,
    ProtobufNativeSchema,
    Schema,
)
from pulsar_trio import Client
from tests.official.client import RECEIVE_TIMEOUT, in_thread, official_client
from tests.suite.brokers import BrokerUnderTest


class Color(Enum):
    RED = "RED"
    GREEN = "GREEN"


class InnerRecord(theirs.Record):  # type: ignore[misc]
    _avro_namespace = "shop"
    name = theirs.String()
    count = theirs.Integer(required=True)


InnerRecord.__name__ = "Inner"
"""The name of the class is that of the record, and names of records within records are compared."""


class SampleRecord(theirs.Record):  # type: ignore[misc]
    """A field of each type that the official client has."""

    _avro_namespace = "shop"
    flag = theirs.Boolean()
    small = theirs.Integer()
    large = theirs.Long()
    single = theirs.Float()
    wide = theirs.Double()
    raw = theirs.Bytes()
    text = theirs.String()
    color = theirs.CustomEnum(Color)
    inner = InnerRecord()
    numbers = theirs.Array(theirs.Long())
    counts = theirs.Map(theirs.Integer())
    maybe = theirs.String()


@dataclass
class Inner:
    name: str | None
    count: Int32


@dataclass
class Sample:
    flag: bool | None = None
    small: Int32 | None = None
    large: int | None = None
    single: Float32 | None = None
    wide: float | None = None
    raw: bytes | None = None
    text: str | None = None
    color: Color | None = None
    inner: Inner | None = None
    numbers: list[int] | None = None
    counts: dict[str, Int32] | None = None
    maybe: str | None = None


FIELDS: dict[str, Any] = {
    "flag": True,
    "small": -(2**31),
    "large": 2**63 - 1,
    "single": 1.5,
    "wide": 5e-324,
    "text": "é\x00\U0001f600",
    "color": Color.GREEN,
    "numbers": [-1, 2**40],
    "counts": {"": 1},
}
RAW = {"raw": b"\x00\xff"}
"""For Avro only: in JSON the official client writes bytes as text, and this one as Base64, as Java does."""

TYPE = type_pb2.Type(
    name="é",
    fields=[type_pb2.Field(kind=type_pb2.Field.TYPE_BYTES, number=-1)],
    options=[type_pb2.Option(name="o", value=any_pb2.Any(type_url="u", value=b"\x00\xff"))],
)


@dataclass
class Case:
    """The schema and the values of each client."""

    theirs: Any
    ours: Schema[Any]
    their_values: list[Any]
    our_values: list[Any]

    def __str__(self) -> str:
        return type(self.theirs).__name__


def records(their_schema: Any, our_schema: Any, **more: Any) -> Case:
    # The official client cannot write null for a record or for a boolean.
    empty = SampleRecord(flag=False, inner=InnerRecord(count=0))
    return Case(
        their_schema(SampleRecord),
        our_schema(Sample, namespace="shop"),
        [SampleRecord(**FIELDS, **more, inner=InnerRecord(name="i", count=1)), empty],
        [Sample(**FIELDS, **more, inner=Inner("i", 1)), Sample(False, inner=Inner(None, 0))],
    )


CASES = [
    Case(theirs.BytesSchema(), BYTES, [b"\x00\xff", b"x"], [b"\x00\xff", b"x"]),
    Case(theirs.StringSchema(), STRING, ["é\x00\U0001f600", "x"], ["é\x00\U0001f600", "x"]),
    records(theirs.AvroSchema, AvroSchema, **RAW),
    records(theirs.JsonSchema, JsonSchema),
    Case(
        theirs.ProtobufNativeSchema(type_pb2.Type),
        ProtobufNativeSchema(type_pb2.Type),
        [TYPE, type_pb2.Type()],
        [TYPE, type_pb2.Type()],
    ),
]


def send(url: str, topic: str, schema: Any, values: list[Any]) -> None:
    with official_client(url) as client:
        producer = client.create_producer(topic, schema=schema)
        for value in values:
            producer.send(value)


def receive(url: str, topic: str, schema: Any, count: int) -> list[Any]:
    with official_client(url) as client:
        position = pulsar.InitialPosition.Earliest
        consumer = client.subscribe(topic, "official", schema=schema, initial_position=position)
        return [consumer.receive(RECEIVE_TIMEOUT).value() for _ in range(count)]


@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.parametrize("first", ["ours", "official"])
async def test_each_client_reads_what_the_other_one_wrote(
    broker: BrokerUnderTest, client: Client, topic: str, case: Case, first: str
) -> None:
    """SCHEMA-10: either client defines the topic."""

    async def send_ours() -> None:
        async with client.create_producer(topic, schema=case.ours) as producer:
            await producer.send_many(case.our_values)

    if first == "ours":
        await send_ours()
    await in_thread(send, broker.url, topic, case.theirs, case.their_values)
    if first == "official":
        await send_ours()
    read = await in_thread(receive, broker.url, topic, case.theirs, 4)
    assert read == case.their_values * 2
    async with client.create_reader(topic, "earliest", schema=case.ours) as reader:
        assert [message.value async for message in reader.until_latest()] == case.our_values * 2


class SmallRecord(theirs.Record):  # type: ignore[misc]
    text = theirs.String()
    small = theirs.Integer(default=7, required=True, required_default=True)


class WideRecord(theirs.Record):  # type: ignore[misc]
    """A field of `SmallRecord` is gone, and another one is new."""

    text = theirs.String()
    wide = theirs.Double(default=1.5, required=True, required_default=True)


@dataclass
class Small:
    text: str | None = None
    small: Int32 = 7


@dataclass
class Wide:
    text: str | None = None
    wide: float = 1.5


@pytest.mark.parametrize("kind", ["AvroSchema", "JsonSchema"])
@pytest.mark.parametrize("theirs_is_older", [True, False], ids=["official-older", "official-newer"])
async def test_each_version_is_read_with_the_other_one(
    broker: BrokerUnderTest, client: Client, topic: str, kind: str, theirs_is_older: bool
) -> None:
    """SCHEMA-07: a field that the writer lacks has its default."""
    record, mine = (SmallRecord, Wide) if theirs_is_older else (WideRecord, Small)
    their_schema = getattr(theirs, kind)(record)
    schema: Schema[Any] = AvroSchema(mine) if kind == "AvroSchema" else JsonSchema(mine)
    model: Any = mine

    async def send_ours() -> None:
        async with client.create_producer(topic, schema=schema) as producer:
            await producer.send(model("ours"))

    if not theirs_is_older:
        await send_ours()
    await in_thread(send, broker.url, topic, their_schema, [record(text="official")])
    if theirs_is_older:
        await send_ours()
    order = 1 if theirs_is_older else -1
    read = await in_thread(receive, broker.url, topic, their_schema, 2)
    assert read == [record(text="official"), record(text="ours")][::order]
    async with client.create_reader(topic, "earliest", schema=schema) as reader:
        found = [message.value async for message in reader.until_latest()]
    assert found == [model("official"), model("ours")][::order]
