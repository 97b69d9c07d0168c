"""Schemas of keys and values, and of bytes, over HTTP: answered as a real Pulsar does it."""

import json
from typing import Any
from urllib.parse import quote

import pytest

from pulsar_sansio.schemas import (
    INT32,
    STRING,
    AvroSchema,
    JsonSchema,
    KeyValue,
    KeyValueEncoding,
    KeyValueSchema,
    Schema,
)
from pulsar_trio import Client, IncompatibleSchema
from tests.schemas.models import Line, Note
from tests.suite.brokers import BrokerUnderTest

USER = {"type": "record", "name": "User", "fields": [{"name": "id", "type": "string"}]}
NAMED = {**USER, "fields": [*USER["fields"], {"name": "name", "type": "string", "default": ""}]}
RENAMED = {**USER, "fields": [{"name": "name", "type": "string"}]}
LIST = {"type": "array", "items": "int"}
INCOMPATIBLE = (202, 500)
"""Pulsar answers 500 where a definition is not compatible, and this broker 202 with `false`."""


def pair(key: object, value: object, kinds: str = "AVRO AVRO", encoding: str = "SEPARATED") -> dict[str, Any]:
    """Return the body for a key and a value of these types, with the properties that clients write."""
    properties = {"kv.encoding.type": encoding}
    for name, kind in zip(("key", "value"), kinds.split(), strict=True):
        properties |= {f"{name}.schema.{what}": text for what, text in (("name", "n"), ("properties", "{}"))}
        properties[f"{name}.schema.type"] = kind
    return {
        "type": "KEY_VALUE",
        "schema": json.dumps({"key": key, "value": value}),
        "properties": properties,
    }


def shown(answer: dict[str, Any]) -> tuple[int, str, Any, dict[str, str]]:
    return answer["version"], answer["type"], json.loads(answer["data"]), answer["properties"]


@pytest.fixture
def path(topic: str) -> str:
    """The schemas of the test's topic."""
    return f"/admin/v2/schemas/public/default/{quote(topic.rpartition('/')[2])}"


async def test_versions_of_a_key_and_a_value(broker: BrokerUnderTest, path: str) -> None:
    first, second = pair(USER, USER), pair(USER, NAMED)
    for number, body in enumerate((first, second)):
        assert await broker.request("POST", f"{path}/version", body) == (200, {"version": -1})
        compatible = {"compatibility": True, "schemaCompatibilityStrategy": "FULL"}
        assert await broker.request("POST", f"{path}/compatibility", body) == (202, compatible)
        for _ in range(2):
            registered = await broker.request("POST", f"{path}/schema", body)
            assert registered == (200, {"version": {"version": number}})
        assert await broker.request("POST", f"{path}/version", body) == (200, {"version": number})
    versions = [
        (number, "KEY_VALUE", json.loads(body["schema"]), body["properties"])
        for number, body in enumerate((first, second))
    ]
    for question, expected in (("schema", versions[1]), ("schema/0", versions[0]), ("schema/1", versions[1])):
        status, answer = await broker.request("GET", f"{path}/{question}")
        assert (status, shown(answer)) == (200, expected)
    _, answer = await broker.request("GET", f"{path}/schemas")
    assert [shown(each) for each in answer["getSchemaResponses"]] == versions
    assert await broker.request("GET", f"{path}/schema/2") == (404, "Schema not found")
    assert await broker.request("DELETE", f"{path}/schema") == (200, {"version": 2})
    assert await broker.request("GET", f"{path}/schema") == (404, "Schema not found")
    assert await broker.request("POST", f"{path}/version", first) == (200, {"version": -1})
    assert await broker.request("POST", f"{path}/schema", first) == (200, {"version": {"version": 3}})
    assert await broker.request("DELETE", f"{path}/schema?force=true") == (200, {"version": -1})
    assert await broker.request("GET", f"{path}/schemas") == (200, {"getSchemaResponses": []})


@pytest.mark.parametrize(
    "body",
    [
        pair(USER, RENAMED),
        pair(RENAMED, USER),
        pair("", USER, "STRING AVRO"),
    ],
)
async def test_a_pair_that_may_not_follow_is_refused(
    broker: BrokerUnderTest, path: str, body: dict[str, Any]
) -> None:
    assert (await broker.request("POST", f"{path}/schema", pair(USER, USER)))[0] == 200
    status, answer = await broker.request("POST", f"{path}/compatibility", body)
    assert status in INCOMPATIBLE
    assert status == 500 or not answer["compatibility"]
    assert (await broker.request("POST", f"{path}/schema", body))[0] == 409
    assert (await broker.request("GET", f"{path}/schema"))[1]["version"] == 0


@pytest.mark.parametrize(
    ("body", "data"),
    [
        (pair("", USER, "STRING JSON"), {"key": "", "value": USER}),
        (pair("", "", "INT32 BYTES", "INLINE"), {"key": "", "value": ""}),
        (pair("string", LIST), {"key": "string", "value": LIST}),
        ({"type": "KEY_VALUE", "schema": json.dumps({"key": "", "value": ""})}, {"key": "", "value": ""}),
    ],
)
async def test_types_without_a_definition_have_an_empty_text(
    broker: BrokerUnderTest, path: str, body: dict[str, Any], data: object
) -> None:
    assert await broker.request("POST", f"{path}/schema", body) == (200, {"version": {"version": 0}})
    _, answer = await broker.request("GET", f"{path}/schema")
    assert shown(answer) == (0, "KEY_VALUE", data, body.get("properties", {}))


