"""`Schemas`: registration, versions, policies, deletion."""

import json
from typing import Any

import pytest

from pulsar_sansio.broker.schemas import registry
from pulsar_sansio.broker.schemas.validation import MAX_DEFINITION
from pulsar_sansio.wire import proto
from tests.broker.peer import TOPIC, Peer, SubType, Type, World

STRING = proto.Schema(name="String", type=proto.Schema.String, schema_data=b"")
INT64 = proto.Schema(name="INT64", type=proto.Schema.Int64, schema_data=b"")
BYTES = proto.Schema(name="Bytes", type="None", schema_data=b"")
AUTO = proto.Schema(name="AutoConsume", type=proto.Schema.AutoConsume, schema_data=b"")
VERSION_0 = bytes(8)


def get_schema(peer: Peer, topic: str = TOPIC, **fields: Any) -> Any:
    peer.send(Type.GET_SCHEMA, proto.CommandGetSchema(request_id=1, topic=topic, **fields))
    return peer.expect(Type.GET_SCHEMA_RESPONSE)


def get_or_create(peer: Peer, schema: proto.Schema, topic: str = TOPIC) -> Any:
    command = proto.CommandGetOrCreateSchema(request_id=1, topic=topic, schema=schema)
    peer.send(Type.GET_OR_CREATE_SCHEMA, command)
    return peer.expect(Type.GET_OR_CREATE_SCHEMA_RESPONSE)


def test_the_first_schema_is_version_0_and_stays() -> None:
    """Rules SCHEMA-03, BROKER-45 and WIRE-05."""
    world = World()
    peer = world.connect()
    assert peer.producer(schema=STRING).schema_version == VERSION_0
    assert peer.producer(producer_id=1, schema=STRING).schema_version == VERSION_0
    peer.subscribe(schema=STRING)
    world.start()
    peer = world.connect()
    answer = get_schema(peer)
    assert (answer.schema.type, answer.schema.name, answer.schema_version) == (
        proto.Schema.String,
        "public/default/t",  # The topic's, as a Java broker answers.
        VERSION_0,
    )
    assert get_schema(peer, schema_version=VERSION_0).schema.type == proto.Schema.String


def test_another_type_is_incompatible() -> None:
    """Rule SCHEMA-11."""
    peer = World().connect()
    peer.producer(schema=STRING)
    peer.ask_producer(producer_id=1, schema=INT64)
    peer.expect_error("IncompatibleSchema")
    peer.ask_subscribe(schema=INT64)
    peer.expect_error("IncompatibleSchema")


def test_without_a_schema_and_with_any() -> None:
    peer = World().connect()
    peer.producer(schema=STRING)
    assert peer.producer(producer_id=1).schema_version == b""
    peer.subscribe(SubType.Shared, schema=AUTO)
    peer.subscribe(SubType.Shared, consumer_id=1)


def test_a_consumer_brings_the_schema_of_an_idle_topic_only() -> None:
    peer = World().connect()
    peer.subscribe(schema=INT64)
    assert get_schema(peer).schema.type == proto.Schema.Int64
    other = "persistent://public/default/active"
    peer.producer(other)
    peer.ask_subscribe(topic=other, consumer_id=1, schema=STRING)
    peer.expect_error("IncompatibleSchema")


def test_partitions_share_a_schema() -> None:
    peer = World().connect()
    peer.producer(TOPIC + "-partition-0", schema=STRING)
    assert get_schema(peer).schema.type == proto.Schema.String
    peer.ask_producer(TOPIC + "-partition-1", producer_id=1, schema=INT64)
    peer.expect_error("IncompatibleSchema")


def test_the_schema_goes_with_the_topic() -> None:
    world = World()
    peer = world.connect()
    peer.producer(schema=STRING)
    world.broker.topic_administration.delete_topic(0, TOPIC, force=True)
    world.pump()
    world.start()
    assert get_schema(world.connect()).error_code == proto.TopicNotFound


def test_what_is_not_there() -> None:
    """Rule WIRE-05."""
    peer = World().connect()
    assert get_schema(peer).error_code == proto.TopicNotFound
    peer.producer(schema=STRING)
    assert get_schema(peer, schema_version=b"").error_code == proto.IncompatibleSchema
    assert get_schema(peer, schema_version=b"\0\0\0\0\0\0\0\1").error_code == proto.TopicNotFound
    assert get_schema(peer, topic="a/b").error_code == proto.InvalidTopicName
    assert get_or_create(peer, STRING, "persistent://public/default/none").error_code == proto.TopicNotFound


def test_get_or_create() -> None:
    """Seen: java-dead-letter: bytes register nothing here and have the empty version."""
    peer = World().connect()
    peer.producer()
    answer = get_or_create(peer, BYTES)
    assert (answer.schema_version, answer.HasField("error_code")) == (b"", False)
    assert get_or_create(peer, STRING).schema_version == VERSION_0
    assert get_or_create(peer, INT64).error_code == proto.IncompatibleSchema


def test_the_type_none_is_a_schema_like_others() -> None:
    """The Go client registers it for bytes; each message of that producer names its version."""
    peer = World().connect()
    assert peer.producer(schema=BYTES).schema_version == VERSION_0
    assert get_schema(peer, schema_version=VERSION_0).schema.type == getattr(proto.Schema, "None")
    peer.subscribe(schema=BYTES)
    peer.ask_subscribe(consumer_id=1, subscription="other", schema=STRING)
    assert (
        "exists schema type NONE, new schema type STRING" in peer.expect_error("IncompatibleSchema").message
    )
    peer.ask_producer(producer_id=1, schema=STRING)
    assert (
        "exists schema type NONE, new schema type STRING" in peer.expect_error("IncompatibleSchema").message
    )
    peer.producer(producer_id=1)


