"""The driver's side of a stream, called as Spark calls it: limits, growth, loss, acknowledgement."""

import json
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext
from typing import Any

import pyspark
import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable
from pyspark.sql.types import BinaryType, StructField, StructType

from pulsar_spark.data_source import PulsarDataSource
from pulsar_spark.errors import DataLoss, SubscriptionBusy, TopicNotFound, UnsupportedSparkVersion
from pulsar_spark.options.option_table import Use
from pulsar_spark.options.query_options import parse_read
from pulsar_spark.reading import stream_source
from pulsar_spark.reading.offsets import Offsets, Position, Range, from_json, to_json
from pulsar_spark.reading.stream_source import PulsarStreamReader, _Driver
from pulsar_spark.reading.topics import ClosedLedger, QueryTopics
from pulsar_spark.subscribed import Hold
from tests.patience import PATIENCE
from tests.spark.scenes.brokers import SparkBroker
from tests.spark.scenes.reading_back import keep
from tests.spark.scenes.sending import Sender, send
from tests.spark.scenes.serving import served

pytestmark = pytest.mark.spark

VALUE = StructType([StructField("value", BinaryType())])


class Query:
    """One run of a query: what Spark does with a reader, and the checkpoint that outlives the run."""

    def __init__(self, broker: SparkBroker, checkpoint: "Checkpoint", **options: Any) -> None:
        given = {"service.url": broker.url, **{name: str(value) for name, value in options.items()}}
        self.reader = PulsarStreamReader(parse_read(given, Use.STREAM_READ), VALUE)
        self.checkpoint = checkpoint
        checkpoint.runs.append(self.reader)
        if checkpoint.offsets and len(checkpoint.offsets) > checkpoint.commits:
            self._run(checkpoint.offsets[-1])  # the micro-batch that was not finished, once more

    def step(self, *, crash: bool = False) -> list[int] | None:
        """One micro-batch: what it read, None where nothing is new. `crash`: it is not committed."""
        kept = self.checkpoint.offsets
        start = json.loads(kept[-1]) if kept else self.reader.initialOffset()
        end = json.dumps(self.reader.latestOffset(start, self.reader.getDefaultReadLimit()))
        assert end == json.dumps(to_json(from_json(json.loads(end))))
        if kept and end == kept[-1]:
            return None
        if self.checkpoint.commits:
            self.reader.commit(json.loads(kept[-1]))
        kept.append(end)
        return self._run(end, crash=crash)

    def until_quiet(self) -> list[int]:
        """Micro-batches until nothing is new."""
        found: list[int] = []
        while (rows := self.step()) is not None:
            found += rows
        return found

    def until_read(self, count: int) -> None:
        """Micro-batches until so many rows were read, in all runs together."""
        until(lambda: self.step() is None and len(self.checkpoint.rows) >= count)

    def _run(self, end: str, *, crash: bool = False) -> list[int]:
        kept = self.checkpoint.offsets
        start = json.loads(kept[-2]) if len(kept) > 1 else self.reader.initialOffset()
        parts = self.reader.partitions(start, json.loads(end))
        rows = [
            int(value)
            for part in parts
            for batch in self.reader.read(part)
            for value in batch.column(0).to_pylist()
        ]
        if not crash:
            self.checkpoint.commits += 1
            self.checkpoint.rows += rows
        return rows


class Checkpoint:
    def __init__(self) -> None:
        self.offsets: list[str] = []
        self.commits = 0
        self.rows: list[int] = []
        self.runs: list[PulsarStreamReader] = []


@pytest.fixture
def checkpoint() -> Iterator[Checkpoint]:
    checkpoint = Checkpoint()
    yield checkpoint
    for reader in checkpoint.runs:
        reader.stop()


class Numbers:
    """Sends the next numbers, an entry for every ten."""

    def __init__(self, broker: SparkBroker, topic: str) -> None:
        self._sender = Sender(broker.url, topic)
        self._next = 0

    def send(self, count: int, each: int = 10) -> list[int]:
        numbers = range(self._next, self._next + count)
        self._next += count
        for first in range(0, count, each):
            self._sender.send([b"%d" % number for number in numbers[first : first + each]])
        return list(numbers)

    def close(self) -> None:
        self._sender.close()


@pytest.fixture
def numbers(broker: SparkBroker, topic: str) -> Iterator[Numbers]:
    numbers = Numbers(broker, topic)
    yield numbers
    numbers.close()


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_everything_once_over_restarts(
    broker: SparkBroker, topic: str, numbers: Numbers, checkpoint: Checkpoint
) -> None:
    """Rule GAP-41."""
    numbers.send(30)
    query = Query(broker, checkpoint, topic=topic, startingOffsets="earliest")
    assert query.step() == list(range(30))
    assert query.step() is None
    numbers.send(20)
    assert query.step() == list(range(30, 50))
    numbers.send(10)
    again = Query(broker, checkpoint, topic=topic, startingOffsets="earliest")
    assert again.step() == list(range(50, 60))
    assert again.step() is None


