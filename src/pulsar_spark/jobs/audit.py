"""Audit: check that everything sent arrived, once, and in order; over any number of messages.

An audit compares two sides: two topics, or a topic and its archive. Messages of both sides match by their
identity (`MessageIdentity`). Spark groups both sides by a digest of it. So it holds no message twice, and
shuffles only digests and positions. This module owns the meaning of the six numbers; the caller decides what
is read.
"""

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

from ..progress import Show, watched

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

COLUMNS = (
    "value",
    "__key",
    "__topic",
    "__eventTime",
    "__messageProperties",
    "__orderingKey",
    "__producerName",
    "__sequenceId",
    "__ledgerId",
    "__entryId",
    "__batchIndex",
)
"""An audit reads these columns of each side; for the option `columns`."""

POSITION = ("__topic", "__ledgerId", "__entryId", "__batchIndex")

EXAMPLES = 20
"""Messages shown of what is wrong."""


class MessageIdentity(Enum):
    """The fields by which an audit matches a message of one side with one of the other."""

    CONTENT = "content"
    """Key, value, event time, ordering key and properties: what a copy keeps. Of several messages with the
    same content so many have to arrive."""
    SEQUENCE = "sequence"
    """Topic, producer and sequence id: an archive that was not made by us, a second reading."""
    POSITION = "position"
    """Topic, ledger, entry and index in the batch: a topic and its archive."""


@dataclass(frozen=True)
class Finding:
    """An example: a message of the sent side, or a message of the received side that no producer sent."""

    kind: str
    topic: str
    ledger: int
    entry: int
    batch_index: int
    key: bytes | None
    times: int


@dataclass(frozen=True)
class Audited:
    """Numbers of messages."""

    sent: int
    received: int
    lost: int
    """Sent, and received less often than that."""
    duplicated: int
    """Received more often than sent."""
    foreign: int
    """Received, and never sent."""
    reordered: int
    """Received behind one that was sent later; within a topic partition, of messages with a key among those
    with the same key, else among those of the same producer."""
    examples: tuple[Finding, ...] = ()

    @property
    def clean(self) -> bool:
        return not (self.lost or self.duplicated or self.foreign or self.reordered)


def audit(
    sent: "DataFrame",
    received: "DataFrame",
    *,
    identity: MessageIdentity = MessageIdentity.CONTENT,
    show: Show | None = None,
) -> Audited:
    """Compare two DataFrames that have the columns `COLUMNS`, each being one snapshot."""
    from pyspark.sql import functions as f

    judged = _judged(_grouped(sent, received, identity))
    kinds = ("sent", "received", "lost", "duplicated", "foreign", "reordered")
    totals = judged.agg(*(f.coalesce(f.sum(kind), f.lit(0)).alias(kind) for kind in kinds))
    spark = sent.sparkSession
    numbers = watched(spark, "audit: compare", totals.collect, show)[0].asDict()
    found = Audited(**numbers)
    if found.clean:
        return found
    wrong = judged.where("lost + duplicated + foreign + reordered > 0").limit(EXAMPLES)
    rows = watched(spark, "audit: examples", wrong.collect, show)
    return Audited(**numbers, examples=tuple(_finding(row) for row in rows))


def _side(frame: "DataFrame", identity: MessageIdentity, is_sent: bool) -> "DataFrame":
    from pyspark.sql import functions as f

    parts: list[Column]
    match identity:
        case MessageIdentity.CONTENT:
            properties = f.array_sort(f.map_entries("__messageProperties"))
            parts = [*map(f.col, ("__key", "value", "__eventTime", "__orderingKey")), properties]
        case MessageIdentity.SEQUENCE:
            parts = [*map(f.col, ("__topic", "__producerName", "__sequenceId"))]
        case MessageIdentity.POSITION:
            parts = [*map(f.col, POSITION)]
    nothing = [f.isnull(part) for part in parts]  # a hash passes over nulls
    where = f.struct(*POSITION, "__producerName", "__key")
    return frame.select(
        f.xxhash64(*parts, *nothing).alias("one"),
        f.xxhash64(f.lit("other"), *reversed(parts), *nothing).alias("other"),
        f.lit(int(is_sent)).alias("is_sent"),
        where.alias("at"),
    )


def _grouped(sent: "DataFrame", received: "DataFrame", identity: MessageIdentity) -> "DataFrame":
    """A row per identity: how often on each side, and where first."""
    from pyspark.sql import functions as f

    sides = _side(sent, identity, True).unionAll(_side(received, identity, False))
    on_sent = f.col("is_sent") == 1
    return sides.groupBy("one", "other").agg(
        f.sum("is_sent").alias("sent"),
        f.sum(1 - f.col("is_sent")).alias("received"),
        f.min(f.when(on_sent, f.col("at"))).alias("sent_at"),
        f.min(f.when(~on_sent, f.col("at"))).alias("received_at"),
    )


def _judged(grouped: "DataFrame") -> "DataFrame":
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    sent, received = f.col("sent"), f.col("received")
    nothing = f.lit(0)
    place = [f.col(f"sent_at.{name}") for name in POSITION[1:]]
    turn = [f.col(f"received_at.{name}") for name in POSITION[1:]]
    stream: list[Any] = [
        f.col("sent_at.__topic"),
        f.col("received_at.__topic"),
        f.col("sent_at.__key"),
        f.when(f.isnull("sent_at.__key"), f.col("sent_at.__producerName")),
    ]
    before = Window.partitionBy(*stream).orderBy(*turn).rowsBetween(Window.unboundedPreceding, -1)
    latest = f.max(f.struct(*place)).over(before)
    on_both = (sent > 0) & (received > 0)
    return grouped.select(
        "*",
        f.greatest(sent - received, nothing).alias("lost"),
        f.when(sent > 0, f.greatest(received - sent, nothing)).otherwise(0).alias("duplicated"),
        f.when(sent == 0, received).otherwise(0).alias("foreign"),
        f.when(on_both & (latest > f.struct(*place)), 1).otherwise(0).alias("reordered"),
    )


def _finding(row: Any) -> Finding:
    kinds = ("lost", "duplicated", "foreign", "reordered")
    kind = next(kind for kind in kinds if row[kind])
    at = row.sent_at or row.received_at
    key = None if at["__key"] is None else bytes(at["__key"])
    topic, ledger, entry, batch_index = (at[name] for name in POSITION)
    return Finding(kind, topic, ledger, entry, batch_index, key, row[kind])
