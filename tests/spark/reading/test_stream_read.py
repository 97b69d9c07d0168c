"""`spark.readStream.format("pulsar")` with a real Spark: checkpoints, limits, growth, what is lost.

What the driver's side decides is tested in detail in `test_stream_source`; here Spark calls it.
"""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery

from pulsar_spark.progress import patiently
from tests.spark.scenes.brokers import SparkBroker
from tests.spark.scenes.sending import Sender

pytestmark = pytest.mark.spark

TIMEOUT = 300.0
"""Seconds for a query to come to where it has to come to."""


class Runs:
    """The runs of one query over one checkpoint, and the rows of every micro-batch by its number."""

    def __init__(self, spark: SparkSession, broker: SparkBroker, folder: Path, **options: Any) -> None:
        self.spark = spark
        self.folder = folder
        self.options = {"service.url": broker.url, **{name: str(value) for name, value in options.items()}}
        self.batches: dict[int, list[int]] = {}
        self.failing: set[int] = set()
        """Micro-batches that fail after they were read."""

    def start(self) -> StreamingQuery:
        """A query that goes on; its first batch is done."""

        def started() -> StreamingQuery:
            query = self._start(available_now=False)
            while not query.awaitTermination(0.05):  # raises what it fails with
                if self.batches:
                    break
            return query

        return patiently(started)

    def run(self, **options: Any) -> StreamingQuery:
        """Run a query over what is in the topic now."""

        def done() -> StreamingQuery:
            query = self._start(available_now=True, **options)
            assert query.awaitTermination(TIMEOUT)
            return query

        return patiently(done)

    def _start(self, *, available_now: bool, **options: Any) -> StreamingQuery:
        source = self.spark.readStream.format("pulsar").schema("value string")
        frame = source.options(**self.options, **{name: str(value) for name, value in options.items()}).load()
        writer = frame.writeStream.foreachBatch(self._take).option("checkpointLocation", str(self.folder))
        return (writer.trigger(availableNow=True) if available_now else writer).start()

    def _take(self, frame: DataFrame, batch: int) -> None:
        rows = sorted(int(row.value) for row in frame.collect())
        if batch in self.failing:
            raise RuntimeError(f"micro-batch {batch} fails, as the test wants it")
        assert self.batches.setdefault(batch, rows) == rows, "a micro-batch that is done again is the same"

    @property
    def rows(self) -> list[int]:
        return [row for _, rows in sorted(self.batches.items()) for row in rows]

    def offsets(self) -> list[str]:
        """The checkpoint's, in order."""
        files = sorted(
            (path for path in (self.folder / "offsets").glob("[0-9]*")), key=lambda path: int(path.name)
        )
        return [path.read_text().splitlines()[2] for path in files]


