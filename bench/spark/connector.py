"""The JVM connector, in the same run.

It was built for Spark 3.1 and reads on 3.5, so it has an environment of its own under build/, with PySpark
3.5 and its one jar from Maven. What it runs is given to that environment's Python as a text: it may import
nothing of this project.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

FOLDER = Path("build/spark-connector")
PYSPARK = "pyspark==3.5.5"
JAR = "io.streamnative.connectors:pulsar-spark-connector_2.12:3.1.1.4"

SCRIPT = """
import json, os, sys, time
from pyspark.sql import SparkSession

url, admin, topic, jar, slots, rounds, rows = sys.argv[1:]
spark = (
    SparkSession.builder.master(f"local[{slots}]").config("spark.jars", jar)
    .config("spark.ui.enabled", "false").config("spark.driver.memory", "2g")
    .config("spark.driver.host", "127.0.0.1").config("spark.driver.bindAddress", "127.0.0.1").getOrCreate()
)
spark.sparkContext.setLogLevel("ERROR")
pid = spark.sparkContext._jvm.java.lang.ProcessHandle.current().pid()

def cpu():
    stat = open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()
    return sum(map(int, stat[11:13])) / os.sysconf("SC_CLK_TCK") + time.process_time()

for _ in range(int(rounds)):
    frame = (
        spark.read.format("pulsar").option("service.url", url).option("admin.url", admin)
        .option("topic", topic).option("startingOffsets", "earliest").load()
    )
    started, used = time.perf_counter(), cpu()
    frame.select("value").write.format("noop").mode("overwrite").save()
    seconds = time.perf_counter() - started
    print(json.dumps({"rows": int(rows), "seconds": seconds, "cpu_seconds": cpu() - used}), flush=True)
"""


class NotToBeHad(Exception):
    """One line that says why the connector is not measured."""


def python() -> Path:
    return FOLDER / "venv" / "bin" / "python"


def jar() -> Path:
    return FOLDER / f"{JAR.split(':')[1]}-{JAR.split(':')[2]}.jar"


def fetch() -> None:
    """Make the environment where it is not there yet. Raises `NotToBeHad`."""
    commands = []
    if not python().exists():
        commands.append([sys.executable, "-m", "venv", str(FOLDER / "venv")])
        commands.append([str(python()), "-m", "pip", "install", "--quiet", PYSPARK, "setuptools<81"])
    if not jar().exists():
        target = f"-DoutputDirectory={FOLDER.resolve()}"
        commands.append(["mvn", "-q", "-B", "dependency:copy", f"-Dartifact={JAR}", target])
    for command in commands:
        try:
            subprocess.run(command, check=True, capture_output=True, text=True)
        except (OSError, subprocess.CalledProcessError) as error:
            raise NotToBeHad(f"the JVM connector cannot be had: {error}") from None


def read(url: str, admin: str, topic: str, slots: int, rounds: int, rows: int) -> list[dict[str, float]]:
    """Rows, seconds and processor seconds of each round; `rows` are what the topic has. Raises
    `NotToBeHad`."""
    environment = {**os.environ, "PYSPARK_PYTHON": str(python())}
    environment.pop("PYTHONPATH", None)
    done = subprocess.run(
        [str(python()), "-c", SCRIPT, url, admin, topic, str(jar()), *map(str, (slots, rounds, rows))],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if line.strip()]
        raise NotToBeHad(f"the JVM connector failed: {lines[-1] if lines else done.returncode}")
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
