"""DataFrames and streams that a real Spark writes in transactions, with tasks and drivers that end inside."""

from pathlib import Path

import pytest
from pyspark.errors import AnalysisException, PythonException, StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

from tests.spark.scenes.brokers import SparkBroker
from tests.spark.scenes.faulty import FaultySource
from tests.spark.scenes.reading_back import values_of
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

IN_TRANSACTIONS = {"deliveryGuarantee": "transactions"}


def abort_all(broker: SparkBroker) -> None:
    """Abort all open transactions, those of attempts that were killed. Their timeout would do it."""
    transactions = "/admin/v3/transactions"
    for name, transaction in broker.admin.request("GET", f"{transactions}/slowTransactions/-1").items():
        if transaction["status"] == "OPEN":
            coordinator, number = name.strip("()").split(",")
            broker.admin.request("POST", f"{transactions}/abortTransaction/{coordinator}/{number}")


@pytest.fixture(autouse=True)
def faulty(spark: SparkSession) -> None:
    spark.dataSource.register(FaultySource)


# --- batch writes ------------------------------------------------------------------------------------


def test_a_write_is_done_once(spark: SparkSession, broker: SparkBroker, topic: str) -> None:
    """TXN-01: a write with this name changes nothing when it is done again. Deduplication is off."""
    broker.admin.create_partitioned_topic(topic, 3)
    for _ in range(2):
        write(numbers(spark, 3000), broker, topic=topic, writeId="backfill", **IN_TRANSACTIONS)
    assert sorted(values_of(broker, topic)) == expected(3000)


def test_tasks_begin_at_once_in_fresh_topics(spark: SparkSession, broker: SparkBroker, topic: str) -> None:
    """TXN-01: Pulsar 4.0.7 may break a topic whose first transactional messages come from two producers at
    once. Workers that have written before begin within a millisecond; a namespace without transactions is
    slow at first."""
    for _ in range(3):
        write(numbers(spark, 1000), broker, topic=topic)
    for fresh in range(3):
        namespace = f"public/fresh-{topic.rpartition('-')[2]}-{fresh}"
        broker.admin.create_namespace(namespace)
        name = f"persistent://{namespace}/t"
        write(numbers(spark, 50_000), broker, topic=name, writeId="w", **IN_TRANSACTIONS)
        assert sorted(values_of(broker, name)) == expected(50_000)


def test_rows_say_their_topics_and_more(spark: SparkSession, our_broker: SparkBroker, topic: str) -> None:
    rows = numbers(spark, 100).selectExpr(
        "value",
        f"concat('{topic}-', right(value, 1)) AS __topic",
        "value AS __key",
        "map('a', value) AS __messageProperties",
    )
    write(rows, our_broker, writeId="w/1", commitNamespace="public/default", **IN_TRANSACTIONS)
    for digit in range(10):
        found = values_of(our_broker, f"{topic}-{digit}")
        assert sorted(found) == [each for each in expected(100) if each.endswith(b"%d" % digit)]


def test_a_task_that_fails_leaves_nothing(
    spark: SparkSession, broker: SparkBroker, topic: str, tmp_path: Path
) -> None:
    """Its transaction is aborted at once, and Spark repeats it."""
    places = {"0-0-4": "raise", "0-1-9": "raise"}
    options = {"topic": topic, "batchMaxMessages": "4", "faults": plan(tmp_path, places)}
    write(numbers(spark, 60), broker, "pulsar-faulty", writeId="w", **options, **IN_TRANSACTIONS)
    assert ends(tmp_path) == set(places)
    assert sorted(values_of(broker, topic)) == expected(60)


def test_a_write_that_fails_leaves_nothing(
    spark: SparkSession, broker: SparkBroker, topic: str, tmp_path: Path
) -> None:
    """One task fails four times, the other succeeds. Done again, the write has all rows."""
    options = {"topic": topic, "batchMaxMessages": "4", "writeId": "w", **IN_TRANSACTIONS}
    faults = plan(tmp_path, {f"0-1-{step}": "raise" for step in (5, 6, 7, 8)})
    with pytest.raises(PythonException, match="task 0-1 ends at step 8"):
        write(numbers(spark, 60), broker, "pulsar-faulty", faults=faults, **options)
    write(numbers(spark, 3), broker, topic=topic)
    assert sorted(values_of(broker, topic)) == expected(3)
    write(numbers(spark, 60), broker, **options)
    assert sorted(values_of(broker, topic)) == sorted(expected(60) + expected(3))


