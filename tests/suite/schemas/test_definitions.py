"""The definitions of a topic, read and registered without a producer or consumer."""

import pytest

from pulsar_sansio.schemas import BYTES, INT32, STRING, AvroSchema, SchemaType
from pulsar_trio import Client, IncompatibleSchema, InvalidConfiguration
from tests.suite.brokers import BrokerUnderTest

OLD = AvroSchema(definition={"type": "record", "name": "Order", "fields": [{"name": "id", "type": "string"}]})
NEW = AvroSchema(
    definition={
        "type": "record",
        "name": "Order",
        "fields": [
            {"name": "id", "type": "string"},
            {"name": "note", "type": ["null", "string"], "default": None},
        ],
    }
)


@pytest.mark.parametrize("partitions", [0, 2])
async def test_definitions_are_registered_and_read(
    broker: BrokerUnderTest, client: Client, topic: str, partitions: int
) -> None:
    """SCHEMA-07: a topic that does not exist is created; an equal definition makes no new version."""
    if partitions:
        await broker.create_partitioned_topic(topic, partitions)
    assert await client.schema(topic) is None
    assert [await client.register_schema(topic, schema) for schema in (OLD, NEW, OLD)] == [0, 1, 0]
    for version, expected in ((None, NEW), (0, OLD), (1, NEW)):
        found = await client.schema(topic, version)
        assert found is not None
        assert (found.type, found.data) == (SchemaType.AVRO, expected.info.data)
    assert await client.schema(topic, 2) is None


async def test_versions_go_on_after_a_deletion(broker: BrokerUnderTest, client: Client, topic: str) -> None:
    """SCHEMA-07: the versions before a deletion are gone."""
    assert await client.schema_version(topic) is None
    for schema in (OLD, NEW):
        await client.register_schema(topic, schema)
    assert await client.schema_version(topic) == 1
    path = f"/admin/v2/schemas/public/default/{topic.rpartition('/')[2]}/schema"
    assert await broker.request("DELETE", path) == (200, {"version": 2})
    assert await client.schema(topic) is None
    assert await client.schema_version(topic) is None
    assert await client.register_schema(topic, INT32) == 3
    assert await client.schema_version(topic) == 3
    found = [await client.schema(topic, version) for version in range(4)]
    assert [each and each.type for each in found] == [None, None, None, SchemaType.INT32]


async def test_a_definition_that_does_not_fit_is_refused(client: Client, topic: str) -> None:
    """SCHEMA-11"""
    await client.register_schema(topic, STRING)
    with pytest.raises(IncompatibleSchema):
        await client.register_schema(topic, INT32)
    found = await client.schema(topic)
    assert found is not None
    assert found.type is SchemaType.STRING


async def test_what_is_no_version_and_no_definition(client: Client, topic: str) -> None:
    with pytest.raises(InvalidConfiguration, match="version: a whole number of at least 0, not -1"):
        await client.schema(topic, -1)
    with pytest.raises(InvalidConfiguration, match="one with a definition to register"):
        await client.register_schema(topic, BYTES)
