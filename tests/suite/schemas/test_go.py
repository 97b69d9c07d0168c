"""Typed messages between this client and the one in Go, of each schema that Go's has.

Go has no pairs, no moments among the primitive types, and no AUTO_CONSUME. It reads each message by the
definition of its writer. Its whole numbers of several bytes are little-endian, which no other client reads.
"""

import math
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pytest
from google.protobuf import text_format
from google.protobuf.message import Message

from pulsar_sansio.schemas import (
    BYTES,
    DOUBLE,
    FLOAT,
    INT32,
    AvroSchema,
    Float32,
    Int32,
    JsonSchema,
    ProtobufNativeSchema,
    ProtobufSchema,
    Schema,
)
from pulsar_trio import Client, IncompatibleSchema
from tests.interop.typed_program import RefusedByProgram, TypedProgram
from tests.suite.brokers import BrokerUnderTest

from . import test_primitives, test_protobuf
from .test_records import Color, Inner

pytestmark = [pytest.mark.real, pytest.mark.slow, pytest.mark.long]


@dataclass
class Record:
    flag: bool = False
    small: Int32 = 0
    large: int = 0
    single: Float32 = 0.0
    wide: float = 0.0
    text: str | None = None
    raw: bytes = b""
    color: Color | None = None
    inner: Inner | None = None
    inners: list[Inner] | None = None
    counts: dict[str, int] | None = None
    instant: datetime | None = None


@dataclass
class Small:
    text: str | None = None
    small: Int32 = 7


@dataclass
class Wide:
    """A field of `Small` is gone, and another one is new; each of them has a default."""

    text: str | None = None
    wide: float = 1.5


@dataclass
class Other:
    """The other ones do not read it, and it does not read them."""

    text: int
    flag: str


RECORD = Record(
    flag=True,
    small=-(2**31),
    large=2**63 - 1,
    single=1.5,
    wide=5e-324,
    text="é\x00\U0001f600",
    raw=b"\x00\xff",
    color=Color.GREEN,
    inner=Inner("", 1),
    inners=[Inner("a", -1), Inner(None, 2)],
    counts={"": 2**40, "b": -1},
    instant=datetime(1969, 12, 31, 23, 59, 59, 999_999, UTC),
)
RECORD_OF_GO = {
    "flag": True,
    "small": -(2**31),
    "large": 2**63 - 1,
    "single": 1.5,
    "wide": 5e-324,
    "text": "é\x00\U0001f600",
    "raw": "AP8=",
    "color": "GREEN",
    "inner": {"name": "", "count": 1},
    "inners": [{"name": "a", "count": -1}, {"name": None, "count": 2}],
    "counts": {"": 2**40, "b": -1},
    "instant": "1969-12-31T23:59:59.999999Z",
}


@dataclass
class Case:
    """`spec`, `texts`: the schema and the values of the Go program."""

    schema: Schema[Any]
    values: list[Any]
    spec: dict[str, str]
    texts: list[Any]

    def __str__(self) -> str:
        return self.schema.info.type.name


def primitive(case: test_primitives.Case) -> Case:
    values, texts = zip(*case.both, strict=True)
    return Case(case.schema, list(values), {"type": case.schema.info.type.name}, list(texts))


def definition(schema: Schema[Any]) -> dict[str, str]:
    return {"type": schema.info.type.name, "definition": schema.info.data.decode()}


def message(kind: Any, case: test_protobuf.Case) -> Case:
    schema = kind(type(case.messages[0]))
    model = case.java.removeprefix("com.")
    spec = {"type": schema.info.type.name, "model": model, "definition": schema.info.data.decode()}
    return Case(schema, case.messages, spec, list(map(test_protobuf.text, case.messages)))


RECORDS: list[Schema[Any]] = [AvroSchema(Record), JsonSchema(Record)]
NUMBERS = [(1.5, "1.5"), (-0.0, "-0"), (math.inf, "+Inf"), (-math.inf, "-Inf"), (math.nan, "NaN")]
PRIMITIVES = [
    *(case for case in test_primitives.CASES if case.schema.info.type.name in ("STRING", "INT8")),
    test_primitives.Case(FLOAT, NUMBERS),
    test_primitives.Case(DOUBLE, NUMBERS),
]
BYTES_OF_GO = pytest.mark.breaks("SCHEMA-04", "the Go client sends the type NONE for bytes")
CASES = [
    pytest.param(Case(BYTES, [b"\x00\xff", b""], {"type": "NONE"}, ["00ff", ""]), marks=BYTES_OF_GO),
    *map(primitive, PRIMITIVES),
    *(Case(schema, [RECORD], definition(schema), [RECORD_OF_GO]) for schema in RECORDS),
    *(message(kind, case) for kind in (ProtobufSchema, ProtobufNativeSchema) for case in test_protobuf.CASES),
]


