"""The audit finds what was planted, and nothing else."""

from collections.abc import Sequence
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from pulsar_spark.jobs.audit import Audited, MessageIdentity, audit

pytestmark = pytest.mark.spark

SCHEMA = (
    "value binary, __key binary, __topic string, __eventTime timestamp, "
    "__messageProperties map<string,string>, __orderingKey binary, __producerName string, "
    "__sequenceId bigint, __ledgerId bigint, __entryId bigint, __batchIndex int"
)


def side(spark: SparkSession, topic: str, values: Sequence[tuple[str | None, str]]) -> DataFrame:
    """Messages, key and value, in this order, four to an entry."""
    rows: list[tuple[Any, ...]] = [
        (
            *(value.encode(), None if key is None else key.encode(), topic, None, {"b": "2", "a": "1"}, None),
            *("producer", number, 7, number // 4, number % 4),
        )
        for number, (key, value) in enumerate(values)
    ]
    return spark.createDataFrame(rows, SCHEMA)


MESSAGES = [("k" if number % 3 else None, f"v{number}") for number in range(40)]


def numbers(audited: Audited) -> tuple[int, ...]:
    return (audited.lost, audited.duplicated, audited.foreign, audited.reordered)


def test_the_same_is_clean(spark: SparkSession) -> None:
    audited = audit(side(spark, "a", MESSAGES), side(spark, "b", MESSAGES))
    assert (audited.sent, audited.received, audited.clean) == (40, 40, True)
    assert audited.examples == ()


def test_what_was_planted_is_found(spark: SparkSession) -> None:
    received = MESSAGES.copy()
    del received[10]
    received.insert(20, received[3])
    received.append(("k", "no producer sent this"))
    received[31], received[34] = received[34], received[31]  # of the same key, with one of it between
    audited = audit(side(spark, "a", MESSAGES), side(spark, "b", received))
    assert numbers(audited) == (1, 1, 1, 2), audited
    assert {finding.kind for finding in audited.examples} == {"lost", "duplicated", "foreign", "reordered"}
    (lost,) = (finding for finding in audited.examples if finding.kind == "lost")
    assert (lost.topic, lost.ledger, lost.entry, lost.batch_index, lost.key) == ("a", 7, 2, 2, b"k")


def test_order_within_a_key_and_messages_that_are_equal(spark: SparkSession) -> None:
    sent = [("x", "1"), ("y", "2"), (None, "3"), ("x", "4"), *[("k", "same")] * 5, ("z", "5"), ("z", "6")]
    another_order = [sent[1], sent[2], sent[0], *sent[3:]]
    assert audit(side(spark, "a", sent), side(spark, "b", another_order)).clean
    late = [sent[3], sent[1], sent[2], sent[0], *sent[6:]]
    assert numbers(audit(side(spark, "a", sent), side(spark, "b", late))) == (2, 0, 0, 1)


def test_null_and_empty_are_not_the_same(spark: SparkSession) -> None:
    audited = audit(side(spark, "a", [(None, "v")]), side(spark, "b", [("", "v")]))
    assert numbers(audited) == (1, 0, 1, 0)


@pytest.mark.parametrize("identity", [MessageIdentity.POSITION, MessageIdentity.SEQUENCE])
def test_an_archive_has_the_topic_s_own_positions(spark: SparkSession, identity: MessageIdentity) -> None:
    topic, archive = side(spark, "a", MESSAGES), side(spark, "a", [*MESSAGES[:30], ("other", "value")])
    assert numbers(audit(topic, archive, identity=identity)) == (9, 0, 0, 0)
