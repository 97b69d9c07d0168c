"""Entries, permissions, schemas and limits over HTTP: answered as a real Pulsar does it."""

import json
from http.client import HTTPConnection
from urllib.parse import quote

import pytest
import trio

from pulsar_sansio import NotAllowed
from pulsar_trio import BatchingPolicy, Client, OutgoingMessage
from tests.real_pulsar.admin import topic_path
from tests.suite.brokers import BrokerUnderTest

NAMESPACES = "/admin/v2/namespaces"


async def raw(broker: BrokerUnderTest, path: str) -> tuple[int, dict[str, str], bytes]:
    """A GET, with its headers of Pulsar."""

    def call() -> tuple[int, dict[str, str], bytes]:
        host, port = broker.admin.url.removeprefix("http://").split(":")
        connection = HTTPConnection(host, int(port), timeout=30)
        connection.request("GET", path)
        response = connection.getresponse()
        headers = {name: value for name, value in response.getheaders() if name.startswith("X-Pulsar")}
        body = response.read()
        connection.close()
        return response.status, headers, body

    return await trio.to_thread.run_sync(call)


async def test_one_entry(broker: BrokerUnderTest, client: Client, topic: str) -> None:
    async with client.create_producer(topic, name="p", batching=None) as producer:
        message = OutgoingMessage(b"one", key="k", properties={"a": "b"}, event_time=1_500)
        first = await producer.send(message)
    async with client.create_producer(topic, name="q", batching=BatchingPolicy()) as producer:
        second, _ = await producer.send_many([b"two", b"three"])
    path = topic_path(topic)
    status, headers, body = await raw(broker, f"{path}/ledger/{first.ledger_id}/entry/{first.entry_id}")
    assert (status, body) == (200, b"one")
    assert headers.pop("X-Pulsar-publish-time").endswith("Z")
    headers.pop("X-Pulsar-partition-key-b64-encoded", None)
    assert headers == {
        "X-Pulsar-Message-ID": f"{first.ledger_id}:{first.entry_id}",
        "X-Pulsar-PROPERTY": '{"a":"b"}',
        "X-Pulsar-event-time": "1970-01-01T00:00:01.5Z",
        "X-Pulsar-Is-Encrypted": "false",
        "X-Pulsar-producer-name": "p",
        "X-Pulsar-sequence-id": "0",
        "X-Pulsar-partition-key": "k",
        "X-Pulsar-txn-uncommitted": "false",
        "X-Pulsar-uncompressed-size": "3",
    }
    status, headers, batch = await raw(broker, f"{path}/ledger/{second.ledger_id}/entry/{second.entry_id}")
    assert status == 200
    assert headers["X-Pulsar-num-batch-message"] == "2"
    assert headers["X-Pulsar-batch-size"] == str(len(batch) + 10)
    assert await raw(broker, f"{path}/examinemessage") == (200, headers, batch)
    earliest = await raw(broker, f"{path}/examinemessage?initialPosition=earliest&messagePosition=1")
    assert earliest[2] == b"one"
    assert (await raw(broker, f"{path}/examinemessage?initialPosition=latest&messagePosition=2"))[2] == b"one"


async def test_entries_that_are_not_there(broker: BrokerUnderTest, client: Client, topic: str) -> None:
    async with client.create_producer(topic) as producer:
        found = await producer.send(b"x")
    path, absent = topic_path(topic), topic_path(topic + "-none")
    parted = topic_path(topic + "-parted")
    await broker.create_partitioned_topic(topic + "-parted", 2)
    here = f"ledger/{found.ledger_id}/entry/{found.entry_id}"
    not_found = (404, "Message id not found")
    assert await broker.request("GET", f"{path}/ledger/{found.ledger_id + 10_000}/entry/0") == not_found
    assert (await broker.request("GET", f"{path}/ledger/x/entry/0"))[0] == 404
    assert await broker.request("GET", f"{parted}-partition-0/{here}") == not_found
    for where, what in (
        (absent, here),
        (absent, "examinemessage"),
        (absent, "messageid/0"),
        (absent.replace("/persistent/", "/non-persistent/"), here),
    ):
        answer = await broker.request("GET", f"{where}/{what}")
        assert answer[0] == 404
        assert answer[1].startswith("Topic ")
        assert answer[1].endswith(" not found")
    refused = (405, "GetMessageById is not allowed on partitioned-topic")
    assert await broker.request("GET", f"{parted}/ledger/0/entry/0") == refused
    for what in ("examinemessage", "messageid/0"):
        assert (await broker.request("GET", f"{parted}/{what}"))[0] == 405
    assert await broker.request("GET", f"{parted}-partition-0/examinemessage") == (
        412,
        "Could not examine messages due to the total message is zero",
    )
    nowhere = "/admin/v2/persistent/public/nowhere/t"
    assert await broker.request("GET", f"{nowhere}/{here}") == (404, "Namespace not found")


