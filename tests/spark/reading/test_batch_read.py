"""`spark.read.format("pulsar")`: what is read, how it is divided, what is refused."""

import time
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from pulsar_sansio import OutgoingMessage, decode_message_id
from pulsar_spark.data_source import PulsarPyDataSource
from pulsar_spark.errors import InvalidOption
from pulsar_spark.options.option_table import Use
from pulsar_spark.options.query_options import parse_read
from pulsar_spark.reading.batch_source import arrow_schema, snapshot
from tests.patience import PATIENCE
from tests.spark.scenes.brokers import SparkBroker
from tests.spark.scenes.reading_back import keep
from tests.spark.scenes.sending import Sender, send

pytestmark = pytest.mark.spark


def read(spark: SparkSession, broker: SparkBroker, schema: str | None = None, **options: Any) -> DataFrame:
    reader = spark.read.format("pulsar").option("service.url", broker.url)
    for name, value in options.items():
        reader = reader.option(name, value)
    return (reader if schema is None else reader.schema(schema)).load()


def numbers(frame: DataFrame) -> list[int]:
    return sorted(int(row.value) for row in frame.select("value").collect())


def fill(broker: SparkBroker, topic: str, count: int, each: int = 10, start: int = 0) -> None:
    """`count` numbers in entries of `each`."""
    sender = Sender(broker.url, topic)
    for first in range(start, start + count, each):
        sender.send([b"%d" % number for number in range(first, min(first + each, start + count))])
    sender.close()


def test_every_column(spark: SparkSession, broker: SparkBroker, topic: str) -> None:
    ids = send(
        broker.url,
        topic,
        [
            OutgoingMessage(b"one", key="k", properties={"a": "1"}, event_time=1_700_000_000_123),
            OutgoingMessage(b"two", ordering_key=b"o"),
            OutgoingMessage(None),
        ],
        name="me",
    )
    rows = sorted(
        read(spark, broker, topic=topic, columns="all").collect(), key=lambda row: row["__batchIndex"]
    )
    first, second, third = rows
    assert (first["value"], first["__key"], first["__topic"]) == (b"one", b"k", topic)
    assert (first["__messageProperties"], first["__producerName"]) == ({"a": "1"}, "me")
    assert first["__eventTime"].timestamp() == 1_700_000_000.123
    assert abs(first["__publishTime"].timestamp() - time.time()) < 600
    assert [decode_message_id(row["__messageId"]) for row in rows] == ids
    assert [(row["__ledgerId"], row["__entryId"]) for row in rows] == [each[:2] for each in ids]
    assert [row["__sequenceId"] for row in rows] == [0, 1, 2]
    assert [row["__partition"] for row in rows] == [-1, -1, -1]
    assert (second["__orderingKey"], second["__key"], second["__eventTime"]) == (b"o", None, None)
    assert (third["value"], third["__redeliveryCount"]) == (None, 0)


def test_the_usual_columns_and_text(spark: SparkSession, our_broker: SparkBroker, topic: str) -> None:
    send(our_broker.url, topic, ["grüße".encode()])
    frame = read(spark, our_broker, topic=topic)
    assert frame.columns == [
        "value",
        "__key",
        "__topic",
        "__messageId",
        "__publishTime",
        "__eventTime",
        "__messageProperties",
    ]
    assert dict(frame.dtypes)["value"] == "binary"
    text = read(spark, our_broker, topic=topic, valueType="text")
    assert [row.value for row in text.collect()] == ["grüße"]


