"""A campaign of the simulator spread over Spark: seeds in, the same campaign out as on one machine.

Each seed is a world by itself, so seeds are all that is sent to the executors, which need this package and
`pulsar_sansio` installed. Reports come back in the order of seeds, whichever ended first. So the trace hash
is that of one process. This module owns the table's columns; `pulsar_sim` decides what a seed
does.
"""

import pickle
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from pulsar_sim import Campaign, Recorder, observe_seed

from ..progress import Show, watched

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SEEDS_PER_TASK = 25
"""A task costs Spark some 30 ms, a seed ten times that and more; short tasks share the work more evenly."""

COLUMNS = (
    "seed bigint, outcome string, rule string, phase string, text string, messages bigint, sent bigint, "
    "virtual_ns bigint, events bigint, faults map<string, bigint>, trace_hash string"
)
"""The columns of the table, which has one row per seed."""

_OBSERVED = "observed"
"""A column more while the campaign is added up: the report and what was reached, pickled."""


@dataclass(frozen=True)
class Simulated:
    """`campaign` is the sum; `table` has a row per seed, kept by Spark until `table.unpersist()`."""

    campaign: Campaign
    table: "DataFrame"


def simulate(
    spark: "SparkSession",
    *,
    first_seed: int = 0,
    seeds: int = 100,
    tasks: int | None = None,
    require_coverage: bool = False,
    show: Show | None = None,
) -> Simulated:
    """Run `seeds` seeds from `first_seed` on; every fiftieth twice, as anywhere.

    `tasks`: into how many tasks they are cut, at least 1; by default 25 seeds go to a task, fewer where slots
    would stay empty. Raises `ValueError` for numbers out of range.
    """
    if first_seed < 0 or seeds < 1 or (tasks is not None and tasks < 1):
        raise ValueError(f"first_seed={first_seed}, seeds={seeds}, tasks={tasks}: at least 0, 1 and 1")
    from pyspark import StorageLevel
    from pyspark.sql.functions import udf

    number = tasks or max(seeds // SEEDS_PER_TASK, min(seeds, 4 * _slots(spark)))
    # Arrow would need pandas, and has nothing to win with one row per second.
    columns = f"{COLUMNS}, {_OBSERVED} binary"
    observe = udf(_observe, columns, useArrow=False).asNondeterministic()
    numbers = spark.range(first_seed, first_seed + seeds, 1, number)
    rows = numbers.select(observe("id").alias("row")).select("row.*").persist(StorageLevel.MEMORY_AND_DISK)
    watched(spark, "simulate", rows.count, show)
    campaign = Campaign(require_coverage=require_coverage)
    for row in rows.select(_OBSERVED).toLocalIterator():
        campaign.add(*pickle.loads(row[0]))
    return Simulated(campaign, rows.drop(_OBSERVED))


def _slots(spark: "SparkSession") -> int:
    return int(spark.sparkContext.defaultParallelism) if hasattr(spark, "_jsc") else 4


def _observe(seed: int) -> dict[str, Any]:
    """In an executor. The recorder stays entered as long as the worker lives: entering is what costs."""
    report, coverage = observe_seed(seed, _recorder())
    return {
        "seed": report.seed,
        "outcome": report.outcome.name.lower(),
        "rule": report.rule,
        "phase": report.phase,
        "text": report.text,
        "messages": report.messages,
        "sent": report.sent,
        "virtual_ns": report.virtual_ns,
        "events": report.events,
        "faults": report.faults,
        "trace_hash": report.trace_hash,
        _OBSERVED: pickle.dumps((report, coverage)),
    }


@cache
def _recorder() -> Recorder:
    return Recorder().__enter__()
