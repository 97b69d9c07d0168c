"""DataFrames and streams written to a topic by a real Spark, with tasks that end in the middle."""

import time
from collections import Counter
from pathlib import Path

import pytest
from pyspark.errors import AnalysisException, PythonException
from pyspark.sql import DataFrame, SparkSession

from pulsar_spark.writing.numbering import key_partition
from tests.real_pulsar.admin import AdminError
from tests.spark.scenes.brokers import DEDUPLICATION, RealBroker, SparkBroker
from tests.spark.scenes.faulty import FaultySource
from tests.spark.scenes.reading_back import keep, messages_of, values_of
from tests.spark.scenes.writing import (
    all_rows,
    ends,
    expected,
    files,
    numbers,
    plan,
    reading,
    run_driver,
    run_stream,
    write,
    writing,
)

pytestmark = pytest.mark.spark

EXACTLY = {"deliveryGuarantee": "exactly-once"}


# --- batch writes ------------------------------------------------------------------------------------


def test_a_dataframe_is_written(spark: SparkSession, broker: SparkBroker, topic: str) -> None:
    write(numbers(spark, 2500), broker, topic=topic)
    assert sorted(values_of(broker, topic)) == expected(2500)


def test_keys_properties_and_times_arrive(spark: SparkSession, our_broker: SparkBroker, topic: str) -> None:
    rows = spark.sql(
        "SELECT 'v' AS value, 'k' AS __key, timestamp '2026-01-02 03:04:05.678' AS __eventTime,"
        " map('a', 'b') AS __messageProperties, binary('o') AS __orderingKey"
    )
    write(rows, our_broker, topic=topic)
    (message,) = messages_of(our_broker, topic)
    assert (message.data, message.key, message.properties) == (b"v", "k", {"a": "b"})
    assert (message.event_time, message.ordering_key) == (1767323045678, b"o")


def test_rows_are_routed_by_key_to_the_partitions(
    spark: SparkSession, broker: SparkBroker, topic: str
) -> None:
    broker.admin.create_partitioned_topic(topic, 3)
    rows = numbers(spark, 300).selectExpr("value", "concat('key-', length(value), right(value, 1)) AS __key")
    write(rows, broker, topic=topic)
    messages = messages_of(broker, topic)
    assert len(messages) == 300
    assert all(each.message_id.partition == key_partition(each.key or "", 3) for each in messages)


def test_a_write_id_makes_a_write_that_is_done_again_change_nothing(
    spark: SparkSession, broker: SparkBroker, deduplicated_topic: str
) -> None:
    for _ in range(2):
        write(numbers(spark, 3000), broker, topic=deduplicated_topic, writeId="backfill", **EXACTLY)
    assert sorted(values_of(broker, deduplicated_topic)) == expected(3000)


def test_another_write_id_is_another_write(
    spark: SparkSession, our_broker: SparkBroker, deduplicated_topic: str
) -> None:
    for name in ("one", "two"):
        write(numbers(spark, 10), our_broker, topic=deduplicated_topic, writeId=name, **EXACTLY)
    assert len(values_of(our_broker, deduplicated_topic)) == 20


def test_rows_say_their_topics(spark: SparkSession, our_broker: SparkBroker) -> None:
    base = f"persistent://{DEDUPLICATION}/said-{time.time_ns()}"
    rows = numbers(spark, 100).selectExpr("value", f"concat('{base}-', right(value, 1)) AS __topic")
    for _ in range(2):
        write(rows, our_broker, writeId="w", **EXACTLY)
    for digit in range(10):
        found = values_of(our_broker, f"{base}-{digit}")
        assert sorted(found) == [each for each in expected(100) if each.endswith(b"%d" % digit)]


def test_writes_within_foreach_batch_have_the_batch_s_number(
    spark: SparkSession, our_broker: SparkBroker, deduplicated_topic: str, tmp_path: Path
) -> None:
    """The same rows are written once, whatever ends in between; another `writeId` writes them again."""
    spark.dataSource.register(FaultySource)
    files(tmp_path / "in", batches=2, rows=20)
    places = {"0-0-3": "kill", "0-1-6": "raise", "1-1-5": "kill"}
    faults = plan(tmp_path, places)

    def several(batch: DataFrame, _: int) -> None:
        options = {"topic": deduplicated_topic, "batchMaxMessages": "4", "faults": faults, **EXACTLY}
        for name in ("a", "a", "b"):
            write(batch, our_broker, "pulsar-faulty", writeId=name, **options)

    run_stream(reading(spark, tmp_path).writeStream.foreachBatch(several), tmp_path)
    assert ends(tmp_path) == set(places)
    assert sorted(values_of(our_broker, deduplicated_topic)) == sorted(all_rows(2, 20) * 2)