def plain(value: Any) -> Any:
    """Return a value that equals another one also where it is a message of another class, or no number."""
    if isinstance(value, Message):
        return test_protobuf.text(value)
    return repr(value) if isinstance(value, float) else value


@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.parametrize("first", ["ours", "go"])
async def test_each_client_reads_what_the_other_one_wrote(
    broker: BrokerUnderTest, client: Client, topic: str, go: TypedProgram, case: Case, first: str
) -> None:
    async def send() -> None:
        async with client.create_producer(topic, schema=case.schema) as producer:
            await producer.send_many(case.values)

    if first == "ours":
        await send()
    await go.send(broker.url, topic, case.spec, case.texts)
    if first == "go":
        await send()
    said = await go.receive(broker.url, topic, case.spec, 2 * len(case.texts))
    if isinstance(case.values[0], Message):
        model: Any = type(case.values[0])
        said = [test_protobuf.text(text_format.Parse(text, model())) for text in said]
    assert said == case.texts * 2
    async with client.create_reader(topic, "earliest", schema=case.schema) as reader:
        read = [plain(item.value) async for item in reader.until_latest()]
    assert read == list(map(plain, case.values * 2))


def read_here(model: Any, kind: Any) -> Any:
    """Return Go's value of the other model as a reader with this one has it; Go's JSON has the field, too."""
    if kind is AvroSchema:
        return model("go")
    return model("go", -0.5 if model is Wide else 1)


@pytest.mark.parametrize("kind", [AvroSchema, JsonSchema])
@pytest.mark.parametrize("go_is_older", [True, False], ids=["go-older", "go-newer"])
async def test_each_version_is_read_with_the_other_one(
    broker: BrokerUnderTest, client: Client, topic: str, go: TypedProgram, kind: Any, go_is_older: bool
) -> None:
    """SCHEMA-07: in Go, a field that the writer lacks is zero."""
    mine, theirs = (Wide, Small) if go_is_older else (Small, Wide)
    schema, spec = kind(mine), definition(kind(theirs))
    value: Any = mine("ours")

    async def send() -> None:
        async with client.create_producer(topic, schema=schema) as producer:
            await producer.send(value)

    if not go_is_older:
        await send()
    await go.send(broker.url, topic, spec, [{"text": "go", "small": 1, "wide": -0.5}])
    if go_is_older:
        await send()
    order = 1 if go_is_older else -1
    if kind is JsonSchema:  # Go's JSON has all fields that the program has, in the definition or not
        from_go = ("go", 1, -0.5)
    else:
        from_go = ("go", 1, 0) if go_is_older else ("go", 0, -0.5)
    from_here = ("ours", 0, 1.5) if go_is_older else ("ours", 7, 0)
    said = await go.receive(broker.url, topic, spec, 2)
    assert [(each["text"], each["small"], each["wide"]) for each in said] == [from_go, from_here][::order]
    async with client.create_reader(topic, "earliest", schema=schema) as reader:
        found = [message.value async for message in reader.until_latest()]
    assert found == [read_here(mine, kind), mine("ours")][::order]


@pytest.mark.parametrize("kind", [AvroSchema, JsonSchema])
async def test_an_incompatible_version_is_refused_to_both_clients(
    broker: BrokerUnderTest, client: Client, topic: str, go: TypedProgram, kind: Any
) -> None:
    """SCHEMA-11"""
    async with client.create_producer(topic, schema=kind(Small)):
        for spec in (definition(kind(Other)), {"type": "STRING"}):
            with pytest.raises(RefusedByProgram, match="IncompatibleSchema"):
                await go.send(broker.url, topic, spec, [])
    await go.send(broker.url, f"{topic}-go", definition(kind(Small)), [])
    for schema in (kind(Other), INT32):
        with pytest.raises(IncompatibleSchema):
            async with client.create_producer(f"{topic}-go", schema=schema):
                pass
