"""The first transactional message of a topic: what the driver sends before tasks do, on both brokers."""

import itertools
import time
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from pulsar_sansio import OutgoingMessage
from pulsar_sansio import client_outputs as outputs
from pulsar_sansio.schemas import RegisteredSchema, SchemaInfo, SchemaType
from pulsar_spark.errors import SchemaRefused
from pulsar_spark.link import Link
from pulsar_spark.options.option_table import Use
from pulsar_spark.options.query_options import parse_write
from pulsar_spark.writing import preparing
from pulsar_spark.writing.preparing import prepare
from pulsar_spark.writing.producing import Limits, Numbered, TaskProducer, WriteFailed
from pulsar_spark.writing.sink import PulsarBatchWriter
from pulsar_spark.writing.transactions import abort_quietly, begin
from tests.spark.scenes.brokers import OurBroker, SparkBroker
from tests.spark.scenes.reading_back import values_of

pytestmark = pytest.mark.spark

LIMITS = Limits(operation_timeout=10.0)

PARTITIONS = 100


class Driver:
    """A process that plans writes to one broker: it has prepared nothing yet."""

    def __init__(self, broker: SparkBroker) -> None:
        self.broker = broker
        self.link = Link(broker.url, create_topics=True, memory_limit=None, transactions=True)

    def sent(self, topic: str) -> int:
        """The number of messages that the topic or partition got, those of transactions included."""
        count: int = self.broker.admin.stats(topic)["msgInCounter"]
        return count

    def write_in_transaction(self, topic: str, *rows: bytes) -> None:
        """Write as a task does, and commit."""
        transaction = begin(self.link, "w", 0, 60.0, 30.0)
        task = TaskProducer(self.link, LIMITS, None, transaction.id)
        task.open([topic])
        messages = [OutgoingMessage(row, transaction=transaction.id) for row in rows]
        task.send(topic, messages, [len(row) for row in rows])
        task.finish()
        self.link.call(lambda now: self.link.client.commit(now, transaction.id), 30.0, "a commit")


@pytest.fixture(autouse=True)
def nothing_prepared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preparing, "_prepared", set())


@pytest.fixture
def driver(broker: SparkBroker) -> Iterator[Driver]:
    made = Driver(broker)
    yield made
    made.link.drop()


@pytest.fixture
def our_driver(our_broker: SparkBroker) -> Iterator[Driver]:
    made = Driver(our_broker)
    yield made
    made.link.drop()


def test_no_consumer_receives_the_message_and_none_is_held_up(driver: Driver, topic: str) -> None:
    """TXN-01: it is aborted as soon as its receipt is there."""
    prepare(driver.link, topic, 0, LIMITS)
    assert driver.sent(topic) == 1
    assert values_of(driver.broker, topic) == []
    driver.write_in_transaction(topic, b"a", b"b")
    assert values_of(driver.broker, topic) == [b"a", b"b"]


def test_each_partition_is_prepared_once(driver: Driver, topic: str) -> None:
    driver.broker.admin.create_partitioned_topic(topic, 2)
    for _ in range(3):
        prepare(driver.link, topic, 2, LIMITS)
    assert [driver.sent(f"{topic}-partition-{number}") for number in range(2)] == [1, 1]
    driver.broker.admin.update_partitions(topic, 4)
    prepare(driver.link, topic, 4, LIMITS)
    assert [driver.sent(f"{topic}-partition-{number}") for number in range(4)] == [1, 1, 1, 1]
    assert values_of(driver.broker, topic) == []


def begin_at_once(broker: SparkBroker, topics: list[str], writers: int) -> list[str]:
    """Writers with connections of their own send their first messages of transactions, all within a
    millisecond. Returns the topics where that failed."""
    links = [Link(broker.url, memory_limit=None, transactions=True) for _ in range(writers)]
    tasks = []
    for link in links:
        transaction = begin(link, "w", 0, 60.0, 30.0).id
        task = TaskProducer(link, replace(LIMITS, batch_messages=1), None, transaction)
        task.open(topics)
        tasks.append(task)
        for each in task._destinations.values():
            link.client.send(
                time.monotonic_ns(), each._handle, OutgoingMessage(b"row", transaction=transaction), 0
            )
            link.client.push(time.monotonic_ns(), each._handle)
    broken: set[str] = set()
    confirmed = 0

    def listen(topic: str, output: outputs.Output) -> None:
        nonlocal confirmed
        match output:
            case outputs.Receipts(_, _, ids):
                confirmed += len(ids)
            case outputs.Detached():
                broken.add(topic)

    for task in tasks:
        for each in task._destinations.values():
            task.link.listen(each._handle, partial(listen, each.topic))
    deadline = time.monotonic() + 30.0
    for link in itertools.cycle(links):
        link.serve(0.001)
        if broken or confirmed == len(topics) * writers or time.monotonic() > deadline:
            break
    assert broken or confirmed == len(topics) * writers
    for link in links:
        link.drop()
    return sorted(broken)