@pytest.mark.parametrize(
    "body",
    [
        pair({"type": "record"}, USER),
        pair(USER, json.dumps(USER)),
        pair({}, USER, "STRING AVRO"),
        pair("x", "", "INT32 INT32"),
    ],
)
async def test_halves_that_are_no_definition_of_their_type(
    broker: BrokerUnderTest, path: str, body: dict[str, Any]
) -> None:
    assert (await broker.request("POST", f"{path}/schema", body))[0] == 422
    assert await broker.request("GET", f"{path}/schema") == (404, "Schema not found")


@pytest.mark.parametrize("encoding", KeyValueEncoding)
async def test_clients_and_administrators_see_one_definition(
    broker: BrokerUnderTest, client: Client, topic: str, path: str, encoding: KeyValueEncoding
) -> None:
    """The pair that a client registered is shown as text, and the text is a definition equal to it."""
    line, note = AvroSchema(Line), JsonSchema(Note)
    schema: Schema[Any] = KeyValueSchema(line, note, encoding)
    async with client.create_producer(topic, schema=schema) as producer:
        await producer.send(KeyValue(Line("a", 1), Note("n")))
    status, answer = await broker.request("GET", f"{path}/schema")
    version, kind, halves, properties = shown(answer)
    assert (status, version, kind) == (200, 0, "KEY_VALUE")
    assert halves == {"key": json.loads(line.info.data), "value": json.loads(note.info.data)}
    assert properties["kv.encoding.type"] == encoding.value
    body = {"type": kind, "schema": answer["data"], "properties": properties}
    assert await broker.request("POST", f"{path}/version", body) == (200, {"version": 0})


async def test_a_pair_that_was_posted_serves_a_producer(
    broker: BrokerUnderTest, client: Client, topic: str, path: str
) -> None:
    body = pair("", "", "STRING INT32")
    assert (await broker.request("POST", f"{path}/schema", body))[0] == 200
    schema = KeyValueSchema(STRING, INT32)
    async with client.subscribe(topic, "s", schema=schema) as consumer:
        async with client.create_producer(topic, schema=schema) as producer:
            await producer.send(KeyValue("k", 7))
        message = await consumer.receive()
        assert (message.value, message.schema_version) == (KeyValue("k", 7), bytes(8))
    status, answer = await broker.request("GET", f"{path}/schemas")
    assert (status, len(answer["getSchemaResponses"])) == (200, 1)


async def test_bytes_are_a_version_of_type_none(
    broker: BrokerUnderTest, client: Client, topic: str, path: str
) -> None:
    """An administrator can register bytes, as NONE or as BYTES. Other types may not follow them."""
    none = {"type": "NONE", "schema": "", "properties": {}}
    assert await broker.request("POST", f"{path}/version", none) == (200, {"version": -1})
    posted = await broker.request("POST", f"{path}/schema", {**none, "type": "BYTES"})
    assert posted == (200, {"version": {"version": 0}})
    for _ in range(2):
        assert await broker.request("POST", f"{path}/schema", none) == posted
    assert await broker.request("POST", f"{path}/version", none) == (200, {"version": 0})
    compatible = {"compatibility": True, "schemaCompatibilityStrategy": "FULL"}
    assert await broker.request("POST", f"{path}/compatibility", none) == (202, compatible)
    for question in ("schema", "schema/0"):
        status, answer = await broker.request("GET", f"{path}/{question}")
        assert (status, answer["version"], answer["type"], answer["data"]) == (200, 0, "NONE", "")
    text = {"type": "STRING", "schema": "", "properties": {}}
    assert (await broker.request("POST", f"{path}/schema", text))[0] == 409
    async with client.create_producer(topic) as producer, client.subscribe(topic, "s") as consumer:
        await producer.send(b"bytes")
        assert (await consumer.receive()).value == b"bytes"
    assert await broker.request("DELETE", f"{path}/schema") == (200, {"version": 1})
    assert await broker.request("POST", f"{path}/schema", text) == (200, {"version": {"version": 2}})


async def test_an_administrator_registers_what_clients_may_not(
    broker: BrokerUnderTest, client: Client, local_name: str
) -> None:
    """That is what `isAllowAutoUpdateSchema=false` is for."""
    namespace = f"public/{local_name}".lower()
    path = f"/admin/v2/namespaces/{namespace}"
    assert await broker.request("PUT", path) == (204, None)
    assert await broker.request("POST", f"{path}/isAllowAutoUpdateSchema", False) == (204, None)
    topic = f"persistent://{namespace}/t"
    with pytest.raises(IncompatibleSchema):
        async with client.create_producer(topic, schema=STRING):
            pass
    body: dict[str, object] = {"type": "STRING", "schema": "", "properties": {}}
    registered = await broker.request("POST", f"/admin/v2/schemas/{namespace}/t/schema", body)
    assert registered == (200, {"version": {"version": 0}})
    async with client.create_producer(topic, schema=STRING) as producer:
        await producer.send("text")
