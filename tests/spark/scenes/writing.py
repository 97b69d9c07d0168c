"""DataFrames and streams of files that tests write with a real Spark, and plans of where tasks are to end."""

import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from tests.spark.scenes.brokers import SparkBroker


def numbers(spark: SparkSession, count: int, tasks: int = 2) -> DataFrame:
    """`row-0`, `row-1`, …, each task with a range of them."""
    return spark.range(0, count, 1, tasks).selectExpr("concat('row-', id) AS value")


def expected(count: int) -> list[bytes]:
    return sorted(b"row-%d" % number for number in range(count))


def write(rows: DataFrame, broker: SparkBroker, source: str = "pulsar", **options: str) -> None:
    rows.write.format(source).option("service.url", broker.url).options(**options).mode("append").save()


def files(folder: Path, batches: int, rows: int) -> None:
    """Two files for each micro-batch, which Spark reads in two tasks."""
    folder.mkdir(parents=True)
    for batch in range(batches):
        for part in range(2):
            lines = "".join(f"{batch}-{part}-{row:05}\n" for row in range(rows))
            (folder / f"{batch:03}-{part}.txt").write_text(lines)


def all_rows(batches: int, rows: int) -> list[bytes]:
    return sorted(
        b"%d-%d-%05d" % (batch, part, row)
        for batch in range(batches)
        for part in range(2)
        for row in range(rows)
    )


def reading(spark: SparkSession, folder: Path) -> DataFrame:
    return spark.readStream.format("text").option("maxFilesPerTrigger", 2).load(str(folder / "in"))


def run_stream(
    writer: Any, folder: Path, meanwhile: Callable[[], None] | None = None, timeout: float = 300
) -> None:
    """Run a query until all that is there is written."""
    query = writer.option("checkpointLocation", str(folder / "checkpoint")).trigger(availableNow=True).start()
    try:
        if meanwhile is not None:
            meanwhile()
        assert query.awaitTermination(timeout)
    finally:
        query.stop()


def writing(rows: DataFrame, broker: SparkBroker, source: str = "pulsar", **options: str) -> Any:
    return rows.writeStream.format(source).option("service.url", broker.url).options(**options)


def plan(folder: Path, places: dict[str, str]) -> str:
    """Write the plan of the ends; gives the option `faults`."""
    faults = folder / "faults"
    faults.mkdir(exist_ok=True)
    for place, how in places.items():
        (faults / f"plan-{place}").write_text(how)
    return str(faults)


def ends(folder: Path) -> set[str]:
    """Where tasks have ended, as the plan says it."""
    return {each.name.removeprefix("done-") for each in (folder / "faults").glob("done-*")}


def run_driver(brokers: Sequence[SparkBroker], topic: str, folder: Path, guarantee: str) -> str:
    """Run a driver with a query to each broker. Empty where it came to its end, else what it said last."""
    command = [sys.executable, "-m", "tests.spark.scenes.driver", guarantee]
    for broker in brokers:
        command += [broker.url, topic, str(folder / broker.name)]
    done = subprocess.run(command, check=False, timeout=900, capture_output=True, text=True)
    return done.stderr[-5000:] or "nothing" if done.returncode else ""