def until(query: StreamingQuery, condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + TIMEOUT
    while not condition():
        assert query.isActive, query.exception()
        assert time.monotonic() < deadline
        time.sleep(0.05)


def fill(broker: SparkBroker, topic: str, numbers: range) -> None:
    sender = Sender(broker.url, topic)
    for first in range(0, len(numbers), 10):
        sender.send([b"%d" % number for number in numbers[first : first + 10]])
    sender.close()


def test_available_now_in_pieces_over_restarts(
    spark: SparkSession, broker: SparkBroker, topic: str, tmp_path: Path
) -> None:
    fill(broker, topic, range(60))
    runs = Runs(spark, broker, tmp_path, topic=topic, startingOffsets="earliest", maxMessagesPerTrigger=30)
    query = runs.run()
    assert list(runs.batches.values()) == [list(range(30)), list(range(30, 60))]
    reported = [json.loads(progress["sources"][0]["latestOffset"]) for progress in query.recentProgress]
    assert reported[0] == json.loads(runs.offsets()[-1]), "the lag is to be seen in the first progress"
    fill(broker, topic, range(60, 80))
    runs.failing = {2}
    with pytest.raises(Exception, match="micro-batch 2 fails"):
        runs.run()
    runs.failing = set()
    fill(broker, topic, range(80, 90))
    runs.run()
    assert runs.batches[2] == list(range(60, 80)), "the same end as before the failure"
    assert runs.rows == list(range(90))
    written = runs.offsets()
    assert [json.dumps(json.loads(text), sort_keys=True) for text in written] == [
        json.dumps(json.loads(text)) for text in written
    ]
    assert len(set(written)) == len(written), "no micro-batch of nothing"


def test_the_pin_batch(spark: SparkSession, our_broker: SparkBroker, topic: str, tmp_path: Path) -> None:
    fill(our_broker, topic, range(10))
    runs = Runs(spark, our_broker, tmp_path, topic=topic, startingOffsets="latest")
    runs.failing = {0}
    with pytest.raises(Exception, match="micro-batch 0 fails"):
        runs.run()
    fill(our_broker, topic, range(10, 30))
    runs.failing = set()
    runs.run()
    assert runs.batches[0] == []
    assert runs.rows == list(range(10, 30)), "nothing that came after the query was first started is lost"


@pytest.mark.breaks("INV-C4", why="tasks read by other subscriptions what the query's own acknowledges")
def test_growth_deletion_and_an_idle_subscription(
    spark: SparkSession, broker: SparkBroker, topic: str, tmp_path: Path
) -> None:
    broker.admin.create_partitioned_topic(topic, 1)
    fill(broker, f"{topic}-partition-0", range(10))
    fill(broker, f"{topic}-other", range(100, 110))
    runs = Runs(
        spark,
        broker,
        tmp_path,
        topics=f"{topic},{topic}-other",
        startingOffsets="earliest",
        topicDiscoveryMs=100,
        subscription="kept",
        idleAckMs=100,
    )
    query = runs.start()
    until(query, lambda: len(runs.rows) == 20)
    broker.admin.update_partitions(topic, 2)
    fill(broker, f"{topic}-partition-1", range(10, 20))
    until(query, lambda: len(runs.rows) == 30)
    assert sorted(runs.rows) == [*range(20), *range(100, 110)]
    for name in (f"{topic}-partition-0", f"{topic}-partition-1", f"{topic}-other"):
        until(query, lambda name=name: backlog(broker, name) == 0)  # type: ignore[misc]
    broker.admin.delete_topic(f"{topic}-other", force=True)
    with pytest.raises(
        Exception, match=f"DataLoss: data loss in {topic}-other: the topic does not exist any more"
    ):
        query.awaitTermination(TIMEOUT)
    fill(broker, f"{topic}-partition-0", range(20, 30))
    runs.run(failOnDataLoss="false")
    assert sorted(runs.rows) == [*range(30), *range(100, 110)]


def backlog(broker: SparkBroker, topic: str) -> int:
    subscriptions = broker.admin.stats(topic)["subscriptions"]
    return int(subscriptions["kept"]["msgBacklog"]) if "kept" in subscriptions else -1


@pytest.mark.real
def test_retention_that_overtook_the_query(
    spark: SparkSession, real_broker: SparkBroker, topic: str, tmp_path: Path
) -> None:
    admin = real_broker.admin
    admin.create_topic(topic)
    fill(real_broker, topic, range(10))
    runs = Runs(spark, real_broker, tmp_path, topic=topic, startingOffsets="earliest")
    runs.run()
    fill(real_broker, topic, range(10, 20))
    first = ledgers(real_broker, topic)[0]
    admin.unload(topic)
    fill(real_broker, topic, range(20, 30))  # in a new ledger; no cursor holds the old one
    deadline = time.monotonic() + TIMEOUT
    while first in ledgers(real_broker, topic):
        assert time.monotonic() < deadline
        admin.request("POST", f"/admin/v2/{topic.replace('://', '/')}/trim")
        time.sleep(0.2)
    with pytest.raises(
        Exception, match=rf"DataLoss: data loss in {topic}: the ledger {first}, .* not there any more"
    ):
        runs.run()
    runs.run(failOnDataLoss="false")
    assert runs.rows == [*range(10), *range(20, 30)], "what is gone is gone"


def ledgers(broker: SparkBroker, topic: str) -> list[int]:
    path = f"/admin/v2/{topic.replace('://', '/')}/internalStats"
    return [each["ledgerId"] for each in broker.admin.request("GET", path)["ledgers"]]


def test_errors_of_streams(spark: SparkSession, our_broker: SparkBroker, topic: str, tmp_path: Path) -> None:
    for number, (options, says) in enumerate(
        [
            ({"topic": topic}, f"TopicNotFound: topic {topic} does not exist"),
            (
                {"topic": topic, "readCompacted": "true"},
                "UnknownOption: option readCompacted is for batch read only",
            ),
            (
                {"topic": topic, "maxBytesPerTrigger": "1", "maxMessagesPerTrigger": "1"},
                "ConflictingOptions: options maxMessagesPerTrigger and maxBytesPerTrigger",
            ),
            ({"topic": topic, "authParams": "s3cr3t"}, "OptionNotImplemented: option authparams"),
        ]
    ):
        with pytest.raises(Exception, match=says) as caught:
            Runs(spark, our_broker, tmp_path / str(number), **options).run()
        assert "s3cr3t" not in str(caught.value)


def test_secrets_stand_in_no_log(
    spark: SparkSession, our_broker: SparkBroker, topic: str, tmp_path: Path
) -> None:
    """Neither in what Spark logs, nor in what it keeps and reports."""
    fill(our_broker, topic, range(10))
    folder = tmp_path / "checkpoint"
    runs = Runs(spark, our_broker, folder, topic=topic, startingOffsets="earliest", readerNamePrefix="s3cr3t")
    with log_file(spark, tmp_path / "spark.log") as log:
        query = runs.run()
    assert runs.rows == list(range(10))
    text = log.read_text()
    assert "MicroBatchExecution" in text, "it is the log of this query"
    assert "s3cr3t" not in text
    assert all("s3cr3t" not in progress.json for progress in query.recentProgress)
    kept = [path for path in folder.rglob("*") if path.is_file()]
    assert kept
    assert all(b"s3cr3t" not in path.read_bytes() for path in kept)


@contextmanager
def log_file(spark: SparkSession, path: Path) -> Iterator[Path]:
    """Collect what Spark logs while the block lasts, INFO and worse."""
    log4j = spark._jvm.org.apache.logging.log4j
    context = log4j.core.LoggerContext.getContext(False)
    builder = log4j.core.appender.FileAppender.newBuilder()
    builder.withFileName(str(path)).setName("test").setLayout(
        log4j.core.layout.PatternLayout.newBuilder().withPattern("%c %m%n%throwable").build()
    )
    appender = builder.build()
    appender.start()
    root = context.getConfiguration().getRootLogger()
    before = root.getLevel()
    root.addAppender(appender, None, None)
    spark.sparkContext.setLogLevel("INFO")
    try:
        yield path
    finally:
        spark.sparkContext.setLogLevel(before.toString())
        root.removeAppender("test")
        appender.stop()