# --- what is refused ---------------------------------------------------------------------------------


def test_deduplication_that_is_off_is_an_error_of_one_line(
    spark: SparkSession, broker: SparkBroker, topic: str
) -> None:
    with pytest.raises(PythonException, match=r"DeduplicationOff: persistent://.* --enable"):
        write(numbers(spark, 5000, 1), broker, topic=topic, writeId="w", **EXACTLY)
    left = Counter(values_of(broker, topic))
    assert list(left) == [b"row-0"]  # one row of each attempt, no more


@pytest.mark.parametrize(
    ("columns", "options", "text"),
    [
        ("id AS value", {"topic": "t"}, "column value has the type bigint; allowed: binary or string"),
        ("'v' AS value, id", {"topic": "t"}, "column id cannot be written"),
        ("'v' AS value", {}, "option topic is required"),
        ("'v' AS value", {"topic": "t", "topik": "t"}, "unknown option topik"),
        ("'v' AS value", {"topic": "t", **EXACTLY}, "option writeId is required"),
        ("'v' AS value", {"topic": "non-persistent://public/default/t"}, "UnsupportedTopic"),
    ],
)
def test_what_cannot_be_written_is_refused_before_anything_is(
    spark: SparkSession, our_broker: SparkBroker, columns: str, options: dict[str, str], text: str
) -> None:
    with pytest.raises(AnalysisException, match=text):
        write(spark.range(3).selectExpr(*columns.split(", ")), our_broker, **options)


def test_overwriting_is_refused(spark: SparkSession, our_broker: SparkBroker, topic: str) -> None:
    writer = numbers(spark, 3).write.format("pulsar").option("service.url", our_broker.url)
    with pytest.raises(AnalysisException, match=r"mode overwrite .* is not possible"):
        writer.option("topic", topic).mode("overwrite").save()


def test_a_row_without_a_topic_is_an_error_that_names_it(
    spark: SparkSession, our_broker: SparkBroker
) -> None:
    rows = spark.sql("SELECT 'v' AS value, CAST(NULL AS string) AS __topic")
    with pytest.raises(PythonException, match="InvalidRows: row 0 of the task has no topic"):
        write(rows, our_broker)


# --- streams -----------------------------------------------------------------------------------------


def test_a_stream_is_written(spark: SparkSession, broker: SparkBroker, topic: str, tmp_path: Path) -> None:
    files(tmp_path / "in", batches=3, rows=50)
    run_stream(writing(reading(spark, tmp_path), broker, topic=topic), tmp_path)
    assert sorted(values_of(broker, topic)) == all_rows(3, 50)


KILLS = {
    f"{batch}-{part}-{step}": "kill" if (batch + part + step) % 2 else "raise"
    for batch in range(5)
    for part in range(2)
    for step in (batch, 5 + batch - part, 13 - batch)
}
"""Thirty places: three in each task of five batches, from before the producer is opened to after it is
closed; half of them end the worker, half the task alone."""


@pytest.mark.parametrize(
    ("where", "batches"), [("ours", 5), pytest.param("real", 2, marks=pytest.mark.real)], indirect=["where"]
)
def test_tasks_that_end_anywhere_leave_every_row_once(
    spark: SparkSession, where: SparkBroker, batches: int, deduplicated_topic: str, tmp_path: Path
) -> None:
    spark.dataSource.register(FaultySource)
    files(tmp_path / "in", batches=batches, rows=40)
    places = {place: how for place, how in KILLS.items() if int(place[0]) < batches}
    options = {"topic": deduplicated_topic, "batchMaxMessages": "4", "faults": plan(tmp_path, places)}
    run_stream(writing(reading(spark, tmp_path), where, "pulsar-faulty", **EXACTLY, **options), tmp_path)
    assert ends(tmp_path) == set(places)
    assert sorted(values_of(where, deduplicated_topic)) == all_rows(batches, 40)


@pytest.fixture
def where(request: pytest.FixtureRequest) -> SparkBroker:
    """The broker that a parameter names."""
    found: SparkBroker = request.getfixturevalue(f"{'our' if request.param == 'ours' else 'real'}_broker")
    return found


def test_at_least_once_loses_nothing_when_tasks_end(
    spark: SparkSession, our_broker: SparkBroker, topic: str, tmp_path: Path
) -> None:
    spark.dataSource.register(FaultySource)
    files(tmp_path / "in", batches=1, rows=40)
    places = {"0-0-9": "kill", "0-1-7": "raise"}
    options = {"topic": topic, "batchMaxMessages": "4", "faults": plan(tmp_path, places)}
    run_stream(writing(reading(spark, tmp_path), our_broker, "pulsar-faulty", **options), tmp_path)
    found = values_of(our_broker, topic)
    assert set(found) == set(all_rows(1, 40))
    assert len(found) > len(set(found)), "some are written twice"


