"""A standalone Spark cluster on this machine: a master, workers, and a driver that is told what to run."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pyspark

from tests.real_pulsar.server import free_ports
from tests.spark.conftest import spark_settings

HOME = Path(pyspark.__file__).parent

SMALL = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"

LOGGING = """rootLogger.level = info
rootLogger.appenderRef.all.ref = all
appender.all.type = Console
appender.all.name = all
appender.all.target = SYSTEM_ERR
appender.all.layout.type = PatternLayout
appender.all.layout.pattern = %d %p %c: %m%n
logger.shell.name = org.apache.spark.api.python.PythonGatewayServer
logger.shell.level = info
"""
"""The driver logs what Spark logs at INFO; the level of the last logger is that of PySpark's drivers."""

STOP_TIMEOUT = 20.0
"""Seconds between SIGTERM and SIGKILL."""


class Cluster:
    """The cluster while the block lasts. Each worker has one slot. `folder` gets logs, events and pages."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._environment = {**os.environ, "SPARK_HOME": str(HOME), "SPARK_DAEMON_JAVA_OPTS": SMALL}
        self._processes: list[subprocess.Popen[bytes]] = []
        (port,) = free_ports(1)
        self._url = f"spark://127.0.0.1:{port}"
        for name in ("events", "pages", "work"):
            (folder / name).mkdir(parents=True)
        self._launch("master.Master", "--host", "127.0.0.1", "--port", str(port))
        self.workers: list[subprocess.Popen[bytes]] = []
        for _ in range(2):
            self.add_worker()

    def _launch(self, daemon: str, *arguments: str) -> subprocess.Popen[bytes]:
        command = [str(HOME / "bin" / "spark-class"), f"org.apache.spark.deploy.{daemon}", *arguments]
        command += ["--webui-port", "0"]
        with (self.folder / f"{daemon}-{len(self._processes)}.log").open("wb") as log:
            process = subprocess.Popen(command, env=self._environment, stdout=log, stderr=subprocess.STDOUT)
        self._processes.append(process)
        return process

    def add_worker(self) -> None:
        """Start a worker, which waits for the master by itself."""
        size = ("--cores", "1", "--memory", "1g", "--host", "127.0.0.1")
        work = ("--work-dir", str(self.folder / "work"))
        self.workers.append(self._launch("worker.Worker", *size, *work, self._url))

    def killed_workers(self) -> int:
        """Return the number of workers that a signal has ended."""
        return sum((worker.poll() or 0) < 0 for worker in self.workers)

    def driver(self) -> "Driver":
        logging = self.folder / "log4j2.properties"
        logging.write_text(LOGGING)
        usual = spark_settings(self.folder)
        del usual["spark.log.level"]
        settings = {
            **usual,
            "spark.driver.extraJavaOptions": f"{SMALL} -Dlog4j2.configurationFile={logging.as_uri()}",
            "spark.master": self._url,
            "spark.executor.memory": "512m",
            "spark.executor.extraJavaOptions": SMALL,
            "spark.ui.enabled": "true",
            "spark.ui.port": "0",
            "spark.eventLog.enabled": "true",
            "spark.eventLog.compress": "false",
            "spark.eventLog.dir": (self.folder / "events").as_uri(),
        }
        return Driver(settings, self.folder)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for process in reversed(self._processes):
            process.terminate()
        for process in self._processes:
            try:
                process.wait(STOP_TIMEOUT)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


class Driver:
    """A driver in a process of its own, which does one thing after the other."""

    def __init__(self, settings: Mapping[str, str], folder: Path) -> None:
        with (folder / "driver.log").open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.spark.security.cluster_driver", str(folder / "pages")],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        self._ask(settings)

    def stream(self, source: Mapping[str, str], sink: Mapping[str, str], checkpoint: Path) -> None:
        """Run a query until it has written what the topic has now."""
        self._ask({"source": source, "sink": sink, "checkpoint": str(checkpoint)})

    def count(self, source: Mapping[str, str]) -> int:
        """Return the number of the topic's messages, by a batch read."""
        return int(self._ask({"count": source}))

    def _ask(self, wanted: Mapping[str, Any]) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(wanted) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        assert answer, "the driver has ended; its log says why"
        return json.loads(answer)

    def stop(self) -> None:
        """The driver saves the pages of its UI, and ends."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()