async def test_the_id_at_a_time(broker: BrokerUnderTest, client: Client, topic: str) -> None:
    await broker.create_partitioned_topic(topic, 1)
    async with client.create_producer(topic, batching=None) as producer:
        found = await producer.send(b"x")
    path = f"{topic_path(topic)}-partition-0"
    _, answer = await broker.request("GET", f"{path}/messageid/0")
    assert answer == {
        "ledgerId": found.ledger_id,
        "entryId": found.entry_id,
        "partitionIndex": 0,
        "batchIndex": -1,
        "batchSize": 0,
    }
    _, later = await broker.request("GET", f"{path}/messageid/9999999999999")
    assert (later["ledgerId"], later["entryId"]) == (found.ledger_id, found.entry_id + 1)


async def test_properties_of_a_topic_are_changed(broker: BrokerUnderTest, topic: str) -> None:
    path = topic_path(topic)
    await broker.create_topic(topic)
    assert await broker.request("PUT", f"{path}/properties", {"a": "1", "b": "2"}) == (204, None)
    assert await broker.request("PUT", f"{path}/properties", {"b": "3"}) == (204, None)
    assert await broker.request("GET", f"{path}/properties") == (200, {"a": "1", "b": "3"})
    assert await broker.request("DELETE", f"{path}/properties?key=a") == (204, None)
    assert await broker.request("DELETE", f"{path}/properties?key=never") == (204, None)
    assert await broker.request("GET", f"{path}/properties") == (200, {"b": "3"})
    other = path.replace("/persistent/", "/non-persistent/")
    refused = (406, "Need to provide a persistent topic name")
    assert await broker.request("GET", f"{other}/properties") == refused


@pytest.fixture
async def namespace(broker: BrokerUnderTest, local_name: str) -> str:
    assert await broker.request("PUT", f"{NAMESPACES}/public/{local_name}") == (204, None)
    return f"public/{local_name}"


async def test_properties_of_a_namespace(broker: BrokerUnderTest, namespace: str) -> None:
    path = f"{NAMESPACES}/{namespace}"
    assert await broker.request("GET", f"{path}/properties") == (200, {})
    assert await broker.request("PUT", f"{path}/properties", {"a": "1"}) == (204, None)
    assert await broker.request("PUT", f"{path}/property/b/two") == (204, None)
    assert await broker.request("GET", f"{path}/properties") == (200, {"a": "1", "b": "two"})
    assert await broker.request("GET", f"{path}/property/b") == (200, "two")
    assert await broker.request("GET", f"{path}/property/never") == (200, None)
    assert await broker.request("DELETE", f"{path}/property/b") == (200, "two")
    assert (await broker.request("GET", path))[1]["properties"] == {"a": "1"}
    assert await broker.request("DELETE", f"{path}/properties") == (204, None)
    assert await broker.request("GET", f"{path}/properties") == (200, {})
    nowhere = (404, "Namespace does not exist")
    assert await broker.request("GET", f"{NAMESPACES}/public/nowhere/properties") == nowhere