def test_a_micro_batch_that_is_done_again_is_the_same(
    broker: SparkBroker, topic: str, numbers: Numbers, checkpoint: Checkpoint
) -> None:
    options = {"topic": topic, "startingOffsets": "earliest", "minPartitions": 3}
    numbers.send(30)
    Query(broker, checkpoint, **options).step()
    numbers.send(30)
    query = Query(broker, checkpoint, **options)
    lost = query.step(crash=True)
    assert lost == list(range(30, 60))
    numbers.send(30)
    again = Query(broker, checkpoint, **options)
    assert checkpoint.rows == list(range(60))
    start, end = map(json.loads, checkpoint.offsets)
    assert [part.ranges for part in again.reader.partitions(start, end)] == [
        part.ranges for part in query.reader.partitions(start, end)
    ]
    assert again.until_quiet() == list(range(60, 90))


@pytest.mark.parametrize("start", ["latest", "time"])
def test_the_pin_batch(our_broker: SparkBroker, topic: str, checkpoint: Checkpoint, start: str) -> None:
    """No message is lost that arrives between the first look at a topic and a crash of the first
    micro-batch."""
    numbers = Numbers(our_broker, topic)
    numbers.send(10)
    time.sleep(0.01)
    if start == "latest":
        options: dict[str, Any] = {"topic": topic, "startingOffsets": "latest"}
    else:
        options = {"topic": topic, "startingTimestamp": int(time.time() * 1000)}
    query = Query(our_broker, checkpoint, **options)
    query.reader.initialOffset()
    numbers.send(10)
    assert query.step(crash=True) == [], "a micro-batch of nothing, which is written down"
    numbers.send(10)
    again = Query(our_broker, checkpoint, **options)
    assert again.until_quiet() == list(range(10, 30))
    numbers.close()


def test_a_limit_cuts_the_backlog_into_micro_batches(
    broker: SparkBroker, topic: str, checkpoint: Checkpoint
) -> None:
    keep(broker, topic)
    numbers = Numbers(broker, topic)
    numbers.send(60)
    broker.admin.unload(topic)
    numbers.send(60)
    broker.admin.unload(topic)
    numbers.send(60)
    query = Query(broker, checkpoint, topic=topic, startingOffsets="earliest", maxMessagesPerTrigger=50)
    sizes = []
    while (rows := query.step()) is not None:
        sizes.append(len(rows))
    assert checkpoint.rows == list(range(180))
    assert sizes == [50, 50, 50, 30]
    numbers.close()


def test_a_limit_is_shared_out_by_backlog(
    our_broker: SparkBroker, topic: str, checkpoint: Checkpoint
) -> None:
    for name, count in (("a", 300), ("b", 30)):
        numbers = Numbers(our_broker, f"{topic}-{name}")
        numbers.send(count)
        numbers.close()
    query = Query(
        our_broker,
        checkpoint,
        topics=f"{topic}-a,{topic}-b",
        startingOffsets="earliest",
        maxBytesPerTrigger=110 * 2,  # of two digits, about
    )
    query.step()
    reached = from_json(json.loads(checkpoint.offsets[0]))
    assert reached[f"{topic}-a"][1] > reached[f"{topic}-b"][1] >= 0
    assert len(query.until_quiet()) + len(checkpoint.rows) >= 330
    assert sorted(checkpoint.rows) == sorted([*range(300), *range(30)])


def test_available_now_takes_what_is_there(
    broker: SparkBroker, topic: str, numbers: Numbers, checkpoint: Checkpoint
) -> None:
    numbers.send(40)
    query = Query(broker, checkpoint, topic=topic, startingOffsets="earliest", maxMessagesPerTrigger=20)
    query.reader.prepareForTriggerAvailableNow()
    numbers.send(10)
    assert query.until_quiet() == list(range(40))
    assert len(checkpoint.offsets) == 2
    again = Query(broker, checkpoint, topic=topic)
    again.reader.prepareForTriggerAvailableNow()
    assert again.until_quiet() == list(range(40, 50))


def test_partitions_and_topics_that_come_later(
    broker: SparkBroker, topic: str, checkpoint: Checkpoint
) -> None:
    broker.admin.create_partitioned_topic(f"{topic}-p", 1)
    send(broker.url, f"{topic}-p-partition-0", [b"0"])
    query = Query(
        broker, checkpoint, topicsPattern=f"{topic}-.*", startingOffsets="latest", topicDiscoveryMs=100
    )
    assert query.until_quiet() == [], "the first message was there before the query"
    broker.admin.update_partitions(f"{topic}-p", 3)
    send(broker.url, f"{topic}-p-partition-2", [b"1"])
    send(broker.url, f"{topic}-other", [b"2"])
    query.until_read(2)
    assert sorted(checkpoint.rows) == [1, 2]
    assert f"{topic}-p-partition-1" in from_json(json.loads(checkpoint.offsets[-1]))


