"""A driver of its own that writes files to a topic as a stream, to be killed.

    python -m tests.spark.driver URL TOPIC FOLDER

The folder has the files, the checkpoint and the plan of ends.
"""

import sys
from pathlib import Path

from pyspark.sql import SparkSession

from .conftest import spark_settings
from .faulty import FaultySource


def main(url: str, topic: str, where: str) -> None:
    folder = Path(where)
    builder = SparkSession.builder.appName("a driver to be killed")
    for name, value in spark_settings(folder).items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.dataSource.register(FaultySource)
    jvm = spark.sparkContext._jvm
    assert jvm is not None
    (folder / "faults" / "jvm").write_text(str(jvm.java.lang.ProcessHandle.current().pid()))
    rows = spark.readStream.format("text").option("maxFilesPerTrigger", 2).load(str(folder / "in"))
    writer = rows.writeStream.format("pulsar-faulty").option("service.url", url).option("topic", topic)
    writer = writer.option("deliveryGuarantee", "exactly-once").option("batchMaxMessages", "4")
    writer = writer.option("faults", str(folder / "faults"))
    query = writer.option("checkpointLocation", str(folder / "checkpoint")).trigger(availableNow=True).start()
    query.awaitTermination()


if __name__ == "__main__":
    main(*sys.argv[1:])
