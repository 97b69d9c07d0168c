"""Queries over encrypted topics: they are written, read, and streamed, and a key that is missing is named."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import trio

from pulsar_spark.errors import MissingOption
from pulsar_spark.jobs.redrive import redrive
from pulsar_trio import OutgoingMessage, open_client
from tests.spark.scenes.brokers import SparkBroker
from tests.spark.scenes.sending import send
from tests.suite.encryption.key_files import KeyFiles, key_files

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


@pytest.fixture
def keys(tmp_path: Path) -> KeyFiles:
    return key_files(tmp_path, "rsa")


@pytest.fixture
def options(broker: SparkBroker, topic: str) -> dict[str, str]:
    return {"service.url": broker.url, "topic": topic}


def write(spark: "SparkSession", options: dict[str, str], keys: KeyFiles, **more: str) -> None:
    rows = spark.range(100).selectExpr("CAST(CAST(id AS STRING) AS BINARY) AS value")
    encryption = {"encryption.keys": "k", "encryption.keyFiles": str(keys.public)}
    rows.write.format("pulsar").mode("append").options(**options, **encryption, **more).save()


def test_rows_are_written_encrypted_and_read(
    spark: "SparkSession", options: dict[str, str], keys: KeyFiles
) -> None:
    write(spark, options, keys, compression="zstd")
    read = spark.read.format("pulsar").options(**options, **{"encryption.keyFiles": f"k={keys.private}"})
    assert sorted(int(row.value) for row in read.load().collect()) == list(range(100))

    async def contexts() -> list[Any]:
        async with (
            open_client(options["service.url"]) as client,
            client.create_reader(options["topic"], "earliest", crypto_failure_action="consume") as reader,
        ):
            return [message.encryption_context async for message in reader.until_latest()]

    found = trio.run(contexts)
    assert found
    assert all(context is not None and context.decryption_failed for context in found)


def test_a_stream_reads_an_encrypted_topic(
    spark: "SparkSession", options: dict[str, str], keys: KeyFiles, tmp_path: Path
) -> None:
    write(spark, options, keys)
    reading = {**options, "encryption.keyFiles": str(keys.private), "startingOffsets": "earliest"}
    stream = spark.readStream.format("pulsar").options(**reading).load()
    writing = stream.writeStream.format("parquet").option("checkpointLocation", str(tmp_path / "checkpoint"))
    writing.trigger(availableNow=True).start(str(tmp_path / "rows")).awaitTermination()
    assert spark.read.parquet(str(tmp_path / "rows")).count() == 100


def test_without_the_private_key_a_read_fails_and_names_it(
    spark: "SparkSession", options: dict[str, str], keys: KeyFiles, tmp_path: Path
) -> None:
    write(spark, options, keys)
    other = {"encryption.keyFiles": str(tmp_path / "missing")}
    for given, words in ((other, "encryption key 'k': .*No such file"), ({}, "has no crypto_key_reader")):
        with pytest.raises(Exception, match=f"(?s)UnreadableMessages.*cannot be decrypted.*{words}"):
            spark.read.format("pulsar").options(**options, **given).load().collect()


def test_without_the_public_key_a_write_fails_and_names_it(
    spark: "SparkSession", options: dict[str, str], keys: KeyFiles, tmp_path: Path
) -> None:
    missing = KeyFiles(tmp_path / "missing", keys.private)
    with pytest.raises(Exception, match=r"(?s)encryption key 'k': .*No such file"):
        write(spark, options, missing)


def letters_of(broker: SparkBroker, dead: str, home: str, public: Path | None) -> None:
    """Send two letters, the last one encrypted if there is a key."""
    letter = {"REAL_TOPIC": home, "reason": "timeout"}
    send(broker.url, dead, [OutgoingMessage(b"plain", key="k", properties=letter)])
    if public is None:
        return

    async def main() -> None:
        async with (
            open_client(broker.url) as client,
            client.create_producer(dead, encryption_keys=("k",), crypto_key_reader=public) as producer,
        ):
            await producer.send(OutgoingMessage(b"secret", key="k", properties=letter))

    trio.run(main)


def test_letters_are_encrypted_again(
    spark: "SparkSession", broker: SparkBroker, topic: str, keys: KeyFiles, tmp_path: Path
) -> None:
    """Letters that the consumer has encrypted, and others, go to their topic encrypted."""
    dead, book = f"{topic}-s-DLQ", str(tmp_path / "book")
    broker.admin.create_topic(topic)
    letters_of(broker, dead, topic, keys.public)
    private = {"encryption.keyFiles": str(keys.private)}
    with pytest.raises(MissingOption, match="are encrypted again"):
        redrive(spark, broker.url, dead, book, access=private, exactly_once=False)
    public = {"k": str(keys.public)}
    with pytest.raises(Exception, match="cannot be decrypted"):
        redrive(spark, broker.url, dead, book, encrypt=public, exactly_once=False)
    done = redrive(spark, broker.url, dead, book, access=private, encrypt=public, exactly_once=False)
    assert (done.moved, done.left) == (2, 0)
    options = {"service.url": broker.url, "topic": topic}
    with pytest.raises(Exception, match="cannot be decrypted"):
        spark.read.format("pulsar").options(**options).load().collect()
    rows = spark.read.format("pulsar").options(**options, **private).load().collect()
    assert [bytes(row.value) for row in rows] == [b"plain", b"secret"]
    assert all(row["__messageProperties"] == {"reason": "timeout"} for row in rows)