def test_after_a_shuffle_the_order_of_the_rows_makes_no_difference(
    spark: SparkSession, broker: SparkBroker, deduplicated_topic: str, tmp_path: Path
) -> None:
    """Rows come to the sink in another order at every attempt."""
    spark.dataSource.register(FaultySource)
    files(tmp_path / "in", batches=4, rows=60)
    rows = reading(spark, tmp_path).repartition(2, "value")
    places = {f"{batch}-{part}-{3 + 2 * batch + part}": "kill" for batch in range(4) for part in range(2)}
    faults = plan(tmp_path, {**places, "order": "random"})
    options = {"topic": deduplicated_topic, "batchMaxMessages": "4", "faults": faults}
    run_stream(writing(rows, broker, "pulsar-faulty", **EXACTLY, **options), tmp_path)
    assert ends(tmp_path) == set(places)
    assert sorted(values_of(broker, deduplicated_topic)) == all_rows(4, 60)


def test_rows_in_their_own_order_where_the_query_says_so(
    spark: SparkSession, our_broker: SparkBroker, deduplicated_topic: str, tmp_path: Path
) -> None:
    """Without a shuffle the order is the same at every attempt, and stays as it is."""
    spark.dataSource.register(FaultySource)
    files(tmp_path / "in", batches=1, rows=60)
    rows = reading(spark, tmp_path).selectExpr("concat(reverse(value), '!') AS value")
    options = {
        "topic": deduplicated_topic,
        "batchMaxMessages": "4",
        "canonicalOrder": "false",
        "faults": plan(tmp_path, {"0-0-9": "kill", "0-1-7": "raise"}),
    }
    run_stream(writing(rows, our_broker, "pulsar-faulty", **EXACTLY, **options), tmp_path)
    found = [each[:-1].decode()[::-1] for each in values_of(our_broker, deduplicated_topic)]
    for part in range(2):
        assert [each for each in found if each.startswith(f"0-{part}")] == [
            f"0-{part}-{row:05}" for row in range(60)
        ]


def stored(broker: SparkBroker, topic: str) -> int:
    """Messages that the broker has got for the topic since it has it; 0 where there is none."""
    try:
        return int(broker.admin.stats(topic)["msgInCounter"])
    except AdminError:
        return 0


@pytest.mark.real
def test_a_broker_that_is_killed_in_the_middle_of_a_batch(
    spark: SparkSession, real_broker: RealBroker, deduplicated_topic: str, tmp_path: Path
) -> None:
    """The query goes on where it was; the test does not start it again."""
    files(tmp_path / "in", batches=2, rows=15_000)
    keep(real_broker, deduplicated_topic)
    options = {"topic": deduplicated_topic, "batchMaxMessages": "50", "maxInFlight": "500"}

    def kill() -> None:
        while not stored(real_broker, deduplicated_topic) > 5000:
            time.sleep(0.05)
        real_broker.kill()
        real_broker.start()

    run_stream(writing(reading(spark, tmp_path), real_broker, **EXACTLY, **options), tmp_path, kill)
    assert sorted(values_of(real_broker, deduplicated_topic)) == all_rows(2, 15_000)


DRIVER_ENDS = ("0-1-9", "commit-1")
"""In the middle of a task, and when everything of a batch is written and nothing is committed."""


@pytest.mark.real
def test_drivers_that_are_killed_leave_every_row_once(
    our_broker: SparkBroker, real_broker: SparkBroker, deduplicated_topic: str, tmp_path: Path
) -> None:
    """One driver with a query to each broker, which ends where both queries have come to the same place, and
    is started again over the checkpoints until both are done."""
    brokers = [our_broker, real_broker]
    for broker in brokers:
        files(tmp_path / broker.name / "in", batches=2, rows=40)
        plan(tmp_path / broker.name, dict.fromkeys(DRIVER_ENDS, "driver"))
    for _ in DRIVER_ENDS:
        assert run_driver(brokers, deduplicated_topic, tmp_path, "exactly-once")
    assert not run_driver(brokers, deduplicated_topic, tmp_path, "exactly-once")
    for broker in brokers:
        assert ends(tmp_path / broker.name) == set(DRIVER_ENDS)
        assert sorted(values_of(broker, deduplicated_topic)) == all_rows(2, 40)