def test_a_topic_that_does_not_exist(our_broker: SparkBroker, topic: str, checkpoint: Checkpoint) -> None:
    with pytest.raises(TopicNotFound, match=f"topic {topic} does not exist"):
        Query(our_broker, checkpoint, topic=topic).step()
    with pytest.raises(TopicNotFound):
        query = Query(our_broker, checkpoint, topic=topic)
        query.reader.prepareForTriggerAvailableNow()
        query.step()
    assert Query(our_broker, checkpoint, topicsPattern=f"{topic}.*").until_quiet() == []


def test_a_topic_that_is_waited_for(our_broker: SparkBroker, topic: str, checkpoint: Checkpoint) -> None:
    later = threading.Timer(0.3, send, (our_broker.url, topic, [b"1", b"2"]))
    later.start()
    query = Query(our_broker, checkpoint, topic=topic, startingOffsets="earliest", waitForTopicsMs=60_000)
    query.until_read(2)
    later.join()
    assert checkpoint.rows == [1, 2]


def test_a_spark_that_is_too_old_for_streams(monkeypatch: pytest.MonkeyPatch) -> None:
    source = PulsarDataSource({"service.url": "pulsar://127.0.0.1:1", "topic": "a"})
    assert isinstance(source.streamReader(VALUE), PulsarStreamReader)
    monkeypatch.setattr(pyspark, "__version__", "4.1.4")
    with pytest.raises(UnsupportedSparkVersion, match=r"needs PySpark 4\.2 or later, this is 4\.1\.4"):
        source.streamReader(VALUE)


@pytest.mark.parametrize("fails", [True, False])
def test_a_topic_that_is_deleted(
    broker: SparkBroker, topic: str, checkpoint: Checkpoint, fails: bool, caplog: pytest.LogCaptureFixture
) -> None:
    for name in "ab":
        send(broker.url, f"{topic}-{name}", [b"1"])
    query = Query(
        broker,
        checkpoint,
        topics=f"{topic}-a,{topic}-b",
        startingOffsets="earliest",
        failOnDataLoss=str(fails).lower(),
    )
    assert query.until_quiet() == [1, 1]
    broker.admin.delete_topic(f"{topic}-a", force=True)
    send(broker.url, f"{topic}-b", [b"2"])
    if fails:
        with pytest.raises(DataLoss, match=rf"data loss in {topic}-a: the topic does not exist any more"):
            query.until_read(99)
    else:
        query.until_read(3)
        until(lambda: query.step() is None and f"{topic}-a" not in checkpoint.offsets[-1])
        assert f"going on after data loss in {topic}-a" in caplog.text
        again = Query(broker, checkpoint, topics=f"{topic}-a,{topic}-b", failOnDataLoss="false")
        assert again.step() is None, "it is given up"


@pytest.mark.parametrize("fails", [True, False])
def test_a_topic_that_came_and_went_before_its_first_micro_batch_is_done_again(
    our_broker: SparkBroker, topic: str, fails: bool
) -> None:
    """The end that is written down has it, the start has not."""
    there, gone = f"{topic}-a", f"{topic}-b"
    end = {there: send(our_broker.url, there, [b"1"])[0][:2], gone: (1, 1)}
    given = {"service.url": our_broker.url, "topics": f"{there},{gone}", "failOnDataLoss": str(fails)}
    driver = _Driver(parse_read(given, Use.STREAM_READ))
    if fails:
        with pytest.raises(DataLoss, match=f"data loss in {gone}: the topic does not exist"):
            driver.tasks({}, end)
    else:
        assert [part.ranges[0].topic for part in driver.tasks({}, end)] == [there]
    driver.close()


