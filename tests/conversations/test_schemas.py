"""The scenarios with schemas: every step of the recorded programs, by our client, against our broker."""

from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from typing import Any

import pytest

from pulsar_sansio.model.config import OutgoingMessage
from pulsar_sansio.model.errors import IncompatibleSchema
from pulsar_sansio.model.schema import Schema, SchemaInfo
from pulsar_sansio.schemas import (
    BOOLEAN,
    DOUBLE,
    INSTANT,
    INT32,
    INT64,
    LOCAL_DATE,
    STRING,
    AutoConsume,
    AvroSchema,
    Int32,
    JsonSchema,
    KeyValue,
    KeyValueEncoding,
    KeyValueSchema,
)
from tests.conversations.scenarios import CONSUMER, Scenario, collector, play
from tests.conversations.stage import Stage

SCENARIOS: dict[str, Scenario] = {}
scenario = collector(SCENARIOS)


@dataclass
class Order:
    amount: Int32
    id: str | None = None


@dataclass
class InOrderOfTheClass:
    """The Java client sorts the fields of the definition, and not those of its JSON."""

    id: str | None
    amount: Int32


class AsRecorded(Schema[Any]):
    """A schema of our own with the definition and the properties that the Java client registers."""

    def __init__(self, schema: Schema[Any], definition: SchemaInfo, properties: dict[str, str]) -> None:
        self._schema = schema
        self._info = replace(definition, properties=tuple(properties.items()))

    @property
    def info(self) -> SchemaInfo:
        return self._info

    def encode(self, value: Any) -> bytes:
        return self._schema.encode(value)

    def decode(self, data: bytes) -> Any:
        return self._schema.decode(data)


OF_JAVA = {"__jsr310ConversionEnabled": "false", "__alwaysAllowNull": "true"}
JSON = AsRecorded(JsonSchema(InOrderOfTheClass), JsonSchema(Order, namespace="Scenarios").info, OF_JAVA)
_AVRO = AvroSchema(Order, namespace="Scenarios")
AVRO = AsRecorded(_AVRO, _AVRO.info, OF_JAVA)
DEFAULTS = {**CONSUMER, "receiver_queue_size": 1000}


def send(stage: Stage, topic: str, schema: Schema[Any], value: object) -> None:
    producer = stage.producer(topic, schema=schema)
    producer.send_value(value)
    producer.close()


@scenario
def schema_json(stage: Stage, topic: str) -> None:
    producer = stage.producer(topic, schema=JSON)
    consumer = stage.consumer(topic, schema=JSON, **DEFAULTS)
    producer.send_value(InOrderOfTheClass("o1", 7))
    message = consumer.receive()
    assert message.value == InOrderOfTheClass("o1", 7)
    consumer.acknowledge(message)
    consumer.close()
    producer.close()


@scenario
def schema_avro(stage: Stage, topic: str) -> None:
    producer = stage.producer(topic, schema=AVRO)
    producer.send_value(Order(7, "o1"))
    consumer = stage.consumer(topic, schema=AutoConsume(), **DEFAULTS)
    message = consumer.receive()
    assert message.value == {"amount": 7, "id": "o1"}
    consumer.acknowledge(message)
    consumer.close()
    producer.close()


@scenario
def schema_keyvalue(stage: Stage, topic: str) -> None:
    separated = KeyValueSchema(STRING, INT32)
    producer = stage.producer(topic, schema=separated)
    consumer = stage.consumer(topic, schema=separated)
    producer.send_value(KeyValue("a", 1))
    message = consumer.receive()
    assert message.value == KeyValue("a", 1)
    consumer.acknowledge(message)
    send(stage, f"{topic}-inline", KeyValueSchema(STRING, INT32, KeyValueEncoding.INLINE), KeyValue("b", 2))
    consumer.close()
    producer.close()


@scenario
def schema_primitives(stage: Stage, topic: str) -> None:
    send(stage, f"{topic}-i64", INT64, -5)
    send(stage, f"{topic}-f64", DOUBLE, 2.5)
    send(stage, f"{topic}-str", STRING, "héllo")
    send(stage, f"{topic}-bool", BOOLEAN, True)
    instant = stage.producer(f"{topic}-instant", schema=INSTANT)
    # Python counts microseconds, so the recorded nanoseconds are no value of its own.
    payload = INSTANT.encode(datetime.fromtimestamp(1_700_000_000, UTC))[:8] + (123456789).to_bytes(4, "big")
    instant.send(OutgoingMessage(payload))
    instant.close()
    send(stage, f"{topic}-date", LOCAL_DATE, date(2024, 2, 29))


@scenario
def schema_incompatible(stage: Stage, topic: str) -> None:
    producer = stage.producer(topic, schema=JSON)
    with pytest.raises(IncompatibleSchema):
        stage.producer(topic, schema=INT64)
    with pytest.raises(IncompatibleSchema):
        stage.consumer(topic, subscription="x", schema=INT64)
    producer.close()


@pytest.mark.parametrize("name", SCENARIOS)
def test_our_client_and_our_broker_repeat_the_recorded_conversation(name: str) -> None:
    """WIRE-05, CONS-13, CLIENT-16: a consumer that detects definitions asks for the latest one first."""
    comparison = play(name, SCENARIOS[name])
    assert not comparison.differences, "\n".join(comparison.differences)