def order(*fields: str, kind: Any = "Avro") -> proto.Schema:
    """Return a record with fields of these types, each with a default where the type has a "?"."""
    found = []
    for index, each in enumerate(fields):
        field: dict[str, Any] = {"name": f"f{index}", "type": each.removesuffix("?")}
        if each.endswith("?"):
            field["default"] = 0
        found.append(field)
    definition = {"type": "record", "name": "Order", "fields": found}
    return proto.Schema(name="", type=kind, schema_data=json.dumps(definition).encode())


def version(number: int) -> bytes:
    return number.to_bytes(8, "big")


def test_each_compatible_schema_is_a_version() -> None:
    """Rules SCHEMA-03 and SCHEMA-10."""
    world = World()
    peer = world.connect()
    assert peer.producer(schema=order("int")).schema_version == version(0)
    assert peer.producer(producer_id=1, schema=order("int", "int?")).schema_version == version(1)
    assert peer.producer(producer_id=2, schema=order("int")).schema_version == version(0)
    world.start()
    peer = world.connect()
    assert get_schema(peer).schema_version == version(1)
    for number, schema in ((0, order("int")), (1, order("int", "int?"))):
        answer = get_schema(peer, schema_version=version(number))
        assert answer.schema.schema_data == schema.schema_data
    peer.subscribe(schema=order("int", "int?"))


def test_an_incompatible_schema_says_what_differs_and_which_strategy() -> None:
    """Rule SCHEMA-11."""
    peer = World().connect()
    peer.producer(schema=order("int"))
    peer.ask_producer(producer_id=1, schema=order("int", "string"))
    message = peer.expect_error("IncompatibleSchema").message
    assert "the new schema cannot read the present one (FULL)" in message
    assert "reader field missing default value: f1" in message
    peer.ask_subscribe(schema=order("string"))
    assert "type mismatch" in peer.expect_error("IncompatibleSchema").message
    assert get_or_create(peer, order("long")).error_code == proto.IncompatibleSchema


def test_a_consumer_need_only_read_the_latest_version() -> None:
    peer = World().connect()
    peer.producer(schema=order("int"))
    peer.subscribe(schema=order("long"))


@pytest.mark.parametrize(
    "schema",
    [
        proto.Schema(name="", type="Avro", schema_data=b"{"),
        proto.Schema(name="", type="Avro", schema_data=b'["null", "int"]'),
        proto.Schema(name="", type="Json", schema_data=b'{"type": "record", "name": "A"}'),
        proto.Schema(name="", type="Protobuf", schema_data=b""),
        proto.Schema(name="", type="ProtobufNative", schema_data=b"{}"),
        proto.Schema(name="", type="KeyValue", schema_data=b"\0"),
        proto.Schema(name="", type="Int8", schema_data=b"x"),
        proto.Schema(name="", type="Avro", schema_data=b" " * (MAX_DEFINITION + 1)),
    ],
    ids=lambda schema: proto.Schema.Type.Name(schema.type),
)
def test_a_definition_that_is_none_is_refused(schema: proto.Schema) -> None:
    peer = World().connect()
    peer.ask_producer(schema=schema)
    assert "Invalid schema definition data" in peer.expect_error("IncompatibleSchema").message
    assert get_schema(peer).error_code == proto.TopicNotFound


def test_policies_of_a_namespace_count_for_its_topics() -> None:
    world = World()
    peer = world.connect()
    peer.producer(schema=order("int"))
    admin = world.broker.administration
    admin.set_policy(world.now, "public/default", "schema_compatibility", "ALWAYS_COMPATIBLE")
    assert peer.producer(producer_id=1, schema=STRING).schema_version == version(1)
    admin.set_policy(world.now, "public/default", "schema_auto_update", False)
    peer.ask_producer(producer_id=2, schema=INT64)
    assert "auto updating is disabled" in peer.expect_error("IncompatibleSchema").message
    assert peer.producer(producer_id=2, schema=STRING).schema_version == version(1)
    admin.set_policy(world.now, "public/default", "schema_validation_enforced", True)
    peer.ask_producer(producer_id=3)
    assert "without a schema" in peer.expect_error("IncompatibleSchema").message
    peer.ask_producer(producer_id=3, schema=BYTES)
    assert "auto updating is disabled" in peer.expect_error("IncompatibleSchema").message
    other = "persistent://public/default/without"
    peer.producer(other, producer_id=4)


def test_after_a_deletion_earlier_versions_count_no_more() -> None:
    world = World()
    peer = world.connect()
    peer.producer(schema=order("int"))
    world.broker.schema_administration.delete_schema(world.now, TOPIC)
    world.pump()
    assert get_schema(peer).error_code == proto.TopicNotFound
    assert peer.producer(producer_id=1, schema=INT64).schema_version == version(2)
    assert get_schema(peer, schema_version=version(0)).error_code == proto.TopicNotFound


def test_versions_are_bounded_in_number_and_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    peer = world.connect()
    world.broker.administration.set_policy(
        world.now, "public/default", "schema_compatibility", "ALWAYS_COMPATIBLE"
    )
    monkeypatch.setattr(registry, "MAX_VERSIONS", 2)
    for number in range(2):
        peer.producer(producer_id=number, schema=order(*["int"] * (number + 1)))
    peer.ask_producer(producer_id=2, schema=order("int", "int", "int"))
    assert "2 versions of the schema" in peer.expect_error("IncompatibleSchema").message
    monkeypatch.setattr(registry, "MAX_VERSIONS", 10)
    monkeypatch.setattr(registry, "MAX_VERSIONS_SIZE", 200)
    peer.ask_producer(producer_id=2, schema=order("int", "int", "int"))
    assert "delete the schema with force" in peer.expect_error("IncompatibleSchema").message
