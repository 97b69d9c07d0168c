"""Archive: topics into Parquet, as far as they are now; the next run goes on from there.

Exactly once: where the query is stands in Spark's checkpoint, and Parquet written by a query names its files
in a log of its own. The archive has all columns, positions included, so it can be audited against the topic.
Owns how an archive is laid out; what is read is the data source's.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..progress import Show, followed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DATE = "publish_date"
"""The column by which an archive is cut into folders: the day of `__publishTime`, in the session's zone."""

CHECKPOINT = "_checkpoint"
"""The folder of the archive in which the query keeps its place. Readers of Parquet pass over names with this
beginning."""


@dataclass(frozen=True)
class Archived:
    """The result of one archive run. `batches`: the progress of its micro-batches, as Spark reports it."""

    messages: int
    batches: list[dict[str, Any]]


def archive(
    spark: "SparkSession",
    options: Mapping[str, str],
    path: str,
    *,
    checkpoint: str | None = None,
    show: Show | None = None,
) -> Archived:
    """Add to the archive at `path` what came since the last run; the first begins at the earliest message.

    `options` are those of a stream read: `service.url`, what to read, limits per batch, a `subscription` that
    keeps what is not archived yet. `checkpoint` is by default in the archive. One run at a time.
    """
    from pyspark.sql import functions as f

    given = {"columns": "all", "startingOffsets": "earliest", **options}
    if "startingTimestamp" in options:
        del given["startingOffsets"]
    frame = spark.readStream.format("pulsar").options(**given).load()
    writer = (
        frame.withColumn(DATE, f.to_date("__publishTime"))
        .writeStream.format("parquet")
        .partitionBy(DATE)
        .option("path", path)
        .option("checkpointLocation", checkpoint or f"{path.rstrip('/')}/{CHECKPOINT}")
        .queryName("archive")
        .trigger(availableNow=True)
    )
    batches = followed(writer.start, show)
    return Archived(sum(each["numInputRows"] for each in batches), batches)