def test_writes_within_foreach_batch_have_the_batch_s_number(
    spark: SparkSession, our_broker: SparkBroker, topic: str, tmp_path: Path
) -> None:
    files(tmp_path / "in", batches=2, rows=20)
    faults = plan(tmp_path, {"0-1-6": "raise"})

    def several(batch: DataFrame, _: int) -> None:
        for name in ("a", "a", "b"):
            options = {"topic": topic, "batchMaxMessages": "4", "faults": faults, "writeId": name}
            write(batch, our_broker, "pulsar-faulty", **options, **IN_TRANSACTIONS)

    run_stream(reading(spark, tmp_path).writeStream.foreachBatch(several), tmp_path)
    assert sorted(values_of(our_broker, topic)) == sorted(all_rows(2, 20) * 2)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"topic": "t"}, "option writeId is required"),
        ({"writeId": "w"}, "option commitNamespace is required"),
        ({"topic": "t", "writeId": "w", "orderBy": "value"}, "option orderBy means nothing with"),
    ],
)
def test_what_cannot_be_written_is_refused_before_anything_is(
    spark: SparkSession, our_broker: SparkBroker, options: dict[str, str], text: str
) -> None:
    rows = spark.sql("SELECT 'v' AS value, 't' AS __topic")
    with pytest.raises(AnalysisException, match=text):
        write(rows, our_broker, **options, **IN_TRANSACTIONS)


# --- streams -----------------------------------------------------------------------------------------


def test_a_stream_whose_tasks_end_anywhere_leaves_every_row_once(
    spark: SparkSession, broker: SparkBroker, topic: str, tmp_path: Path
) -> None:
    """From before the producer is opened to after it is closed. Rows come in another order each time.

    Of four attempts of a task two end here: a Pulsar that loses a transaction by itself may end a third."""
    files(tmp_path / "in", batches=3, rows=40)
    steps = [(0, 4), (4, 7), (7, 0)]
    places = {f"{batch}-{batch % 2}-{step}": "raise" for batch in range(3) for step in steps[batch]}
    places |= {"0-1-13": "raise", "1-0-14": "raise", "2-1-5": "kill"}
    options = {
        "topic": topic,
        "batchMaxMessages": "4",
        "faults": plan(tmp_path, {**places, "order": "random"}),
    }
    run_stream(
        writing(reading(spark, tmp_path), broker, "pulsar-faulty", **IN_TRANSACTIONS, **options), tmp_path
    )
    assert ends(tmp_path) == set(places)
    abort_all(broker)
    assert sorted(values_of(broker, topic)) == all_rows(3, 40)


def test_a_batch_of_a_stream_that_fails_leaves_nothing(
    spark: SparkSession, our_broker: SparkBroker, topic: str, tmp_path: Path
) -> None:
    """The query is started again over its checkpoint."""
    files(tmp_path / "in", batches=2, rows=40)
    faults = plan(tmp_path, {f"1-0-{step}": "raise" for step in (5, 6, 7, 8)})
    options = {"topic": topic, "batchMaxMessages": "4", "faults": faults, **IN_TRANSACTIONS}
    with pytest.raises(StreamingQueryException, match="task 1-0 ends at step 8"):
        run_stream(writing(reading(spark, tmp_path), our_broker, "pulsar-faulty", **options), tmp_path)
    first = values_of(our_broker, topic)
    assert (len(first), len({each[:4] for each in first})) == (80, 2), "two of the four files"
    run_stream(writing(reading(spark, tmp_path), our_broker, "pulsar-faulty", **options), tmp_path)
    assert sorted(values_of(our_broker, topic)) == all_rows(2, 40)


DRIVER_ENDS = ("committing-0", "commit-1", "0-1-9")
"""The driver ends when one of two transactions is committed; when all is written and nothing decided; in a
task."""


@pytest.mark.real
def test_drivers_that_are_killed_leave_every_row_once(
    our_broker: SparkBroker, real_broker: SparkBroker, topic: str, tmp_path: Path
) -> None:
    """One driver with a query to each broker, started again over the checkpoints until both are done."""
    brokers = [our_broker, real_broker]
    for broker in brokers:
        files(tmp_path / broker.name / "in", batches=2, rows=40)
        plan(tmp_path / broker.name, dict.fromkeys(DRIVER_ENDS, "driver"))
    for _ in DRIVER_ENDS:
        assert run_driver(brokers, topic, tmp_path, "transactions")
    assert not run_driver(brokers, topic, tmp_path, "transactions")
    for broker in brokers:
        assert ends(tmp_path / broker.name) == set(DRIVER_ENDS)
        abort_all(broker)
        assert sorted(values_of(broker, topic)) == all_rows(2, 40)