def test_a_schema_reads_the_columns_it_names(
    spark: SparkSession, our_broker: SparkBroker, topic: str
) -> None:
    fill(our_broker, topic, 20)
    frame = read(spark, our_broker, "`__entryId` bigint, value string", topic=topic)
    assert sorted(map(tuple, frame.collect())) == sorted((n // 10, str(n)) for n in range(20))
    only = read(spark, our_broker, topic=topic, columns="__entryId")
    assert only.groupBy("__entryId").count().collect() == [(0, 10), (1, 10)]
    options = parse_read({"service.url": our_broker.url, "topic": topic}, Use.BATCH_READ)
    with pytest.raises(InvalidOption, match="there are no columns"):
        arrow_schema(StructType(), options)
    for schema, says in [
        ("value bigint", "column 'value' is binary or string, not bigint"),
        ("nothing binary", "no column 'nothing'"),
    ]:
        with pytest.raises(Exception, match=says):
            read(spark, our_broker, schema, topic=topic).collect()


def fill_partitions(broker: SparkBroker, topic: str, partitions: int, count: int) -> None:
    """A topic of so many partitions, each with `count` numbers of its own."""
    broker.admin.create_partitioned_topic(topic, partitions)
    for index in range(partitions):
        fill(broker, f"{topic}-partition-{index}", count, start=count * index)


def test_partitions_topics_and_patterns(spark: SparkSession, broker: SparkBroker, topic: str) -> None:
    fill_partitions(broker, f"{topic}-p", 3, 10)
    fill(broker, f"{topic}-q", 5, start=30)
    both = read(spark, broker, topics=f"{topic}-p,{topic}-q", columns="value,__partition,__topic").cache()
    assert numbers(both) == list(range(35))
    assert {(row["__partition"], row["__topic"]) for row in both.collect()} == {
        (-1, f"{topic}-q"),
        *((index, f"{topic}-p-partition-{index}") for index in range(3)),
    }
    assert both.rdd.getNumPartitions() == 4
    both.unpersist()
    assert numbers(read(spark, broker, topicsPattern=f"{topic}-[pq]")) == list(range(35))
    assert numbers(read(spark, broker, topic=f"{topic}-p-partition-1")) == list(range(10, 20))


def test_one_frame_is_one_snapshot(spark: SparkSession, our_broker: SparkBroker, topic: str) -> None:
    fill(our_broker, topic, 10)
    frame = read(spark, our_broker, topic=topic)
    taken = snapshot(**{"service.url": our_broker.url, "topic": topic})
    fill(our_broker, topic, 10, start=10)
    assert frame.count() == 10
    assert frame.count() == 10
    assert read(spark, our_broker, topic=topic).count() == 20
    assert read(spark, our_broker, "value binary", topic=topic, **taken).count() == 10


def test_nothing_of_a_snapshot_stays_with_the_broker(our_broker: SparkBroker, topic: str) -> None:
    """Its readers would pile up in a process that takes many."""
    fill(our_broker, topic, 10)
    for _ in range(3):
        snapshot(**{"service.url": our_broker.url, "topic": topic})
    deadline = time.monotonic() + PATIENCE
    while our_broker.admin.stats(topic)["subscriptions"]:
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_where_reading_begins_and_ends(spark: SparkSession, broker: SparkBroker, topic: str) -> None:
    sender = Sender(broker.url, topic)
    base = int(time.time() * 1000) - 3_600_000
    ids = [sender.send([b"%d" % n], publish_time=base + 1000 * n)[0] for n in range(20)]
    sender.close()

    def after(place: int, **options: Any) -> list[int]:
        at = f'{{"{topic}": [{ids[place].ledger_id}, {ids[place].entry_id}]}}'
        return numbers(read(spark, broker, topic=topic, startingOffsets=at, **options))

    assert after(9) == list(range(10, 20))
    assert after(9, endingOffsets=f'{{"{topic}": [{ids[14].ledger_id}, {ids[14].entry_id}]}}') == list(
        range(10, 15)
    )
    assert numbers(read(spark, broker, topic=topic, startingTimestamp=base + 15_000)) == list(range(15, 20))
    assert numbers(read(spark, broker, topic=topic, endingTimestamp=base + 5_000)) == list(range(5))
    assert numbers(read(spark, broker, topic=topic, startingOffsets="latest")) == []
    assert numbers(read(spark, broker, topic=topic, startingTimestamp=base + 10**7)) == []
    message_id = read(spark, broker, topic=topic).where("value = '7'").collect()[0]["__messageId"]
    by_id = f'{{"{topic}": "{bytes(message_id).hex()}"}}'
    assert numbers(read(spark, broker, topic=topic, startingOffsets=by_id)) == list(range(8, 20))


def test_a_backlog_is_cut_for_many_tasks(spark: SparkSession, broker: SparkBroker, topic: str) -> None:
    keep(broker, topic)
    for part in range(3):
        fill(broker, topic, 100, start=100 * part)
        broker.admin.unload(topic)  # the real broker begins a new ledger
    frame = read(spark, broker, topic=topic, minPartitions=6)
    assert frame.rdd.getNumPartitions() == 6
    assert frame.rdd.mapPartitions(lambda rows: [sum(1 for _ in rows)]).collect() == [50] * 6
    assert numbers(frame) == list(range(300))
    assert numbers(read(spark, broker, topic=topic, minPartitions=500)) == list(range(300))


def test_many_topics_are_packed_into_few_tasks(
    spark: SparkSession, our_broker: SparkBroker, topic: str
) -> None:
    fill_partitions(our_broker, topic, 8, 3)
    frame = read(spark, our_broker, topic=topic, maxPartitions=3)
    assert frame.rdd.getNumPartitions() == 3
    assert numbers(frame) == list(range(24))


def test_filters_decide_what_is_read(spark: SparkSession, broker: SparkBroker, topic: str) -> None:
    broker.admin.create_partitioned_topic(topic, 2)
    now = int(time.time() * 1000)
    for index in (0, 1):
        sender = Sender(broker.url, f"{topic}-partition-{index}")
        for number in range(10):
            sender.send([b"%d" % (10 * index + number)], publish_time=now - 3_600_000 + 300_000 * number)
        sender.close()
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    try:
        frame = read(
            spark, broker, topic=topic, pushdown=True, columns="value,__topic,__partition,__publishTime"
        )
        one = frame.where(f"__topic = '{topic}-partition-1'")
        assert numbers(one) == list(range(10, 20))
        assert one.rdd.getNumPartitions() == 1
        assert numbers(frame.where("__partition in (0, 5)")) == list(range(10))
        late = frame.where(f"__publishTime >= timestamp_millis({now - 3_600_000 + 1_500_000})")
        assert numbers(late) == [5, 6, 7, 8, 9, 15, 16, 17, 18, 19]
        early = frame.where(f"__publishTime < timestamp_millis({now - 3_600_000 + 600_000})")
        assert numbers(early) == [0, 1, 10, 11]
        plan = frame.where("__partition = 7")._jdf.queryExecution().toString()
        assert "__partition" in plan
        assert numbers(frame.where("__partition = 7")) == []
    finally:
        spark.conf.set("spark.sql.python.filterPushdown.enabled", "false")
    with pytest.raises(Exception, match=r"spark\.sql\.python\.filterPushdown"):
        read(spark, broker, topic=topic, pushdown=True).where("__topic = 'x'").collect()
    assert numbers(
        read(spark, broker, topic=topic, columns="value,__partition").where("__partition = 1")
    ) == list(range(10, 20))


def test_errors_begin_with_what_is_wrong(spark: SparkSession, our_broker: SparkBroker, topic: str) -> None:
    for options, says in [
        ({"topic": topic}, f"TopicNotFound: topic {topic} does not exist"),
        (
            {"topic": topic, "maxPartition": "3"},
            r"UnknownOption: unknown option maxpartition \(did you mean maxPart",
        ),
        ({"topic": topic, "topics": "b"}, "ConflictingOptions: options topic and topics exclude"),
        (
            {"topic": topic, "batchRows": "x"},
            "InvalidOption: option batchRows: 'x' is not allowed; allowed: a whole",
        ),
        ({}, "MissingOption: one of the options topic, topics and topicsPattern"),
        ({"topic": topic, "columns": "walue"}, "InvalidOption: option columns: no column is called 'walue'"),
        ({"topic": topic, "authParams": "s3cr3t"}, "OptionNotImplemented: option authparams"),
        ({"topic": topic, "startingOffsets": "{"}, "OffsetParseError: option startingOffsets: not JSON"),
    ]:
        with pytest.raises(Exception, match=says) as caught:
            read(spark, our_broker, **options).collect()
        assert "s3cr3t" not in str(caught.value)


def test_a_broker_that_is_not_there(spark: SparkSession, topic: str) -> None:
    reader = spark.read.format("pulsar").option("service.url", "pulsar://127.0.0.1:9").option("topic", topic)
    with pytest.raises(Exception, match=r"LinkTimeout: .*127.0.0.1:9"):
        reader.option("operationTimeoutMs", 500).load().collect()


def test_the_format_is_found_by_sql(spark: SparkSession, our_broker: SparkBroker, topic: str) -> None:
    fill(our_broker, topic, 10)
    spark.sql(
        f"CREATE OR REPLACE TEMPORARY VIEW numbers USING pulsar "
        f"OPTIONS ('service.url' '{our_broker.url}', topic '{topic}', valueType 'text')"
    )
    try:
        assert spark.sql("SELECT sum(int(value)) AS total FROM numbers").collect()[0].total == 45
    finally:
        spark.catalog.dropTempView("numbers")
    spark.dataSource.register(PulsarPyDataSource)  # for where a jar has taken the name
    options = {"service.url": our_broker.url, "topic": topic}
    assert spark.read.format("pulsar_py").options(**options).load().count() == 10


def test_options_do_not_stand_in_plans(spark: SparkSession, our_broker: SparkBroker, topic: str) -> None:
    fill(our_broker, topic, 1)
    frame = read(spark, our_broker, topic=topic, readerNamePrefix="s3cr3t")
    execution = frame._jdf.queryExecution()
    assert "s3cr3t" not in execution.toString()
    assert "s3cr3t" not in execution.optimizedPlan().toJSON()


@pytest.mark.real
def test_the_last_message_of_every_key(spark: SparkSession, real_broker: SparkBroker, topic: str) -> None:
    real_broker.admin.create_topic(topic)
    sender = Sender(real_broker.url, topic)
    for number in range(40):
        sender.send([OutgoingMessage(b"%d" % number, key=f"k{number % 4}")])
    path = f"/admin/v2/{topic.replace('://', '/')}/compaction"
    real_broker.admin.request("PUT", path)
    while real_broker.admin.request("GET", path)["status"] in ("RUNNING", "NOT_RUN"):
        time.sleep(0.1)
    sender.send([OutgoingMessage(b"40", key="k0")])
    sender.close()
    assert numbers(read(spark, real_broker, topic=topic)) == list(range(41))
    compacted = numbers(read(spark, real_broker, topic=topic, readCompacted=True))
    assert compacted == [36, 37, 38, 39, 40]
