"""A driver of a standalone cluster, which reads what to run from its standard input, a JSON object a line.

    python -m tests.spark.security.cluster_driver FOLDER

The first line has the settings. Each answer is a line of JSON. At the end of the input the driver saves the
pages of its UI in the folder.
"""

import json
import sys
from pathlib import Path
from typing import Any
from urllib.request import urlopen

from pyspark.sql import SparkSession

from pulsar_spark.progress import patiently
from tests.spark.scenes.faulty import FaultySource

PAGES = ("jobs", "stages", "environment", "executors", "SQL", "StreamingQuery", "storage")


def main(folder: str) -> None:
    builder = SparkSession.builder.appName("a driver of a cluster")
    for name, value in json.loads(sys.stdin.readline()).items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.dataSource.register(FaultySource)
    print("true", flush=True)
    for line in sys.stdin:
        print(json.dumps(run(spark, json.loads(line))), flush=True)
    save_pages(spark, Path(folder))
    spark.stop()


def run(spark: SparkSession, wanted: dict[str, Any]) -> object:
    if "count" in wanted:
        return spark.read.format("pulsar").options(**wanted["count"]).load().count()
    rows = spark.readStream.format("pulsar").options(**wanted["source"]).load().select("value")
    writer = rows.writeStream.format("pulsar-faulty").options(**wanted["sink"])
    writer = writer.option("checkpointLocation", wanted["checkpoint"]).trigger(availableNow=True)
    patiently(lambda: writer.start().awaitTermination())
    return True


def save_pages(spark: SparkSession, folder: Path) -> None:
    """Save what a user of the UI and of its REST interface sees."""
    context = spark.sparkContext
    rest = f"api/v1/applications/{context.applicationId}"
    queries = read(context.uiWebUrl, f"{rest}/sql?details=true&planDescription=true&length=1000")
    (folder / "sql.json").write_bytes(queries)
    paths = [*PAGES, *(f"SQL/execution?id={each['id']}" for each in json.loads(queries))]
    paths += [f"{rest}/{name}" for name in ("environment", "jobs", "stages?details=true")]
    for number, path in enumerate(paths):
        (folder / f"{number}.html").write_bytes(read(context.uiWebUrl, path))


def read(url: str, path: str) -> bytes:
    with urlopen(f"{url}/{path}", timeout=60) as answer:
        content: bytes = answer.read()
    return content


if __name__ == "__main__":
    main(*sys.argv[1:])
