"""The measured rows: functions of a session and a `Setting` that return the number of rows that went through.

This module runs in a process of its own: `python -m bench.spark.rows MASTER`, with settings and answers as
lines of JSON. So the number of slots is that process's, and so is all of its processor time.
"""

import json
import os
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

from pyspark import cloudpickle
from pyspark.sql import DataFrame, SparkSession

from bench.spark import memory
from bench.spark.processes import used
from pulsar_spark.progress import as_dict
from pulsar_spark.session import open_session

TASKS = 2
"""Tasks that share a topic: one for each slot if there are two slots."""

MICRO_BATCH = 1000
"""Messages of one, which is one entry of the topic."""


@dataclass(frozen=True, slots=True)
class Setting:
    """`workload` is a name of `WORKLOADS`; `topics` are there and full but for those that are written."""

    workload: str
    url: str
    topics: tuple[str, ...]
    rows: int


@dataclass(frozen=True, slots=True)
class Measured:
    """`seconds` by the clock, processor seconds of driver, JVM and workers; resident bytes of the largest
    worker."""

    rows: int
    seconds: float
    cpu_seconds: float
    worker_bytes: int


def read(spark: SparkSession, setting: Setting, schema: str | None = None) -> DataFrame:
    reader = spark.read.format("pulsar").option("service.url", setting.url)
    reader = reader.option("topics", ",".join(setting.topics))
    if schema is None:
        return reader.option("columns", "all").option("minPartitions", TASKS).load()
    return reader.option("minPartitions", TASKS).schema(schema).load()


def to_nowhere(frame: DataFrame) -> None:
    frame.write.format("noop").mode("overwrite").save()


def read_value(spark: SparkSession, setting: Setting) -> int:
    to_nowhere(read(spark, setting, "value binary"))
    return setting.rows


def read_all(spark: SparkSession, setting: Setting) -> int:
    to_nowhere(read(spark, setting))
    return setting.rows


def read_memory(spark: SparkSession, setting: Setting) -> int:
    """The batches of `read_value` out of memory: what a source in Python can do."""
    to_nowhere(spark.read.format("memory").options(rows=str(setting.rows), tasks=str(TASKS)).load())
    return setting.rows


def run_stream(frame: DataFrame, sink: str = "noop", **options: str) -> list[dict[str, Any]]:
    """Stream all rows that are there. Returns the progress of the batches that had rows."""
    with tempfile.TemporaryDirectory(prefix="bench-spark-") as folder:
        writing = frame.writeStream.format(sink).options(**options).option("checkpointLocation", folder)
        query = writing.trigger(availableNow=True).start()
        query.awaitTermination()
        return [found for each in query.recentProgress if (found := as_dict(each))["numInputRows"]]


def stream(spark: SparkSession, setting: Setting, **options: str) -> DataFrame:
    reader = spark.readStream.format("pulsar").option("service.url", setting.url)
    reader = reader.option("topics", ",".join(setting.topics)).option("startingOffsets", "earliest")
    return reader.options(**options).schema("value binary").load()


def stream_value(spark: SparkSession, setting: Setting) -> int:
    batches = run_stream(stream(spark, setting, minPartitions=str(TASKS)))
    return sum(each["numInputRows"] for each in batches)


def stream_rate(spark: SparkSession, setting: Setting) -> int:
    """Spark's own source, in the JVM: what the engine can do. One batch of so many rows."""
    reader = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", setting.rows)
    batches = run_stream(reader.option("numPartitions", TASKS).load())
    return sum(each["numInputRows"] for each in batches)


def micro_batches(spark: SparkSession, setting: Setting) -> int:
    """Small batches; the rows are the milliseconds of the median batch, times 1000."""
    return _median_batch(spark, setting, "noop")


def micro_batches_exactly_once(spark: SparkSession, setting: Setting) -> int:
    """Small batches that are written to another topic."""
    return _median_batch(spark, setting, "pulsar", **_target(setting, "exactly-once"))


def micro_batches_in_transactions(spark: SparkSession, setting: Setting) -> int:
    return _median_batch(spark, setting, "pulsar", **_target(setting, "transactions"))


def _target(setting: Setting, guarantee: str) -> dict[str, str]:
    name = f"{setting.topics[0]}-{guarantee}"
    return {"service.url": setting.url, "topic": name, "deliveryGuarantee": guarantee}