async def test_permissions_are_kept(broker: BrokerUnderTest, namespace: str) -> None:
    path = f"{NAMESPACES}/{namespace}"
    topic = f"persistent://{namespace}/t"
    await broker.create_topic(topic)
    assert await broker.request("GET", f"{path}/permissions") == (200, {})
    assert await broker.request("POST", f"{path}/permissions/r", ["produce"]) == (204, None)
    assert await broker.request("POST", f"{topic_path(topic)}/permissions/s", ["consume"]) == (204, None)
    assert await broker.request("GET", f"{path}/permissions") == (200, {"r": ["produce"]})
    both = {"r": ["produce"], "s": ["consume"]}
    assert await broker.request("GET", f"{topic_path(topic)}/permissions") == (200, both)
    assert await broker.request("POST", f"{path}/permissions/subscription/x", ["r", "q"]) == (204, None)
    assert await broker.request("DELETE", f"{path}/permissions/x/q") == (204, None)
    assert await broker.request("GET", f"{path}/permissions/subscription") == (200, {"x": ["r"]})
    _, record = await broker.request("GET", path)
    assert record["auth_policies"] == {
        "namespace_auth": {"r": ["produce"]},
        "destination_auth": {topic: {"s": ["consume"]}},
        "subscription_auth_roles": {"x": ["r"]},
    }
    assert await broker.request("DELETE", f"{path}/permissions/r") == (204, None)
    assert await broker.request("DELETE", f"{path}/permissions/never") == (204, None)
    assert await broker.request("GET", f"{path}/permissions") == (200, {})
    absent = await broker.request("GET", f"{topic_path(topic + '-none')}/permissions")
    assert absent == (404, f"Topic {topic}-none not found")


async def test_a_namespace_made_as_the_go_client_makes_it(broker: BrokerUnderTest, local_name: str) -> None:
    path = f"{NAMESPACES}/public/{local_name}"
    policies = {
        "auth_policies": {"namespace_auth": {"anonymous": ["produce", "consume"]}},
        "replication_clusters": ["standalone"],
    }
    assert await broker.request("PUT", path, policies) == (204, None)
    _, found = await broker.request("GET", f"{path}/permissions")
    assert {role: set(actions) for role, actions in found.items()} == {"anonymous": {"produce", "consume"}}


async def test_a_namespace_with_room_for_few_topics(
    broker: BrokerUnderTest, client: Client, namespace: str
) -> None:
    path, topics = f"{NAMESPACES}/{namespace}", f"/admin/v2/persistent/{namespace}"
    assert await broker.request("GET", f"{path}/maxTopicsPerNamespace") == (200, 0)
    assert await broker.request("POST", f"{path}/maxTopicsPerNamespace", 3) == (204, None)
    assert await broker.request("PUT", f"{topics}/a") == (204, None)
    full = "Exceed maximum number of topics in namespace."
    assert await broker.request("PUT", f"{topics}/p/partitions", 3) == (412, full)
    assert await broker.request("PUT", f"{topics}/p/partitions", 2) == (204, None)
    assert await broker.request("PUT", f"{topics}/b") == (409, full)
    assert await broker.request("PUT", f"{topics}/b/subscription/s", "earliest") == (409, full)
    with pytest.raises(NotAllowed):
        async with client.create_producer(f"persistent://{namespace}/c"):
            pass
    assert await broker.request("DELETE", f"{path}/maxTopicsPerNamespace") == (204, None)
    assert await broker.request("PUT", f"{topics}/b") == (204, None)


async def test_a_namespace_with_few_and_certain_subscriptions(
    broker: BrokerUnderTest, client: Client, namespace: str
) -> None:
    path, topic = f"{NAMESPACES}/{namespace}", f"persistent://{namespace}/t"
    subscriptions = f"{topic_path(topic)}/subscription"
    await broker.create_topic(topic)
    assert await broker.request("POST", f"{path}/maxSubscriptionsPerTopic", 1) == (204, None)
    assert await broker.request("PUT", f"{subscriptions}/a", "earliest") == (204, None)
    full = f"Exceed the maximum number of subscriptions of the topic: {topic}"
    assert await broker.request("PUT", f"{subscriptions}/b", "earliest") == (409, full)
    with pytest.raises(NotAllowed):
        async with client.subscribe(topic, "b"):
            pass
    with pytest.raises(NotAllowed):
        async with client.create_producer(topic, initial_subscription="b"):
            pass
    unknown = f"Subscription b not found for topic {topic}"
    assert await broker.request("GET", f"{subscriptions}/b/position/1") == (404, unknown)
    assert await broker.request("DELETE", f"{path}/maxSubscriptionsPerTopic") == (204, None)
    assert await broker.request("POST", f"{path}/subscriptionTypesEnabled", ["Shared"]) == (204, None)
    assert await broker.request("GET", f"{path}/subscriptionTypesEnabled") == (200, ["Shared"])
    with pytest.raises(NotAllowed, match="support Exclusive sub type"):
        async with client.subscribe(topic, "b", "exclusive"):
            pass
    async with client.subscribe(topic, "b", "shared"):
        pass
    assert await broker.request("DELETE", f"{path}/subscriptionTypesEnabled") == (204, None)
    assert await broker.request("GET", f"{path}/subscriptionTypesEnabled") == (200, [])


