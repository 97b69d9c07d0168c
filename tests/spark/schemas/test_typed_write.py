"""`valueSchema`: structs, primitives and pairs written with a schema, by a real Spark."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import trio
from pyspark.errors import AnalysisException, PythonException
from pyspark.sql import DataFrame, SparkSession

from pulsar_sansio import EARLIEST, HashingScheme, hash_key
from pulsar_sansio.schemas import AutoConsume, AvroSchema
from pulsar_trio import open_client
from tests.spark.scenes.brokers import SparkBroker
from tests.spark.scenes.reading_back import messages_of
from tests.spark.schemas.test_typed_read import read, sent, values

pytestmark = pytest.mark.spark

ROWS = """
SELECT struct(
    id, cast(id AS int) AS small, id / 2 AS half, concat('n', id) AS name, id % 2 = 0 AS even,
    cast(id AS decimal(10, 3)) AS price, date_add(DATE'2026-01-01', cast(id AS int)) AS day,
    TIMESTAMP'2026-01-02 03:04:05.678901' AS at, TIMESTAMP_NTZ'1969-12-31 23:59:59.999999' AS clock,
    binary(concat('b', id)) AS data, array(id, null) AS list, map('k', struct(id AS inner)) AS map,
    if(id = 1, null, struct(id AS deep, array(struct('x' AS text)) AS more)) AS nested
) AS value FROM range(3)
"""


@dataclass
class Order:
    id: int
    name: str = "none"


def write(rows: DataFrame, broker: SparkBroker, topic: str, value_schema: str, **options: str) -> None:
    writing = rows.write.format("pulsar").option("service.url", broker.url).option("topic", topic)
    writing.option("valueSchema", value_schema).options(**options).mode("append").save()


@pytest.mark.parametrize("kind", ["avro", "json"])
def test_a_struct_is_written_and_read_again(
    spark: SparkSession, broker: SparkBroker, topic: str, kind: str
) -> None:
    rows = spark.sql(ROWS)
    write(rows, broker, topic, kind)
    write(
        spark.sql(f"SELECT cast(null AS {rows.schema['value'].dataType.simpleString()}) AS value"),
        broker,
        topic,
        kind,
    )
    frame = read(spark, broker, topic=topic)
    assert dict(frame.dtypes) | dict(rows.dtypes) == dict(frame.dtypes)
    expected = [row.value.asDict(recursive=True) for row in rows.collect()]
    found = values(frame)
    assert sorted(found[:-1], key=lambda each: each["id"]) == expected
    assert found[-1] is None


def test_other_clients_read_it(spark: SparkSession, broker: SparkBroker, topic: str) -> None:
    """Rule SCHEMA-10. Nullability, which Spark infers, and a new column make no difference to the topic."""
    write(spark.sql("SELECT struct(1L AS id) AS value"), broker, topic, "avro")
    more = "SELECT struct(if(id = 2, null, id) AS id, 'a' AS name) AS value FROM range(3) WHERE id > 0"
    write(spark.sql(more), broker, topic, "avro")
    found = typed_messages_of(broker, topic)
    assert sorted(found, key=str) == [{"id": 1, "name": "a"}, {"id": 1}, {"id": None, "name": "a"}]
    write(spark.sql("SELECT struct(2L AS id, 'b' AS name) AS value"), broker, f"{topic}-j", "json")
    assert [each.data for each in messages_of(broker, f"{topic}-j")] == [b'{"id":2,"name":"b"}']


def typed_messages_of(broker: SparkBroker, topic: str) -> list[Any]:
    """Read the topic's values with a client that is not Spark's."""

    async def read_all() -> list[Any]:
        async with open_client(broker.url) as client:
            async with client.create_reader(topic, start=EARLIEST, schema=AutoConsume()) as reader:
                return [message.value async for message in reader.until_latest()]

    return trio.run(read_all)


@pytest.mark.parametrize(
    ("column", "payload"),
    [
        ("'grüße'", "grüße".encode()),
        ("true", b"\x01"),
        ("cast(-2 AS tinyint)", b"\xfe"),
        ("258", b"\0\0\1\2"),
        ("1L", bytes(7) + b"\1"),
        ("1.5D", b"\x3f\xf8" + bytes(6)),
        ("TIMESTAMP'1969-12-31 23:59:59.5'", b"\xff" * 8 + (500_000_000).to_bytes(4, "big")),
        ("DATE'1970-01-02'", bytes(7) + b"\1"),
        ("TIMESTAMP_NTZ'1970-01-02 00:00:00'", bytes(7) + b"\1" + bytes(8)),
    ],
)
def test_primitives(
    spark: SparkSession, our_broker: SparkBroker, topic: str, column: str, payload: bytes
) -> None:
    """Rule SCHEMA-08."""
    rows = spark.sql(f"SELECT {column} AS value")
    write(rows, our_broker, topic, "primitive")
    assert [message.data for message in messages_of(our_broker, topic)] == [payload]
    frame = read(spark, our_broker, topic=topic)
    assert frame.select("value").collect() == rows.collect()


@pytest.mark.parametrize("encoding", ["inline", "separated"])
@pytest.mark.parametrize("kind", ["avro", "json"])
def test_pairs(spark: SparkSession, broker: SparkBroker, topic: str, encoding: str, kind: str) -> None:
    """Rule SCHEMA-09. A separate key is written as Base64, by which it is routed."""
    broker.admin.create_partitioned_topic(topic, 3)
    rows = spark.sql(
        "SELECT struct(concat('k', id) AS key, if(id = 1, null, struct(id)) AS value) AS value FROM range(9)"
    )
    write(rows, broker, topic, kind, keyValue=encoding)
    frame = read(spark, broker, topic=topic)
    assert frame.schema["value"].dataType.simpleString() == "struct<key:string,value:struct<id:bigint>>"
    expected = [row.value.asDict(recursive=True) for row in rows.collect()]
    assert sorted(values(frame), key=lambda each: each["key"]) == expected
    for message in messages_of(broker, topic):
        if encoding == "separated":
            assert message.message_id.partition == hash_key(HashingScheme.JAVA_STRING, message.key or "") % 3
            assert message.header.partition_key_b64_encoded
        else:
            assert message.key is None


def test_exactly_once_orders_by_what_is_written(
    spark: SparkSession, broker: SparkBroker, deduplicated_topic: str
) -> None:
    options = {"deliveryGuarantee": "exactly-once", "writeId": "w"}
    for turn in (1, -1):
        rows = spark.sql(f"SELECT struct(id) AS value FROM range(40) ORDER BY {turn} * id").coalesce(1)
        write(rows, broker, deduplicated_topic, "avro", **options)
    assert sorted(each["id"] for each in values(read(spark, broker, topic=deduplicated_topic))) == list(
        range(40)
    )


def test_a_stream(spark: SparkSession, broker: SparkBroker, topic: str, tmp_path: Path) -> None:
    rows = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 10).load()
    writer = rows.selectExpr("struct(value AS id) AS value").writeStream.format("pulsar")
    writer = writer.options(**{"service.url": broker.url, "topic": topic, "valueSchema": "json"})
    query = writer.option("checkpointLocation", str(tmp_path)).trigger(availableNow=True).start()
    query.awaitTermination()
    assert sorted(each["id"] for each in values(read(spark, broker, topic=topic))) == list(range(10))


# --- the topic's own schema ------------------------------------------------------------------------------


def test_the_schema_of_the_topic(spark: SparkSession, broker: SparkBroker, topic: str) -> None:
    """Fields by name, narrower numbers, and defaults of fields that the rows lack."""
    sent(broker, topic, AvroSchema(Order), Order(1, "a"))
    write(spark.sql("SELECT struct(cast(2 AS int) AS id) AS value"), broker, topic, "topic")
    assert values(read(spark, broker, topic=topic)) == [{"id": 1, "name": "a"}, {"id": 2, "name": "none"}]
    assert {message.schema_version for message in messages_of(broker, topic)} == {bytes(8)}


@pytest.mark.parametrize(
    ("rows", "options", "says"),
    [
        ("struct('a' AS id)", {}, "value.id: string where bigint is wanted"),
        ("struct(1L AS id, 2 AS more)", {}, "value.more: the topic's schema has no such field"),
        ("struct('a' AS name)", {}, "value.id: the field is missing, and has no default"),
        ("1L", {}, "value: bigint where struct<`id`:bigint,`name`:string> is wanted"),
        ("1L", {"valueSchema": "avro"}, "valueSchema=avro writes a struct, not bigint"),
        ("array(1L)", {"valueSchema": "primitive"}, "array<bigint> is the type of no primitive schema"),
        ("struct(1L AS `a-b`)", {"valueSchema": "json"}, "'a-b' is no name of a field"),
        (
            "struct(1L AS id)",
            {"valueSchema": "avro", "keyValue": "inline"},
            "a pair is a struct of key and value",
        ),
        ("map(1, 2)", {"valueSchema": "none"}, "has the type map<int,int>; allowed: binary or string"),
        (
            "struct('k' AS key, 1L AS value)",
            {"valueSchema": "json", "keyValue": "separated"},
            "column __key: keyValue=separated writes the key of value there",
        ),
    ],
)
def test_columns_that_cannot_be_written(
    spark: SparkSession, our_broker: SparkBroker, topic: str, rows: str, options: dict[str, str], says: str
) -> None:
    """The driver refuses them; nothing is written."""
    sent(our_broker, topic, AvroSchema(Order), Order(1))
    frame = spark.sql(f"SELECT {rows} AS value, 'k' AS __key")
    with pytest.raises(AnalysisException, match=says):
        write(frame, our_broker, topic, **{"value_schema": "topic", **_named(options)})
    assert len(messages_of(our_broker, topic)) == 1


def _named(options: dict[str, str]) -> dict[str, Any]:
    return {"value_schema" if name == "valueSchema" else name: given for name, given in options.items()}


def test_a_row_that_cannot_be_written(spark: SparkSession, our_broker: SparkBroker, topic: str) -> None:
    sent(our_broker, topic, AvroSchema(Order), Order(1))
    rows = spark.sql("SELECT struct(if(id = 2, null, id) AS id) AS value FROM range(0, 4, 1, 1)")
    with pytest.raises(
        PythonException, match=r"row 2 of the task, column value: schema AVRO: id: a whole number"
    ):
        write(rows, our_broker, topic, "topic")


def test_a_topic_without_a_schema(spark: SparkSession, our_broker: SparkBroker, topic: str) -> None:
    with pytest.raises(AnalysisException, match=f"topic {topic} has no schema"):
        write(spark.sql("SELECT struct(1L AS id) AS value"), our_broker, topic, "topic")


@pytest.mark.parametrize("kind", ["avro", "json", "primitive"])
def test_a_schema_that_the_broker_refuses(
    spark: SparkSession, broker: SparkBroker, topic: str, kind: str
) -> None:
    """Rule SCHEMA-11. No row is written."""
    sent(broker, topic, AvroSchema(Order), Order(1))
    column = "1L" if kind == "primitive" else "struct('a' AS id)"
    with pytest.raises(
        PythonException, match=rf"SchemaRefused: {topic}: the broker refuses the schema of the rows"
    ):
        write(spark.sql(f"SELECT {column} AS value"), broker, topic, kind)
    assert len(messages_of(broker, topic)) == 1
