"""Archive, replay, audit and re-drive, one after the other, as one would use them."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import trio
from pyspark.sql import DataFrame, SparkSession

from pulsar_sansio import OutgoingMessage
from pulsar_sansio.schemas import (
    STRING,
    AutoConsume,
    AvroSchema,
    KeyValue,
    KeyValueEncoding,
    KeyValueSchema,
    message_of,
    schema_of,
)
from pulsar_spark.errors import UnsupportedTopic
from pulsar_spark.jobs.archive import archive
from pulsar_spark.jobs.audit import COLUMNS, MessageIdentity, audit
from pulsar_spark.jobs.redrive import redrive
from pulsar_spark.jobs.replay import replay
from pulsar_spark.link import Link
from pulsar_trio import open_client
from tests.spark.scenes.brokers import SparkBroker
from tests.spark.scenes.sending import send

pytestmark = pytest.mark.spark


def keyed(numbers: Sequence[int]) -> list[bytes | OutgoingMessage]:
    return [
        OutgoingMessage(b"order %d" % number, key=f"k{number % 3}", properties={"number": str(number)})
        for number in numbers
    ]


def read(spark: SparkSession, broker: SparkBroker, topic: str, **options: str) -> DataFrame:
    return (
        spark.read.format("pulsar").options(**{"service.url": broker.url, "topic": topic, **options}).load()
    )


def test_archive_and_replay_are_what_was_sent(
    spark: SparkSession, broker: SparkBroker, topic: str, deduplicated_topic: str, tmp_path: Path
) -> None:
    options = {"service.url": broker.url, "topic": topic}
    path = str(tmp_path / "archive")
    send(broker.url, topic, keyed(range(300)))
    first = archive(spark, options, path)
    send(broker.url, topic, keyed(range(300, 500)))
    second = archive(spark, options, path)
    assert (first.messages, second.messages) == (300, 200)

    topic_now = read(spark, broker, topic, columns=",".join(COLUMNS))
    archived = spark.read.parquet(path).select(*COLUMNS)
    assert audit(topic_now, archived, identity=MessageIdentity.POSITION).clean

    broker.admin.create_topic(deduplicated_topic)
    for _ in range(2):  # the second time everything is there
        replayed = replay(spark, path, broker.url, write_id=deduplicated_topic, topic=deduplicated_topic)
        assert replayed.messages == 500
    found = audit(topic_now, read(spark, broker, deduplicated_topic, columns=",".join(COLUMNS)))
    assert (found.sent, found.received, found.clean) == (500, 500, True)


def letters(home: str, reasons: Sequence[str]) -> list[bytes | OutgoingMessage]:
    return [
        OutgoingMessage(
            b"letter %d" % number,
            key="k",
            properties={"REAL_TOPIC": home, "REAL_SUBSCRIPTION": "s", "reason": reason, "kept": "yes"},
        )
        for number, reason in enumerate(reasons)
    ]


@pytest.mark.breaks("INV-C4", why="the subscription is held without being read, and acknowledged by position")
def test_letters_go_home_once_and_the_rest_stays(
    spark: SparkSession, our_broker: SparkBroker, topic: str, deduplicated_topic: str, tmp_path: Path
) -> None:
    dead, book = f"{topic}-s-DLQ", str(tmp_path / "book")
    our_broker.admin.create_topic(deduplicated_topic)
    link = Link(our_broker.url, create_topics=True)
    link.hold(dead, "people").close()
    for each in letters(deduplicated_topic, ["timeout", "timeout", "parse", "timeout"]):
        send(our_broker.url, dead, [each])
    send(our_broker.url, dead, letters("non-persistent://public/default/t", ["from where nothing goes"]))
    timeout = "__messageProperties['reason'] = 'timeout'"
    done = redrive(spark, our_broker.url, dead, book, where=timeout, subscription="people")
    assert (done.moved, done.finished, done.left) == (3, 0, 2)
    hold = link.hold(dead, "people")
    positions = read(spark, our_broker, dead, columns="value,__ledgerId,__entryId").collect()
    by_value = {bytes(row.value): (row["__ledgerId"], row["__entryId"]) for row in positions}
    assert hold.mark_delete() == by_value[b"letter 1"], "up to the first that is left"
    link.close()

    done = redrive(spark, our_broker.url, dead, book)
    assert (done.moved, done.left) == (1, 1)
    with pytest.raises(UnsupportedTopic):  # before it is in the book
        redrive(spark, our_broker.url, dead, book, to="non-persistent://public/default/t")
    home = read(spark, our_broker, deduplicated_topic).collect()
    assert [bytes(row.value) for row in home] == [b"letter 0", b"letter 1", b"letter 3", b"letter 2"]
    assert all(row["__messageProperties"].keys() == {"reason", "kept"} for row in home)


def test_an_interrupted_run_is_finished_under_its_name(
    spark: SparkSession,
    our_broker: SparkBroker,
    topic: str,
    deduplicated_topic: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Killed after its letters were written and before that was noted: they do not come twice, and go nowhere
    else although the next run has another aim."""
    dead, book = f"{topic}-s-DLQ", str(tmp_path / "book")
    our_broker.admin.create_topic(deduplicated_topic)
    send(our_broker.url, dead, letters(deduplicated_topic, ["a", "b"]))

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr("pulsar_spark.jobs.redrive._Book.done", killed)
        redrive(spark, our_broker.url, dead, book, where="__messageProperties['reason'] = 'a'")
    elsewhere = f"{deduplicated_topic}-elsewhere"
    done = redrive(spark, our_broker.url, dead, book, to=elsewhere)  # as for the letters of this run
    assert (done.finished, done.moved, done.left) == (1, 1, 0)
    for topic, letter in ((deduplicated_topic, b"letter 0"), (elsewhere, b"letter 1")):
        found = read(spark, our_broker, topic).collect()
        assert [bytes(row.value) for row in found] == [letter]
    states = [row.state for row in spark.read.parquet(f"{book}/runs").collect()]
    assert sorted(states) == ["done", "done", "planned", "planned"]