@pytest.mark.parametrize(
    ("policy", "words"),
    [
        ("maxTopicsPerNamespace", "maxTopicsPerNamespace must be 0 or more"),
        ("maxSubscriptionsPerTopic", "maxSubscriptionsPerTopic must be 0 or more"),
        ("subscriptionExpirationTime", "Invalid value for subscription expiration time"),
    ],
)
async def test_limits_that_cannot_be(
    broker: BrokerUnderTest, namespace: str, policy: str, words: str
) -> None:
    path = f"{NAMESPACES}/{namespace}/{policy}"
    assert await broker.request("POST", path, -1) == (412, words)
    assert (await broker.request("POST", path, "x"))[0] == 400
    assert await broker.request("POST", path, 7) == (204, None)
    assert await broker.request("GET", path) == (200, 7)


ORDER = {
    "type": "record",
    "name": "Order",
    "fields": [{"name": "id", "type": "string"}, {"name": "amount", "type": "int"}],
}


def changed(*fields: dict[str, object], **others: object) -> dict[str, object]:
    """Return an Avro schema with these fields in place of the amount."""
    definition = {**ORDER, "fields": [{"name": "id", "type": "string"}, *fields], **others}
    return {"type": "AVRO", "schema": json.dumps(definition), "properties": {}}


AMOUNT: dict[str, object] = {"name": "amount", "type": "int"}
LONG: dict[str, object] = {"name": "amount", "type": "long"}
NOTE: dict[str, object] = {"name": "note", "type": "string", "default": ""}
MUST: dict[str, object] = {"name": "note", "type": "string"}

CHANGES = {
    "none": changed(AMOUNT),
    "a field with a default": changed(AMOUNT, NOTE),
    "a field without one": changed(AMOUNT, MUST),
    "a field less": changed(),
    "a wider number": changed(LONG),
    "another name": changed(AMOUNT, name="Purchase"),
}

STRATEGIES = (
    "ALWAYS_INCOMPATIBLE",
    "ALWAYS_COMPATIBLE",
    "BACKWARD",
    "FORWARD",
    "FULL",
    "BACKWARD_TRANSITIVE",
    "FORWARD_TRANSITIVE",
    "FULL_TRANSITIVE",
)

COMPATIBLE: dict[str, set[str]] = {
    "ALWAYS_INCOMPATIBLE": {"none"},
    "ALWAYS_COMPATIBLE": set(CHANGES),
    "BACKWARD": {"none", "another name", "a field with a default", "a field less", "a wider number"},
    "FORWARD": {"none", "another name", "a field with a default", "a field without one"},
    "FULL": {"none", "another name", "a field with a default"},
}
"""Strategy -> the changes that it allows; the transitive ones as the others, with one version."""


