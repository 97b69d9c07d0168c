"""How far something is: the tasks of a job that runs.

Knows Spark's own counters; what is drawn from them is the caller's.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar
from uuid import uuid4

if TYPE_CHECKING:
    from pyspark import StatusTracker
    from pyspark.sql import SparkSession

LOOK_EVERY = 0.2
"""Seconds between two looks at Spark's counters."""

ResultT = TypeVar("ResultT")


@dataclass(frozen=True)
class Tasks:
    """Of the stages that Spark has planned so far; with adaptive execution more may come."""

    done: int
    planned: int

    @property
    def percent(self) -> int:
        return 100 * self.done // self.planned if self.planned else 0


Show = Callable[[Tasks], None]


def watched(spark: "SparkSession", action: Callable[[], ResultT], show: Show | None) -> ResultT:
    """Run an action of Spark and meanwhile say how many of its tasks are done; gives the action's result.

    Whatever interrupts the caller (Ctrl-C, an exception of `show`) cancels the action's Spark jobs. Without
    `show` the action simply runs; so it does through Spark Connect, which has no counters to ask.
    """
    if show is None or not hasattr(spark, "_jsc"):
        return action()
    from pyspark import InheritableThread

    context = spark.sparkContext
    group = f"pulsar-{uuid4()}"
    results: list[ResultT] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            context.setJobGroup(group, "pulsar-trio", interruptOnCancel=True)
            results.append(action())
        except BaseException as error:
            errors.append(error)

    thread = InheritableThread(target=run, daemon=True)
    thread.start()
    try:
        while thread.is_alive():
            show(_tasks(context.statusTracker(), group))
            thread.join(LOOK_EVERY)
    except BaseException:
        context.cancelJobGroup(group)
        thread.join()
        raise
    if errors:
        raise errors[0]
    return results[0]


def _tasks(tracker: "StatusTracker", group: str) -> Tasks:
    done = planned = 0
    for job in tracker.getJobIdsForGroup(group):
        info = tracker.getJobInfo(job)
        for stage in info.stageIds if info is not None else []:
            each = tracker.getStageInfo(stage)
            if each is not None:
                done += each.numCompletedTasks
                planned += each.numTasks
    return Tasks(done, planned)
