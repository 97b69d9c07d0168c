"""A driver of its own that writes files to topics as streams, to be killed.

    python -m tests.spark.scenes.driver GUARANTEE URL TOPIC FOLDER [URL TOPIC FOLDER …]

A query with that deliveryGuarantee for each, all at the same time. A folder has the files, the checkpoint and
the plan of ends.
"""

import sys
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql.streaming import StreamingQuery

from tests.spark.conftest import spark_settings
from tests.spark.scenes.faulty import FaultySource


def main(guarantee: str, *arguments: str) -> None:
    wanted = list(zip(arguments[::3], arguments[1::3], map(Path, arguments[2::3]), strict=True))
    builder = SparkSession.builder.appName("a driver to be killed")
    for name, value in spark_settings(wanted[0][2]).items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.dataSource.register(FaultySource)
    queries = [start(spark, guarantee, url, topic, folder) for url, topic, folder in wanted]
    for query in queries:
        query.awaitTermination()


def start(spark: SparkSession, guarantee: str, url: str, topic: str, folder: Path) -> StreamingQuery:
    """One query; the JVM's number is where its plan is looked for."""
    jvm = spark.sparkContext._jvm
    assert jvm is not None
    (folder / "faults" / "jvm").write_text(str(jvm.java.lang.ProcessHandle.current().pid()))
    rows = spark.readStream.format("text").option("maxFilesPerTrigger", 2).load(str(folder / "in"))
    writer = rows.writeStream.format("pulsar-faulty").option("service.url", url).option("topic", topic)
    writer = writer.option("deliveryGuarantee", guarantee).option("batchMaxMessages", "4")
    writer = writer.option("faults", str(folder / "faults"))
    return writer.option("checkpointLocation", str(folder / "checkpoint")).trigger(availableNow=True).start()


if __name__ == "__main__":
    main(*sys.argv[1:])