@pytest.mark.parametrize(
    ("ends", "gone_after", "lost"),
    [
        (
            [(1, 9), (1, 9), (2, 3)],
            "a look",
            False,
        ),  # the ledger was there when the topic went on to the next
        ([(1, 9), (1, 12), (2, 3)], "a look", True),  # and had three entries more
        ([(1, 9), (1, 9), (2, 3)], "no look", False),  # it was not, but its end had just been seen
        ([(1, 9), (2, 3)], "a restart", True),  # no query had looked
    ],
)
def test_when_a_ledger_that_is_gone_is_a_loss(
    topic: str, ends: list[Position], gone_after: str, lost: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream_source, "CLOSE", float("inf"))
    given = {"service.url": "pulsar://127.0.0.1:1", "topic": topic, "offsetPollMs": "1"}
    driver = _Driver(parse_read(given, Use.STREAM_READ))
    script = iter(ends)
    driver._topics = Scripted(driver, script, gone_after == "a look", last_of_first=max(ends[:-1])[1])
    try:
        driver.next_end({topic: ends[0]}, ReadAllAvailable()) if gone_after != "a restart" else next(script)
        end = driver.next_end({topic: ends[0]}, ReadAllAvailable())
        while end[topic] != ends[-1]:
            end = driver.next_end({topic: ends[0]}, ReadAllAvailable())
        if lost:
            with pytest.raises(DataLoss, match=r"the ledger 1, .* is not there any more"):
                driver.tasks({topic: ends[0]}, end)
        else:
            assert [part.ranges for part in driver.tasks({topic: ends[0]}, end)] == [
                (Range(topic, ends[0], ends[-1], next_ledger=ends[-1][0]),)
            ]
    finally:
        driver.close()


@pytest.mark.parametrize(
    ("mark_delete", "lost"), [((1, 9), False), ((1, 8), False), ((2, -1), True), (None, True)]
)
def test_a_ledger_that_is_gone_is_no_loss_where_the_subscription_holds_what_is_behind_it(
    topic: str, mark_delete: Position | None, lost: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after a restart: of the ledger, which was read to its end, nothing else is known."""
    given = {"service.url": "pulsar://127.0.0.1:1", "topic": topic, "subscription": "s"}
    driver = _Driver(parse_read(given, Use.STREAM_READ))
    driver._topics = Scripted(driver, iter(()), False, last_of_first=-1)
    hold = Hold(driver._link, topic, -1)
    monkeypatch.setattr(hold, "mark_delete", lambda _: mark_delete)
    driver._topics._holds[topic] = hold
    with pytest.raises(DataLoss) if lost else nullcontext():
        (part,) = driver.tasks({topic: (1, 9)}, {topic: (2, 3)})
        assert part.ranges == (Range(topic, (1, 9), (2, 3), next_ledger=2),)
    driver.close()


class Scripted(QueryTopics):
    """A topic of two ledgers, of which the first goes: what the broker would say, without one."""

    def __init__(self, driver: _Driver, script: Iterator[Position], look: bool, last_of_first: int) -> None:
        super().__init__(driver._options, driver._link)
        self._script = script
        self._there = look
        self._last_of_first = last_of_first

    def discover(self) -> list[str]:
        return list(self._options.topics)

    def lasts(self, names: Iterable[str]) -> tuple[Offsets, list[str]]:
        return dict.fromkeys(names, next(self._script)), []

    def begins(self, name: str) -> Position:
        return 2, -1

    def _look_at(self, name: str, ledger: int, end: Position) -> ClosedLedger:
        return ClosedLedger(self._last_of_first if self._there else -1, 2)


@pytest.mark.breaks("INV-C4", why="tasks read by other subscriptions what the query's own acknowledges")
def test_the_subscription_is_acknowledged_and_kept(
    broker: SparkBroker, topic: str, numbers: Numbers, checkpoint: Checkpoint
) -> None:
    def backlog() -> int:
        count = broker.admin.stats(topic)["subscriptions"]["kept"]["msgBacklog"]
        assert isinstance(count, int)
        return count

    numbers.send(30)
    options = {"topic": topic, "startingOffsets": "earliest", "subscription": "kept", "idleAckMs": 0}
    query = Query(broker, checkpoint, **options)
    query.step()
    until(lambda: backlog() == 3)
    numbers.send(10)
    query.step()
    until(lambda: backlog() == 1)  # Spark commits a micro-batch when it begins the next
    with (  # a query without a served link does not answer the broker, which then lets others in
        served(query.reader._run._link),
        pytest.raises(SubscriptionBusy, match=f"subscription kept of {topic} is in use"),
    ):
        Query(broker, checkpoint, **options).step()
    query.reader.stop()
    again = Query(broker, checkpoint, **{**options, "idleAckMs": 100})
    until(lambda: again.step() is None and backlog() == 0)


def test_offsets_tell_the_lag(our_broker: SparkBroker, topic: str, checkpoint: Checkpoint) -> None:
    numbers = Numbers(our_broker, topic)
    numbers.send(30)
    query = Query(our_broker, checkpoint, topic=topic, startingOffsets="earliest", maxMessagesPerTrigger=10)
    query.step()
    latest = query.reader.reportLatestOffset()
    assert latest is not None
    end = from_json(json.loads(checkpoint.offsets[-1]))
    assert from_json(latest)[topic][1] - end[topic][1] == 2
    assert query.reader.latestOffset(json.loads(checkpoint.offsets[-1]), ReadAllAvailable()) == latest
    numbers.close()
