"""The processes of a run: one of each client, which work on jobs line by line."""

import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.jobs import Measurement
from bench.processes import Failed
from bench.transactions.jobs import (
    BATCH_BYTES,
    BATCH_DELAY,
    BATCH_MESSAGES,
    JOB_LIMIT,
    MAX_PENDING_MESSAGES,
    RECEIVER_QUEUE_SIZE,
    SIZE,
    TIMEOUT,
    Job,
)
from tests.real_pulsar.jars import jars, java

JAVA_PROGRAM = Path(__file__).with_name("Bench.java")


class Process:
    """A client's process. Lines of its log, which have no tab between two numbers, are left out."""

    def __init__(self, name: str, command: list[str]) -> None:
        self._name = name
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )

    def run(self, job: Job) -> Measurement:
        """Raises `Failed`."""
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        limit = threading.Timer(JOB_LIMIT, process.kill)
        limit.start()
        try:
            process.stdin.write(job.line())
            process.stdin.flush()
            for line in process.stdout:
                first, _, second = line.rstrip("\n").partition("\t")
                if first == "failed":
                    raise Failed(f"{self._name}, {job.workload} of {job.messages}: {second}")
                if second:
                    return Measurement(job.messages * job.transactions, float(first), float(second))
        except BrokenPipeError:
            pass
        finally:
            limit.cancel()
        raise Failed(f"{self._name} ended, or took more than {JOB_LIMIT:.0f} s, at {job.workload}")

    def close(self) -> None:
        self._process.kill()
        self._process.communicate()


@contextmanager
def _process(name: str, command: list[str]) -> Iterator[Process]:
    process = Process(name, command)
    try:
        yield process
    finally:
        process.close()


@contextmanager
def our_client() -> Iterator[Process]:
    with _process("our client", [sys.executable, "-m", "bench.transactions.ours"]) as process:
        yield process


@contextmanager
def java_client() -> Iterator[Process]:
    """Raises `Unavailable` without Java 17 or the jars."""
    settings: list[float] = [BATCH_MESSAGES, BATCH_BYTES, round(BATCH_DELAY * 1000)]
    settings += [MAX_PENDING_MESSAGES, RECEIVER_QUEUE_SIZE, SIZE, round(TIMEOUT)]
    command = [java(), "-cp", f"{jars()}/*", str(JAVA_PROGRAM), *map(str, settings)]
    with _process("the Java client", command) as process:
        yield process