TEXT = '{"type":"record","name":"Order","fields":[{"name":"id","type":"string"}%s]}'
FIRST = AvroSchema(definition=TEXT % "")
SECOND = AvroSchema(definition=TEXT % ',{"name":"amount","type":"int","default":1}')
VALUES = [{"id": "a"}, {"id": "b", "amount": 7}, None, {"id": "c"}]
"""Values that are read again: of two versions of one schema, and bytes in between."""


def typed(properties: dict[str, str]) -> list[bytes | OutgoingMessage]:
    return [
        message_of({"id": "a"}, FIRST, key="k", properties=properties),
        message_of({"id": "b", "amount": 7}, SECOND, properties=properties),
        OutgoingMessage(b"bytes", properties=properties),
        message_of({"id": "c"}, FIRST, properties=properties),
    ]


def values_of(url: str, topic: str) -> list[Any]:
    """The values in a topic, each read by the definition of its version; None for bytes."""

    async def main() -> list[Any]:
        async with (
            open_client(url) as client,
            client.create_reader(topic, "earliest", schema=AutoConsume()) as reader,
        ):
            return [
                message.value if message.schema_version else None async for message in reader.until_latest()
            ]

    return trio.run(main)


def test_redriven_letters_keep_their_schemas(
    spark: SparkSession, broker: SparkBroker, topic: str, deduplicated_topic: str, tmp_path: Path
) -> None:
    """The topic has other versions than the dead-letter topic: the definitions travel, not the numbers."""
    dead, book = f"{topic}-s-DLQ", str(tmp_path / "book")
    broker.admin.create_topic(deduplicated_topic)
    send(broker.url, deduplicated_topic, [message_of({"id": "x", "amount": 0}, SECOND)])
    send(broker.url, dead, typed({"REAL_TOPIC": deduplicated_topic, "reason": "timeout"}))
    assert redrive(spark, broker.url, dead, book).moved == 4
    assert values_of(broker.url, deduplicated_topic) == [{"id": "x", "amount": 0}, *VALUES]
    versions = [
        row["__schemaVersion"] and int.from_bytes(row["__schemaVersion"])
        for row in read(spark, broker, deduplicated_topic, columns="__schemaVersion").collect()
    ]
    assert versions == [0, 1, 0, None, 1]