def test_producers_that_begin_at_once_harm_no_prepared_partition(driver: Driver, topic: str) -> None:
    """Without the preparation a Pulsar 4.0.7 breaks some of so many."""
    driver.broker.admin.create_partitioned_topic(topic, PARTITIONS)
    prepare(driver.link, topic, PARTITIONS, LIMITS)
    names = [f"{topic}-partition-{number}" for number in range(PARTITIONS)]
    assert begin_at_once(driver.broker, names, writers=4) == []


def test_deduplication_drops_nothing_that_comes_after(driver: Driver, deduplicated_topic: str) -> None:
    """The message has a producer of its own, so it moves no other producer's number."""
    prepare(driver.link, deduplicated_topic, 0, LIMITS)
    driver.write_in_transaction(deduplicated_topic, b"a")
    for known in (0, 2):
        task = TaskProducer(driver.link, LIMITS, Numbered("q-0", 0))
        task.open([deduplicated_topic])
        task.send(deduplicated_topic, [b"b", b"c"], [1, 1])
        assert task.finish().known == known
    assert values_of(driver.broker, deduplicated_topic) == [b"a", b"b", b"c"]


def test_a_topic_that_demands_a_schema_gets_that_of_the_rows(driver: Driver, topic: str) -> None:
    namespace = f"public/{topic.rpartition('/')[2]}"
    driver.broker.admin.create_namespace(namespace)
    driver.broker.admin.set_namespace_policy(namespace, "schemaValidationEnforced", True)
    name = f"persistent://{namespace}/t"
    schema = RegisteredSchema(SchemaInfo(SchemaType.STRING))
    first = TaskProducer(driver.link, replace(LIMITS, schema=schema), None)
    first.open([name])
    first.finish()
    with pytest.raises(SchemaRefused):
        prepare(driver.link, name, 0, LIMITS)
    prepare(driver.link, name, 0, replace(LIMITS, schema=schema))
    assert values_of(driver.broker, name) == []


def test_a_topic_that_could_not_be_prepared_is_tried_again(
    our_driver: Driver, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing of the failed attempt is left: its transaction is over."""
    aborted = []

    def counted(*arguments: Any) -> None:
        aborted.append(arguments)
        abort_quietly(*arguments)

    monkeypatch.setattr(preparing, "abort_quietly", counted)
    our_driver.broker.admin.create_topic(topic)
    our_driver.broker.admin.terminate(topic)
    with pytest.raises(WriteFailed, match=topic):
        prepare(our_driver.link, topic, 0, LIMITS)
    our_driver.broker.admin.delete_topic(topic, force=True)
    prepare(our_driver.link, topic, 0, LIMITS)
    assert (our_driver.sent(topic), len(aborted)) == (1, 2)


@pytest.mark.parametrize(
    ("options", "messages"),
    [
        ({"deliveryGuarantee": "transactions", "writeId": "w"}, 1),
        ({"deliveryGuarantee": "exactly-once", "writeId": "w"}, 0),
        ({}, 0),
    ],
)
def test_only_writes_in_transactions_are_prepared(
    our_driver: Driver, topic: str, options: dict[str, str], messages: int
) -> None:
    our_driver.broker.admin.create_topic(topic)
    given = {"service.url": our_driver.broker.url, "topic": topic, **options}
    PulsarBatchWriter(parse_write(given, Use.BATCH_WRITE)).prepare()
    assert our_driver.sent(topic) == messages


def test_topics_that_rows_say_are_not_known_to_the_driver(our_driver: Driver) -> None:
    given = {
        "service.url": our_driver.broker.url,
        "deliveryGuarantee": "transactions",
        "writeId": "w",
        "commitNamespace": "public/default",
    }
    PulsarBatchWriter(parse_write(given, Use.BATCH_WRITE)).prepare()
    assert preparing._prepared == set()


def test_a_cluster_without_transactions_says_so(spark_environment: None) -> None:
    broker = OurBroker("--set", "transactionCoordinatorEnabled=false")
    given = {"service.url": broker.url, "topic": "t", "deliveryGuarantee": "transactions", "writeId": "w"}
    try:
        with pytest.raises(WriteFailed, match=r"cannot be opened: .*transactionCoordinatorEnabled"):
            PulsarBatchWriter(parse_write(given, Use.BATCH_WRITE)).prepare()
    finally:
        broker.stop()
