"""Replay: an archive back into topics, in the order it had, once however often it is begun again.

One task writes all messages of one topic partition, in the order of their positions. So the order within a
key stays the same, and a second run numbers every message as the first did. This module owns that
order; the sink ensures that no message is written twice.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..progress import Show, watched

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COLUMNS = ("value", "__key", "__eventTime", "__messageProperties", "__orderingKey")
"""A replay writes these columns of each archived message."""

ORDER = ("__topic", "__ledgerId", "__entryId", "__batchIndex")

MOST_TASKS = 64


@dataclass(frozen=True)
class Replayed:
    """The number of messages that the job read from the archive and the broker confirmed."""

    messages: int


def replay(
    spark: "SparkSession",
    path: str,
    service_url: str,
    *,
    write_id: str,
    topic: str | None = None,
    where: str | None = None,
    exactly_once: bool = True,
    access: Mapping[str, str] | None = None,
    show: Show | None = None,
) -> Replayed:
    """Write the archive at `path` to `topic`, or every message to the topic that it came from.

    `write_id` names this replay: begun again under the same name, over the same archive and with the same
    `where`, no message is written twice. `where` is a condition in SQL over the archive's columns.
    `exactly_once` needs deduplication on the topics; without it a message may be written twice when a
    task fails. A message keeps the definition of its schema while its first topic has it. `access`: options
    `tls.…`, `auth.…`, `encryption.…` and `broker.hosts` of the sink.
    """
    from pyspark.sql import Observation
    from pyspark.sql import functions as f

    rows = spark.read.parquet(path)
    if where is not None:
        rows = rows.where(where)
    counted = Observation("replayed")
    tasks = min(MOST_TASKS, max(1, rows.select("__topic").distinct().count()))
    # Sorted by Spark, which needs no memory for all of it; the sink has nothing left to put in order.
    schema = ["__schemaVersion", f.col("__topic").alias("__schemaTopic")]
    rows = rows.select(*COLUMNS, *schema, *ORDER).repartition(tasks, "__topic").sortWithinPartitions(*ORDER)
    options = {**(access or {}), "service.url": service_url}
    if topic is not None:
        options["topic"] = topic
    if exactly_once:
        options |= {
            "deliveryGuarantee": "exactly-once",
            "writeId": write_id,
            "canonicalOrder": "false",
        }
    writing = (
        rows.observe(counted, f.count("*").alias("messages"))
        .write.format("pulsar")
        .mode("append")
        .options(**options)
    )
    watched(spark, "replay", writing.save, show)
    return Replayed(counted.get["messages"])