def test_a_replay_keeps_the_schemas(
    spark: SparkSession, broker: SparkBroker, topic: str, deduplicated_topic: str, tmp_path: Path
) -> None:
    path = str(tmp_path / "archive")
    send(broker.url, topic, typed({}))
    archive(spark, {"service.url": broker.url, "topic": topic}, path)
    broker.admin.create_topic(deduplicated_topic)
    for _ in range(2):
        replay(spark, path, broker.url, write_id=deduplicated_topic, topic=deduplicated_topic)
    assert values_of(broker.url, deduplicated_topic) == VALUES


PAIR = KeyValueSchema(STRING, STRING, KeyValueEncoding.SEPARATED)
PAIRS: list[Any] = [
    KeyValue("k", "a"),
    KeyValue(None, "b"),
    KeyValue("", "c"),
    KeyValue("k", None),
]


def pairs(properties: dict[str, str]) -> list[bytes | OutgoingMessage]:
    return [message_of(pair, PAIR, properties=properties) for pair in PAIRS]


def keys_of(url: str, topic: str) -> list[tuple[object, str | None, bool, bool]]:
    """The pairs in a topic, and their keys as they travel: text, Base64 or not, null or not."""

    async def main() -> list[tuple[object, str | None, bool, bool]]:
        async with (
            open_client(url) as client,
            client.create_reader(topic, "earliest", schema=AutoConsume()) as reader,
        ):
            return [
                (each.value, each.key, each.has_base64_key, each.has_null_key)
                async for each in reader.until_latest()
            ]

    return trio.run(main)


@pytest.mark.parametrize("job", ["replay", "redrive"])
def test_separated_pairs_keep_their_keys(
    spark: SparkSession, broker: SparkBroker, topic: str, deduplicated_topic: str, tmp_path: Path, job: str
) -> None:
    """SCHEMA-09: keys of pairs are bytes, also where they could be text, and a null key is marked."""
    broker.admin.create_topic(deduplicated_topic)
    if job == "replay":
        path = str(tmp_path / "archive")
        send(broker.url, topic, pairs({}))
        archive(spark, {"service.url": broker.url, "topic": topic}, path)
        replay(spark, path, broker.url, write_id=deduplicated_topic, topic=deduplicated_topic)
    else:
        topic = f"{topic}-s-DLQ"
        send(broker.url, topic, pairs({"REAL_TOPIC": deduplicated_topic}))
        assert redrive(spark, broker.url, topic, str(tmp_path / "book")).moved == len(PAIRS)
    sent = keys_of(broker.url, topic)
    assert [pair for pair, *_ in sent] == PAIRS
    assert [is_null for *_, is_null in sent] == [False, True, False, False]
    assert keys_of(broker.url, deduplicated_topic) == sent


def test_letters_whose_schema_the_topic_refuses_stay(
    spark: SparkSession, our_broker: SparkBroker, topic: str, deduplicated_topic: str, tmp_path: Path
) -> None:
    dead = f"{topic}-s-DLQ"
    our_broker.admin.create_topic(deduplicated_topic)
    send(our_broker.url, deduplicated_topic, [message_of("text", schema_of(str))])
    send(our_broker.url, dead, typed({"REAL_TOPIC": deduplicated_topic}))
    with pytest.raises(Exception, match=r"SchemaRefused: .*the broker refuses the schema of the rows"):
        redrive(spark, our_broker.url, dead, str(tmp_path / "book"))
    assert len(read(spark, our_broker, deduplicated_topic).collect()) == 1
