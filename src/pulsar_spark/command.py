"""`pulsar-trio spark …`: the jobs as commands.

`add_parser` is what the entry-point group `pulsar_trio.commands` names: the command line calls it with its
subparsers and with the class that prints. Knows arguments and what to print; the jobs know nothing of either.
Nothing here imports PySpark until a job runs, so `--help` works where it is not installed.
"""

import argparse
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeAlias

from .errors import PulsarSparkError
from .progress import Show
from .session import open_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Bar(Protocol):
    """What is drawn while somebody watches."""

    def __enter__(self) -> Self: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...
    def show(self, done: int, rate: str = "") -> None: ...


class Output(Protocol):
    """Where a command prints: the command line's, which is handed in."""

    as_json: bool

    def result(self, text: str, **values: object) -> None: ...
    def note(self, text: str) -> None: ...
    def error(self, error: BaseException) -> None: ...
    def bar(self, text: str, total: int) -> Bar: ...


OutputType: TypeAlias = Callable[[bool], Output]
Job: TypeAlias = "Callable[[argparse.Namespace, SparkSession, Output], int]"
"""Gives the exit code."""


def add_parser(subparsers: "argparse._SubParsersAction[Any]", output: OutputType) -> None:
    """Add `spark` and its jobs; each sets `handler(arguments)`, which gives the exit code."""
    parser = subparsers.add_parser(
        "spark",
        help="jobs on Apache Spark",
        description="Jobs on Apache Spark: on this machine, or on the cluster that --master names.",
    )
    jobs = parser.add_subparsers(required=True, metavar="JOB")

    def add(name: str, job: Job, text: str) -> argparse.ArgumentParser:
        command = jobs.add_parser(name, help=text, description=text)
        command.add_argument(
            "--master",
            metavar="URL",
            help="as spark-submit has it; by default this machine, with all its cores",
        )
        command.add_argument(
            "--conf",
            type=_setting,
            action="append",
            default=[],
            metavar="NAME=VALUE",
            help="a setting of Spark",
        )
        command.add_argument("--json", action="store_true", help="print one JSON object")
        command.set_defaults(handler=partial(_run, name, job, output))
        return command

    simulate = add("simulate", _simulate, "Run many seeds of the simulator on Spark.")
    simulate.add_argument("--seed", type=_whole, default=0, metavar="N", help="the first seed (default 0)")
    simulate.add_argument("--seeds", type=_positive, default=100, metavar="N", help="how many (default 100)")
    simulate.add_argument("--tasks", type=_positive, metavar="N", help="into how many tasks they are cut")
    simulate.add_argument(
        "--report", type=Path, metavar="FOLDER", help="write report.html, what was reached and what was not"
    )
    simulate.add_argument("--table", metavar="PATH", help="write a row per seed there, as Parquet")
    simulate.add_argument(
        "--require-coverage", action="store_true", help="fail where something was never reached"
    )


def _run(name: str, job: Job, output_type: OutputType, arguments: argparse.Namespace) -> int:
    output = output_type(arguments.json)
    try:
        session = open_session(name, arguments.master, dict(arguments.conf))
        try:
            return job(arguments, session, output)
        finally:
            session.stop()
    except (PulsarSparkError, OSError) as error:
        output.error(error)
        return 1


def percents(bar: Bar) -> Show:
    """Draws what is seen on a bar of 100. It may go back: Spark plans more when it sees more."""
    return lambda seen: bar.show(seen.percent, seen.text)


# --- simulate ------------------------------------------------------------------------------------------


def _simulate(arguments: argparse.Namespace, session: "SparkSession", output: Output) -> int:
    from pulsar_sansio.sim.report import files
    from pulsar_sansio.sim.summary import summary

    from .jobs.simulate import simulate

    started = time.monotonic()
    with output.bar("simulating", 100) as bar:
        simulated = simulate(
            session,
            first_seed=arguments.seed,
            seeds=arguments.seeds,
            tasks=arguments.tasks,
            require_coverage=arguments.require_coverage,
            show=percents(bar),
        )
        bar.show(100)
    campaign, seconds = simulated.campaign, time.monotonic() - started
    output.result(
        "\n".join(summary(campaign, seconds)), **{**campaign.as_json(), "seconds": round(seconds, 3)}
    )
    if arguments.table is not None:
        simulated.table.write.mode("overwrite").parquet(arguments.table)
    if arguments.report is not None:
        _write(files(campaign, seconds), arguments.report)
    return int(campaign.outcome)


def _write(files_by_name: dict[str, str], folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files_by_name.items():
        (folder / name).write_text(text, encoding="utf-8")


# --- types of arguments --------------------------------------------------------------------------------


def _setting(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name.startswith("spark."):
        raise argparse.ArgumentTypeError(f"spark.NAME=VALUE, not {text!r}")
    return name, value


def _whole(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"a whole number of at least 0, not {text!r}")
    return int(text)


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"a whole number of at least 1, not {text!r}")
    return int(text)
