"""The sink, with tasks and drivers that end at places of a test's choice.

A data source of its own, `pulsar-faulty`, which Spark's workers import from here. Where and how to end is
told by option `faults`: a folder in which every place leaves a file, so that a task that runs again does not
end there again.
"""

import os
import random
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from pyspark import TaskContext
from pyspark.sql.datasource import DataSource

from pulsar_sansio import TransactionId
from pulsar_spark.link import Link
from pulsar_spark.options.option_table import Use
from pulsar_spark.options.query_options import parse_write
from pulsar_spark.writing.producing import Destination, Numbered, TaskProducer, Written
from pulsar_spark.writing.sink import BATCH_PROPERTY, PulsarBatchWriter, TaskWritten
from pulsar_spark.writing.stream_sink import PulsarStreamWriter
from pulsar_spark.writing.transactions import BatchEnd, Errors

OF_CLUSTER = ("org.apache.spark.deploy.worker.Worker", "CoarseGrainedExecutorBackend")
"""A standalone worker and its executor, in their command lines."""


def end_worker() -> None:
    """SIGKILL to the executor of this task and to the standalone worker that started the executor."""
    number, ended = os.getppid(), 0
    while number > 1:
        line = subprocess.run(
            ["ps", "-o", "ppid=,args=", "-p", str(number)], capture_output=True, text=True, check=True
        ).stdout
        parent, _, command = line.strip().partition(" ")
        if any(name in command for name in OF_CLUSTER):
            os.kill(number, signal.SIGKILL)
            ended += 1
        number = int(parent)
    assert ended == len(OF_CLUSTER), "the task does not run in a standalone cluster"


class Failure(Exception):
    """A task's own end, by exception."""


def end_driver(folder: Path, place: str) -> None:
    """SIGKILL to the JVM that said its number in this folder, once all queries whose plan has this place are
    there; what each of them does there is done by then."""
    (folder / f"done-{place}").write_text("driver")
    deadline = time.monotonic() + 600
    while any(
        not plan.with_name(f"done-{place}").exists()
        for plan in folder.parent.parent.glob(f"*/faults/plan-{place}")
    ):
        assert time.monotonic() < deadline, f"no other query came to {place}"
        time.sleep(0.05)
    with suppress(ProcessLookupError):  # another query was first
        os.kill(int((folder / "jvm").read_text()), signal.SIGKILL)


class Places:
    """Where the attempts of one task end: the steps, each with `kill`, `raise`, `driver`, or `worker`.

    The steps of a task are counted from 0: before opening, after it, after each entry, when all rows are
    given, before waiting for the last receipts and after it, and at the end.
    """

    def __init__(self, folder: str, batch: str, partition: int) -> None:
        self._folder = Path(folder)
        self._name = f"{batch}-{partition}"
        self._step = 0

    def step(self, what: str) -> None:
        """One more step is done; ends here if the plan says so, once."""
        step, self._step = self._step, self._step + 1
        plan = self._folder / f"plan-{self._name}-{step}"
        done = self._folder / f"done-{self._name}-{step}"
        if not plan.exists() or done.exists():
            return
        done.write_text(what)
        how = plan.read_text()
        if how == "driver":
            end_driver(self._folder, f"{self._name}-{step}")
        if how == "worker":
            end_worker()
        if how in ("kill", "driver", "worker"):
            os.kill(os.getpid(), signal.SIGKILL)
        raise Failure(f"task {self._name} ends at step {step}: {what}")


def permuted(batch: Any) -> Any:
    """The rows of an Arrow batch in an order drawn anew."""
    indices = list(range(batch.num_rows))
    random.shuffle(indices)
    return batch.take(indices)


class FaultyProducer(TaskProducer):
    places: Places

    def open_all(self, some: Sequence[Destination]) -> None:
        self.places.step("before opening")
        super().open_all(some)
        self.places.step("opened")

    def sent(self, rows: int, size: int) -> None:
        super().sent(rows, size)
        self.places.step("sent")

    def close_all(self, some: Sequence[Destination]) -> None:
        self.places.step("confirmed")
        super().close_all(some)
        self.places.step("closed")

    def finish(self) -> Written:
        self.places.step("all given")
        written = super().finish()
        self.places.step("finished")
        return written


class _Faulty:
    """`plan-order` in the folder: the rows come in another order at every attempt, as after a shuffle."""

    faults: str

    def write(self, iterator: Iterator[Any]) -> TaskWritten:
        if (Path(self.faults) / "plan-order").exists():
            iterator = (permuted(batch) for batch in iterator)
        written: TaskWritten = super().write(iterator)  # type: ignore[misc]
        return written

    def producer(
        self, link: Link, numbered: Numbered | None, transaction: TransactionId | None
    ) -> TaskProducer:
        made = super().producer(link, numbered, transaction)  # type: ignore[misc]
        context = TaskContext.get()
        assert context is not None
        faulty = FaultyProducer(link, made.limits, numbered, transaction)
        batch = context.getLocalProperty(BATCH_PROPERTY) or "0"
        faulty.places = Places(self.faults, batch, context.partitionId())
        return faulty


class FaultyEnd(BatchEnd):
    """Where the plan says so, the driver ends when the commit is decided and one transaction committed."""

    faults: Path

    def _outcomes(self, ids: Sequence[TransactionId]) -> tuple[Errors, Errors]:
        place = f"committing-{self._batch}"
        if (self.faults / f"plan-{place}").exists() and not (self.faults / f"done-{place}").exists():
            super()._outcomes(ids[:1])
            end_driver(self.faults, place)
            os.kill(os.getpid(), signal.SIGKILL)
        return super()._outcomes(ids)


class FaultyStreamWriter(_Faulty, PulsarStreamWriter):
    def _end(self, messages: Sequence[TaskWritten | None]) -> BatchEnd | None:
        end = super()._end(messages)
        if end is None:
            return None
        end.__class__ = FaultyEnd
        assert isinstance(end, FaultyEnd)
        end.faults = Path(self.faults)
        return end

    def commit(self, messages: Sequence[TaskWritten | None], batchId: int) -> None:
        """Where the plan says so, the driver ends here: everything is written, nothing is committed."""
        faults, place = Path(self.faults), f"commit-{batchId}"
        if (faults / f"plan-{place}").exists() and not (faults / f"done-{place}").exists():
            end_driver(faults, place)
            os.kill(os.getpid(), signal.SIGKILL)
        super().commit(messages, batchId)


class FaultyBatchWriter(_Faulty, PulsarBatchWriter):
    pass


class FaultySource(DataSource):
    """`pulsar-faulty`: a sink with the options of `pulsar` and `faults`."""

    @classmethod
    def name(cls) -> str:
        return "pulsar-faulty"

    def _options(self, use: Use) -> tuple[Mapping[str, str], str]:
        options = dict(self.options)
        return options, options.pop("faults")

    def writer(self, schema: Any, overwrite: bool) -> FaultyBatchWriter:
        options, faults = self._options(Use.BATCH_WRITE)
        writer = FaultyBatchWriter(parse_write(options, Use.BATCH_WRITE))
        writer.faults = faults
        return writer

    def streamWriter(self, schema: Any, overwrite: bool) -> FaultyStreamWriter:
        options, faults = self._options(Use.STREAM_WRITE)
        writer = FaultyStreamWriter(parse_write(options, Use.STREAM_WRITE))
        writer.faults = faults
        return writer
