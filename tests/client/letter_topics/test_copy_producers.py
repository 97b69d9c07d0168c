"""`CopyProducers`: dead letters keep the definition of their originals."""

from typing import Any

import pytest

from pulsar_sansio.model.config import DeadLetterPolicy, SubscriptionType
from pulsar_sansio.model.schema import Schema
from pulsar_sansio.schemas import JsonSchema
from pulsar_sansio.wire import proto
from tests.client.schemas.schema_script import NEW, OLD, Old, SchemaScript

JSON = JsonSchema(Old)


def script(schema: Schema[Any]) -> SchemaScript:
    return SchemaScript(schema, dead_letter=DeadLetterPolicy(1), subscription_type=SubscriptionType.SHARED)


def opened(s: SchemaScript) -> list[proto.Schema | None]:
    """The schema of each PRODUCER since the last call."""
    producers = [command for name, command in s.frames() if name == "PRODUCER"]
    return [command.schema if command.HasField("schema") else None for command in producers]


def test_the_definition_is_that_of_the_original_where_it_is_known() -> None:
    s = script(NEW)
    s.order(1, 0)
    s.asked()
    s.answer(0)
    s.values()
    s.order(1, 0, redelivery_count=2)
    s.order(2, 0, redelivery_count=2)
    (schema,) = opened(s)
    assert schema is not None
    assert (schema.type, schema.schema_data) == (proto.Schema.Avro, OLD.info.data)


@pytest.mark.parametrize("number", [None, 1], ids=["no version", "unknown version"])
def test_without_a_known_definition_the_copy_has_none(number: int | None) -> None:
    s = script(NEW)
    s.order(1, number, redelivery_count=2)
    assert opened(s) == [None]


def test_a_schema_that_needs_no_definition_is_registered_itself() -> None:
    s = script(JSON)
    s.order(1, 0, redelivery_count=2)
    (schema,) = opened(s)
    assert schema is not None
    assert (schema.type, schema.schema_data) == (proto.Schema.Json, JSON.info.data)


def test_originals_of_two_definitions_have_two_producers() -> None:
    s = script(JSON)
    s.order(1, 0, redelivery_count=2)
    s.order(2, None, redelivery_count=2)
    first, second = opened(s)
    assert first is not None
    assert second is None
