"""Schemas that change, between this client and the one in Java: each version reads the other one."""

from dataclasses import dataclass
from typing import Any

import pytest

from pulsar_sansio.schemas import (
    INT32,
    STRING,
    AutoConsume,
    AvroSchema,
    Int32,
    JsonSchema,
    KeyValue,
    KeyValueSchema,
    Schema,
)
from pulsar_trio import Client, IncompatibleSchema
from tests.interop.typed_program import RefusedByProgram, TypedProgram
from tests.suite.brokers import BrokerUnderTest

from .test_records import NAMESPACE

pytestmark = [pytest.mark.real, pytest.mark.slow]


@dataclass
class OrderOne:
    id: str | None = None
    amount: Int32 = 7


@dataclass
class OrderTwo:
    """Two fields are new, and one is gone; each of them has a default."""

    id: str | None = None
    note: str | None = None
    weight: float = 1.5


@dataclass
class OrderOther:
    """The other ones do not read it, and it does not read them."""

    id: int
    paid: bool


KINDS: dict[str, Any] = {"AVRO": AvroSchema, "JSON": JsonSchema}


@dataclass
class Version:
    """A model with a value of it; `json` is the value as both clients have it without the model, and
    `as_other` the value as a reader with the other model has it."""

    model: type
    value: Any
    json: dict[str, Any]
    as_other: Any
    other_json: dict[str, Any]


ONE = Version(
    OrderOne,
    OrderOne("1", 3),
    {"id": "1", "amount": 3},
    OrderTwo("1"),
    {"id": "1", "note": None, "weight": 1.5},
)
TWO = Version(
    OrderTwo,
    OrderTwo("2", "n", -0.5),
    {"id": "2", "note": "n", "weight": -0.5},
    OrderOne("2"),
    {"id": "2", "amount": 7},
)


async def topic_with(broker: BrokerUnderTest, local_name: str, strategy: str) -> str:
    """Return a topic of a new namespace with this strategy."""
    namespace = f"public/{local_name}".replace("[", "-").replace("]", "-")
    policy = f"/admin/v2/namespaces/{namespace}/schemaCompatibilityStrategy"
    for path, body in ((f"/admin/v2/namespaces/{namespace}", None), (policy, strategy)):
        status, reason = await broker.request("PUT", path, body)
        assert status == 204, reason
    return f"persistent://{namespace}/t"


async def send(client: Client, topic: str, schema: Schema[Any], value: Any) -> None:
    async with client.create_producer(topic, schema=schema) as producer:
        await producer.send(value)


async def read(client: Client, topic: str, schema: Schema[Any]) -> list[Any]:
    async with client.create_reader(topic, "earliest", schema=schema) as reader:
        return [message.value async for message in reader.until_latest()]


def numbers_as_text(value: dict[str, Any]) -> dict[str, Any]:
    """Return a value of Avro as the Java program shows it."""
    return {name: each if each is None else str(each) for name, each in value.items()}


@pytest.mark.parametrize("strategy", ["BACKWARD", "FORWARD", "FULL", "FULL_TRANSITIVE"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("old", "new"), [(ONE, TWO), (TWO, ONE)], ids=["added", "removed"])
@pytest.mark.parametrize("java_is_older", [True, False], ids=["java-older", "java-newer"])
async def test_each_version_is_read_with_the_other_one(
    broker: BrokerUnderTest,
    client: Client,
    local_name: str,
    java: TypedProgram,
    kind: str,
    strategy: str,
    old: Version,
    new: Version,
    java_is_older: bool,
) -> None:
    """SCHEMA-07: a field that the writer lacks has its default, and one that the reader lacks is skipped."""
    topic = await topic_with(broker, local_name, strategy)
    theirs, mine = (old, new) if java_is_older else (new, old)
    schema = KINDS[kind](mine.model, namespace=NAMESPACE)
    spec = {"type": kind, "model": theirs.model.__name__}
    if not java_is_older:
        await send(client, topic, schema, mine.value)
    await java.send(broker.url, topic, spec, [theirs.json])
    if java_is_older:
        await send(client, topic, schema, mine.value)

    order = 1 if java_is_older else -1
    assert await java.receive(broker.url, topic, spec, 2) == [theirs.json, mine.other_json][::order]
    assert await read(client, topic, schema) == [theirs.as_other, mine.value][::order]
    both = [theirs.json, mine.json][::order]
    assert await read(client, topic, AutoConsume()) == both
    shown = list(map(numbers_as_text, both)) if kind == "AVRO" else both
    assert await java.receive(broker.url, topic, {"type": "AUTO_CONSUME"}, 2) == shown


@pytest.mark.parametrize("strategy", ["BACKWARD", "FORWARD", "FULL", "ALWAYS_INCOMPATIBLE"])
@pytest.mark.parametrize("kind", KINDS)
async def test_an_incompatible_version_is_refused_to_both_clients(
    broker: BrokerUnderTest, client: Client, local_name: str, java: TypedProgram, kind: str, strategy: str
) -> None:
    """SCHEMA-11"""
    topic = await topic_with(broker, local_name, strategy)
    await send(client, topic, KINDS[kind](OrderOne, namespace=NAMESPACE), ONE.value)
    for other in ({"type": kind, "model": "OrderOther"}, {"type": "INT32"}):
        with pytest.raises(RefusedByProgram) as refusal:
            await java.send(broker.url, topic, other, [])
        assert refusal.value.kind == "IncompatibleSchemaException"
    await java.send(broker.url, f"{topic}-java", {"type": kind, "model": "OrderOne"}, [ONE.json])
    for schema in (KINDS[kind](OrderOther, namespace=NAMESPACE), INT32):
        with pytest.raises(IncompatibleSchema):
            await send(client, f"{topic}-java", schema, OrderOther(1, True))


@pytest.mark.parametrize("kind", KINDS)
async def test_the_java_client_finds_definitions_over_http(
    broker: BrokerUnderTest, client: Client, topic: str, java: TypedProgram, kind: str
) -> None:
    """With an http:// service URL it asks the administration for the definition of each version."""
    url = broker.admin.url
    await send(client, topic, KINDS[kind](OrderOne, namespace=NAMESPACE), ONE.value)
    spec = {"type": kind, "model": "OrderTwo"}
    await java.send(url, topic, spec, [TWO.json])
    assert await java.receive(url, topic, spec, 2) == [ONE.other_json, TWO.json]
    pairs = f"{topic}-pairs"
    pair_schema = KeyValueSchema(STRING, KINDS[kind](OrderOne, namespace=NAMESPACE))
    await send(client, pairs, pair_schema, KeyValue("k", ONE.value))
    shown = numbers_as_text(ONE.json) if kind == "AVRO" else ONE.json
    assert await java.receive(url, pairs, {"type": "AUTO_CONSUME"}, 1) == [["k", shown]]
