"""Schemas: bytes and primitive types; all others are refused (SCHEMA-08)."""

from typing import Any

import pytest

from pulsar_sansio.wire import proto
from tests.broker.peer import TOPIC, Peer, SubType, Type, World

STRING = proto.Schema(name="String", type=proto.Schema.String, schema_data=b"")
INT64 = proto.Schema(name="INT64", type=proto.Schema.Int64, schema_data=b"")
BYTES = proto.Schema(name="Bytes", type="None", schema_data=b"")
AVRO = proto.Schema(name="", type=proto.Schema.Avro, schema_data=b'"string"')
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
        "String",
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
    """Seen: java-dead-letter: bytes register nothing and have the empty version."""
    peer = World().connect()
    peer.producer()
    answer = get_or_create(peer, BYTES)
    assert (answer.schema_version, answer.HasField("error_code")) == (b"", False)
    assert get_or_create(peer, STRING).schema_version == VERSION_0
    assert get_or_create(peer, INT64).error_code == proto.IncompatibleSchema


def test_struct_schemas_are_refused_by_name() -> None:
    peer = World().connect()
    peer.ask_producer(schema=AVRO)
    assert "Avro are not supported by this broker" in peer.expect_error("IncompatibleSchema").message
    peer.ask_subscribe(schema=AVRO)
    peer.expect_error("IncompatibleSchema")


@pytest.mark.parametrize(("data", "fine"), [(b"", True), (b"null", True), (b"x", False)])
def test_primitives_have_no_definition(data: bytes, fine: bool) -> None:
    """Old Python clients write "null"."""
    peer = World().connect()
    peer.ask_producer(schema=proto.Schema(name="String", type=proto.Schema.String, schema_data=data))
    if fine:
        peer.expect(Type.PRODUCER_SUCCESS)
    else:
        peer.expect_error("IncompatibleSchema")
