"""Brokers that are too old for questions about definitions, or for some definitions."""

import pytest

from pulsar_sansio.client.schemas.schema_message import schema_message
from pulsar_sansio.model.errors import SchemaUnavailable
from pulsar_sansio.schemas import JsonSchema
from tests.client.broker_script import ConsumerScript, entry_bytes
from tests.client.schemas.schema_script import NEW, payload, version


@pytest.mark.parametrize(("protocol_version", "asked"), [(12, []), (13, ["GET_SCHEMA"])])
def test_a_broker_is_asked_for_a_definition_if_it_knows_the_question(
    protocol_version: int, asked: list[str]
) -> None:
    """WIRE-21"""
    s = ConsumerScript(protocol_version=protocol_version, schema=NEW)
    s.accept()
    s.frames()
    s.deliver(1, entry_bytes(payload(1, 0), schema_version=version(0)))
    assert [name for name, _ in s.frames() if name != "FLOW"] == asked


def test_a_value_is_unavailable_at_once_where_the_broker_cannot_be_asked() -> None:
    s = ConsumerScript(protocol_version=12, schema=NEW)
    s.accept()
    s.frames()
    s.deliver(1, entry_bytes(payload(1, 0), schema_version=version(0)))
    s.message(2, payload(2, None))
    first, second = s.take()
    with pytest.raises(SchemaUnavailable, match=r"version 0 of the schema .*the broker speaks protocol 12"):
        assert first.value
    assert (first.data, second.value.id) == (payload(1, 0), "o2")


@pytest.mark.parametrize(("protocol_version", "sent"), [(12, False), (13, True)])
def test_json_is_registered_with_brokers_that_know_its_definitions(protocol_version: int, sent: bool) -> None:
    """SCHEMA-05"""
    schema = JsonSchema(definition={"type": "record", "name": "Order", "fields": []})
    assert (schema_message(schema, protocol_version) is not None) is sent