@pytest.mark.parametrize("strategy", STRATEGIES)
async def test_compatibility_of_avro_schemas(broker: BrokerUnderTest, local_name: str, strategy: str) -> None:
    namespace = f"public/{quote(local_name)}"
    assert (await broker.request("PUT", f"/admin/v2/namespaces/{namespace}"))[0] == 204
    policy = f"/admin/v2/namespaces/{namespace}/schemaCompatibilityStrategy"
    assert (await broker.request("PUT", policy, strategy))[0] == 204
    assert await broker.request("GET", policy) == (200, strategy)
    path = f"/admin/v2/schemas/{namespace}/t"
    first = await broker.request("POST", f"{path}/schema", changed(AMOUNT))
    assert first == (200, {"version": {"version": 0}})
    found = {}
    for name, change in CHANGES.items():
        status, answer = await broker.request("POST", f"{path}/compatibility", change)
        if status == 500 and broker.name == "real":  # it says so of an incompatible schema
            assert "Error during schema compatibility check" in answer
            found[name] = False
            continue
        assert status == 202
        assert answer["schemaCompatibilityStrategy"] == strategy
        found[name] = answer["compatibility"]
    allowed = COMPATIBLE[strategy.removesuffix("_TRANSITIVE")]
    assert {name for name, compatible in found.items() if compatible} == allowed
    assert await broker.request("POST", f"{path}/schema", changed(AMOUNT)) == first, "it is there"
    other = {"type": "JSON", "schema": json.dumps(ORDER), "properties": {}}
    status, _ = await broker.request("POST", f"{path}/schema", other)
    assert status == (200 if strategy == "ALWAYS_COMPATIBLE" else 409), "another type"


async def test_definitions_that_are_none(broker: BrokerUnderTest, local_name: str) -> None:
    path = f"/admin/v2/schemas/public/default/{quote(local_name)}"
    for kind, definition in (
        ("AVRO", "{"),
        ("AVRO", '{"type": "record", "name": "A"}'),
        ("JSON", "x"),
        ("PROTOBUF_NATIVE", "{}"),
    ):
        body = {"type": kind, "schema": definition, "properties": {}}
        status, _ = await broker.request("POST", f"{path}/schema", body)
        assert status == 422, (kind, definition)


async def test_a_schema_over_http(broker: BrokerUnderTest, local_name: str) -> None:
    path = f"/admin/v2/schemas/public/default/{quote(local_name)}"
    text = {"type": "STRING", "schema": "", "properties": {"a": "b"}}
    number = {"type": "INT32", "schema": "", "properties": {}}
    absent = (404, "Schema not found")
    assert await broker.request("GET", f"{path}/schema") == absent
    assert await broker.request("GET", f"{path}/schemas") == (200, {"getSchemaResponses": []})
    assert await broker.request("POST", f"{path}/version", text) == (200, {"version": -1})
    for _ in range(2):
        assert await broker.request("POST", f"{path}/schema", text) == (200, {"version": {"version": 0}})
    _, found = await broker.request("GET", f"{path}/schema")
    assert found.pop("timestamp") > 0
    assert found == {"version": 0, "type": "STRING", "data": "", "properties": {"a": "b"}}
    assert (await broker.request("GET", f"{path}/schema/0"))[1]["type"] == "STRING"
    assert await broker.request("GET", f"{path}/schema/1") == absent
    assert len((await broker.request("GET", f"{path}/schemas"))[1]["getSchemaResponses"]) == 1
    assert await broker.request("POST", f"{path}/version", text) == (200, {"version": 0})
    assert await broker.request("POST", f"{path}/version", number) == (200, {"version": -1})
    compatible = {"compatibility": True, "schemaCompatibilityStrategy": "FULL"}
    assert await broker.request("POST", f"{path}/compatibility", text) == (202, compatible)
    assert (await broker.request("POST", f"{path}/schema", number))[0] == 409
    assert (await broker.request("POST", f"{path}/schema", text | {"schema": "x"}))[0] == 422
    assert await broker.request("DELETE", f"{path}/schema") == (200, {"version": 1})
    assert await broker.request("GET", f"{path}/schema") == absent
    assert await broker.request("POST", f"{path}/schema", number) == (200, {"version": {"version": 2}})
    for before in (0, 1):
        assert await broker.request("GET", f"{path}/schema/{before}") == absent, "from before the deletion"
    assert len((await broker.request("GET", f"{path}/schemas"))[1]["getSchemaResponses"]) == 1
    assert await broker.request("DELETE", f"{path}/schema?force=true") == (200, {"version": -1})
    assert await broker.request("POST", f"{path}/schema", text) == (200, {"version": {"version": 0}})
    nowhere = await broker.request("POST", "/admin/v2/schemas/public/nowhere/t/schema", text)
    assert nowhere == (404, "Namespace does not exist")
