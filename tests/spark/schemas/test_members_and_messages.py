"""Unions and protobuf messages in a real Spark: topics that applications fill, read and written."""

from typing import Any

import pytest
from google.protobuf import timestamp_pb2, type_pb2
from pyspark.errors import PythonException
from pyspark.sql import DataFrame, SparkSession

from pulsar_sansio import OutgoingMessage
from pulsar_sansio.schemas import AvroSchema, ProtobufNativeSchema, RegisteredSchema, Schema
from tests.spark.scenes.brokers import SparkBroker
from tests.spark.scenes.reading_back import values_of
from tests.spark.scenes.sending import send

pytestmark = pytest.mark.spark

EVENT = AvroSchema(
    definition="""{"type": "record", "name": "Event", "fields": [
        {"name": "id", "type": ["long", "string"]},
        {"name": "what", "type": ["null",
            {"type": "record", "name": "Paid", "fields": [{"name": "amount", "type": "double"}]},
            {"type": "record", "name": "Sent", "fields": [{"name": "to", "type": "string"}]}]}]}"""
)
EVENTS = [
    {"id": 1, "what": {"amount": 2.5}},
    {"id": "b", "what": {"to": "you"}},
    {"id": "c", "what": None},
]


def fill(broker: SparkBroker, topic: str, schema: Schema[Any], values: list[Any]) -> None:
    send(
        broker.url,
        topic,
        [OutgoingMessage(schema.encode(each)) for each in values],
        schema=RegisteredSchema(schema.info),
    )


def read(spark: SparkSession, broker: SparkBroker, topic: str) -> DataFrame:
    options = {"service.url": broker.url, "topic": topic, "valueType": "schema"}
    return spark.read.format("pulsar").options(**options).load()


def write(rows: DataFrame, broker: SparkBroker, topic: str) -> None:
    options = {"service.url": broker.url, "topic": topic, "valueSchema": "topic"}
    rows.select("value").write.format("pulsar").options(**options).mode("append").save()


def test_unions_are_read_and_written(spark: SparkSession, broker: SparkBroker, topic: str) -> None:
    """SCHEMA-10"""
    fill(broker, topic, EVENT, EVENTS)
    frame = read(spark, broker, topic)
    assert frame.schema["value"].dataType.simpleString() == (
        "struct<id:struct<member0:bigint,member1:string>,"
        "what:struct<member0:struct<amount:double>,member1:struct<to:string>>>"
    )
    paid = frame.where("value.what.member0.amount > 1").select("value.id.member0").collect()
    assert [row.member0 for row in paid] == [1]
    write(frame, broker, topic)
    found = [EVENT.decode(each) for each in values_of(broker, topic)]
    assert found[:3] == EVENTS
    assert sorted(found[3:], key=EVENTS.index) == EVENTS


def test_a_union_without_a_member_is_refused(
    spark: SparkSession, our_broker: SparkBroker, topic: str
) -> None:
    fill(our_broker, topic, EVENT, EVENTS[:1])
    rows = spark.sql(
        "SELECT named_struct('id', named_struct('member0', CAST(null AS bigint)),"
        " 'what', CAST(null AS struct<member0:struct<amount:double>>)) AS value"
    )
    with pytest.raises(PythonException, match=r"row 0 of the task, .* one of member0, member1, not none"):
        write(rows, our_broker, topic)


def test_protobuf_messages_are_read_and_written(spark: SparkSession, broker: SparkBroker, topic: str) -> None:
    """SCHEMA-10: the definition has the descriptors. Spark's own functions need a jar for that."""
    kind = type_pb2.EnumValue
    messages = [kind(name="a", number=-1), kind(name="b")]
    fill(broker, topic, ProtobufNativeSchema(type_pb2.Field), [type_pb2.Field(name="f")])
    fields = read(spark, broker, topic).select("value.*")
    assert fields.select("kind", "name", "options").collect() == [("TYPE_UNKNOWN", "f", [])]
    fill(broker, f"{topic}-enum", ProtobufNativeSchema(kind), messages)
    frame = read(spark, broker, f"{topic}-enum")
    assert sorted(frame.select("value.name", "value.number").collect()) == [("a", -1), ("b", 0)]
    write(frame, broker, f"{topic}-enum")
    found = [kind.FromString(each) for each in values_of(broker, f"{topic}-enum")]
    assert found[:2] == messages
    assert sorted(found[2:], key=lambda each: each.name) == messages


def test_a_moment_of_protobuf_is_a_timestamp(
    spark: SparkSession, our_broker: SparkBroker, topic: str
) -> None:
    moment = timestamp_pb2.Timestamp(seconds=1767323045, nanos=678_000_000)
    fill(our_broker, topic, ProtobufNativeSchema(timestamp_pb2.Timestamp), [moment])
    frame = read(spark, our_broker, topic)
    assert frame.selectExpr("CAST(value AS string)").collect() == [("2026-01-02 03:04:05.678",)]
    write(frame, our_broker, topic)
    assert [timestamp_pb2.Timestamp.FromString(each) for each in values_of(our_broker, topic)] == [moment] * 2