def _median_batch(spark: SparkSession, setting: Setting, sink: str, **options: str) -> int:
    batches = run_stream(stream(spark, setting, maxMessagesPerTrigger=str(MICRO_BATCH)), sink, **options)
    return int(1000 * median(each["durationMs"]["triggerExecution"] for each in batches))


def write_at_least_once(spark: SparkSession, setting: Setting) -> int:
    return _write(spark, setting, "at-least-once")


def write_exactly_once(spark: SparkSession, setting: Setting) -> int:
    return _write(spark, setting, "exactly-once", writeId=setting.topics[0])


def write_in_transactions(spark: SparkSession, setting: Setting) -> int:
    return _write(spark, setting, "transactions", writeId="bench")


def _write(spark: SparkSession, setting: Setting, guarantee: str, **options: str) -> int:
    value = f"cast(concat('{'.' * 87}', {10**12} + id) AS binary) AS value"  # 100 B; `lpad` costs 1.5 us
    rows = spark.range(0, setting.rows, 1, 2).selectExpr(value)
    writing = rows.write.format("pulsar").mode("append").option("service.url", setting.url)
    writing = writing.option("topic", setting.topics[0]).option("deliveryGuarantee", guarantee)
    writing.options(**options).save()
    return setting.rows


STRUCT = (
    "struct(id, id / 3 AS price, concat('name-', id) AS name, timestamp_micros(1767225600000000 + id) AS at, "
    "array('a', 'b') AS tags)"
)
"""A row of five fields; about 40 bytes as Avro, 110 as JSON."""


def write_text(spark: SparkSession, setting: Setting) -> int:
    """The struct as JSON that Spark makes, without a schema: what typed writes are compared with."""
    return _write_struct(spark, setting, f"to_json({STRUCT})", "none")


def write_json(spark: SparkSession, setting: Setting) -> int:
    return _write_struct(spark, setting, STRUCT, "json")


def write_avro(spark: SparkSession, setting: Setting) -> int:
    return _write_struct(spark, setting, STRUCT, "avro")


def _write_struct(spark: SparkSession, setting: Setting, value: str, schema: str) -> int:
    rows = spark.range(0, setting.rows, 1, 2).selectExpr(f"{value} AS value")
    writing = rows.write.format("pulsar").mode("append").option("service.url", setting.url)
    writing.option("topic", setting.topics[0]).option("valueSchema", schema).save()
    return setting.rows


def read_typed(spark: SparkSession, setting: Setting) -> int:
    """The column `value` of the type of the topic's schema."""
    reader = spark.read.format("pulsar").option("service.url", setting.url)
    reader = reader.options(topics=",".join(setting.topics), valueType="schema", columns="value")
    to_nowhere(reader.option("minPartitions", TASKS).load())
    return setting.rows


WORKLOADS: dict[str, Callable[[SparkSession, Setting], int]] = {
    "read_value": read_value,
    "read_all": read_all,
    "read_memory": read_memory,
    "stream_value": stream_value,
    "stream_rate": stream_rate,
    "micro_batches": micro_batches,
    "micro_batches_exactly_once": micro_batches_exactly_once,
    "micro_batches_in_transactions": micro_batches_in_transactions,
    "write_at_least_once": write_at_least_once,
    "write_exactly_once": write_exactly_once,
    "write_in_transactions": write_in_transactions,
    "write_text": write_text,
    "write_json": write_json,
    "write_avro": write_avro,
    "read_typed": read_typed,
}


def measure(spark: SparkSession, setting: Setting) -> Measured:
    before, started = used(os.getpid()), time.perf_counter()
    rows = WORKLOADS[setting.workload](spark, setting)
    seconds, after = time.perf_counter() - started, used(os.getpid())
    return Measured(rows, seconds, after.cpu_seconds - before.cpu_seconds, max(after.workers, default=0))


def main(master: str) -> None:
    spark = open_session("bench", master, {"spark.sql.shuffle.partitions": "2", "spark.driver.memory": "2g"})
    cloudpickle.register_pickle_by_value(memory)
    spark.dataSource.register(memory.MemorySource)
    for line in sys.stdin:
        fields = json.loads(line)
        setting = Setting(**{**fields, "topics": tuple(fields["topics"])})
        try:
            answer: dict[str, object] = asdict(measure(spark, setting))
        except Exception as error:  # the parent shows it, and goes on
            answer = {"error": " ".join(str(error).split())[:500]}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
