"""This module reports progress: the tasks of a job, the batches of a query, and its lag behind its topics.

Knows Spark's own counters and the offsets of our source; what is drawn from them is the caller's.
"""

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import uuid4

from .reading.offsets import NOTHING, Position, from_json

if TYPE_CHECKING:
    from pyspark import StatusTracker
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming import StreamingQuery

LOOK_EVERY = 0.2
"""Seconds between two looks at Spark's counters."""

STARTS = 4
"""The number of times a job starts a query whose source did not come up in time."""

SOURCE_LATE = "Python worker failed to connect back"
"""Spark reports this text where the driver's process for a stream source was not up within ten seconds,
as on a busy machine. Spark has no setting for that limit; nothing is read by then."""

ResultT = TypeVar("ResultT")


@dataclass(frozen=True)
class Seen:
    """One state of progress. `planned`: tasks of the stages that Spark has planned so far; more may come."""

    done: int
    planned: int
    text: str

    @property
    def percent(self) -> int:
        return 100 * self.done // self.planned if self.planned else 0


Show = Callable[[Seen], None]


# --- while it runs ----------------------------------------------------------------------------------


def watched(spark: "SparkSession", what: str, action: Callable[[], ResultT], show: Show | None) -> ResultT:
    """Run an action of Spark and meanwhile say how many of its tasks are done; gives the action's result.

    `what` is the description of its jobs in Spark's UI. The action runs in the caller's thread: in one that
    Spark has not seen before it would not find sources written in Python. `show` is called in another.
    Through Spark Connect, which has no counters to ask, the action only runs.
    """
    if not hasattr(spark, "_jsc"):
        return action()
    context = spark.sparkContext
    before = {name: context.getLocalProperty(name) for name in _JOB_PROPERTIES}
    group = f"pulsar-{uuid4()}"
    context.setJobGroup(group, what)
    try:
        with _shown(context.statusTracker(), group, show):
            return action()
    finally:
        for name, value in before.items():
            context.setLocalProperty(name, value)


_JOB_PROPERTIES = ("spark.jobGroup.id", "spark.job.description", "spark.job.interruptOnCancel")
"""`setJobGroup` sets these properties for all later jobs of its thread."""


@contextmanager
def _shown(tracker: "StatusTracker", group: str, show: Show | None) -> Iterator[None]:
    """While the block lasts, look at the tasks of that group of jobs now and then."""
    if show is None:
        yield
        return
    over = threading.Event()

    def look() -> None:
        while not over.wait(LOOK_EVERY):
            done, planned = _tasks(tracker, group)
            show(Seen(done, planned, f"{done} of {planned} tasks"))

    thread = threading.Thread(target=look, name="progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def followed(start: Callable[[], "StreamingQuery"], show: Show | None) -> list[dict[str, Any]]:
    """Start a query and wait until it ends by itself, as with `availableNow`; gives its batches' progress.

    Raises what the query failed with; where that is `SOURCE_LATE`, only after `STARTS` starts. Whatever
    interrupts the caller stops the query.
    """
    return patiently(lambda: _followed(start(), show))


def patiently(action: Callable[[], ResultT]) -> ResultT:
    """Run `action`, which starts a query, and return its result. Where it fails with `SOURCE_LATE`, run it
    again, `STARTS` times in all."""
    for _ in range(STARTS - 1):
        try:
            return action()
        except Exception as error:  # the same error has another class through Spark Connect
            if SOURCE_LATE not in str(error):
                raise
    return action()


def _followed(query: "StreamingQuery", show: Show | None) -> list[dict[str, Any]]:
    found: dict[int, dict[str, Any]] = {}

    def look() -> None:
        for each in query.recentProgress:
            progress = as_dict(each)
            found[progress["batchId"]] = progress

    try:
        while not query.awaitTermination(LOOK_EVERY):
            look()
            if show is not None:
                show(_of_query(query, list(found.values())))
    except BaseException:
        query.stop()
        raise
    look()
    return [found[batch] for batch in sorted(found)]


def as_dict(progress: Any) -> dict[str, Any]:
    """A progress as plain values, whichever form Spark has it in."""
    if isinstance(progress, dict):
        return progress
    return json.loads(progress.json)


def _of_query(query: "StreamingQuery", batches: list[dict[str, Any]]) -> Seen:
    rows = sum(each["numInputRows"] for each in batches)
    text = f"{rows:,} messages in {len(batches)} batches"
    if batches:
        text += f", {sum(each.entries for each in lag(batches[-1]).values()):,} entries behind"
    from pyspark import SparkContext

    context = SparkContext._active_spark_context
    done, planned = _tasks(context.statusTracker(), str(query.runId)) if context is not None else (0, 0)
    return Seen(done, planned, text)


def _tasks(tracker: "StatusTracker", group: str) -> tuple[int, int]:
    """Done and planned."""
    done = planned = 0
    for job in tracker.getJobIdsForGroup(group):
        info = tracker.getJobInfo(job)
        for stage in info.stageIds if info is not None else []:
            each = tracker.getStageInfo(stage)
            if each is not None:
                done += each.numCompletedTasks
                planned += each.numTasks
    return done, planned


# --- lag --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Behind:
    """The lag of a query in one topic partition: the position it has read, and the last entry there is."""

    read: Position
    last: Position

    @property
    def entries(self) -> int:
        """Entries (batches of messages) still to be read. Exact within one ledger; where the last entry is in
        a later ledger than what was read, those before that ledger are not counted."""
        if self.last <= self.read:
            return 0
        if self.last[0] == self.read[0]:
            return self.last[1] - self.read[1]
        return self.last[1] + 1

    @property
    def exact(self) -> bool:
        """True if `entries` counts the whole lag."""
        return self.last <= self.read or self.last[0] == self.read[0]


def lag(progress: Any) -> dict[str, Behind]:
    """Return the lag of a query after one batch, by topic partition.

    `progress`: `query.lastProgress`, or what a `StreamingQueryListener` gets. Sources that are not Pulsar's
    are left out. Raises `OffsetVersionError` for a query of another version of this package.
    """
    found: dict[str, Behind] = {}
    for source in as_dict(progress)["sources"]:
        read, last = _offsets(source.get("endOffset")), _offsets(source.get("latestOffset"))
        if read is None or last is None:
            continue
        for topic, position in last.items():
            found[topic] = Behind(read.get(topic, NOTHING), position)
    return found


def _offsets(value: object) -> dict[str, Position] | None:
    """Return the offsets; None where the value is another source's."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            return None
    if isinstance(value, Mapping) and "t" in value and "v" in value:
        return from_json(value)
    return None
