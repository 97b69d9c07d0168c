"""`pulsar-trio spark …`: the jobs as commands.

`add_parser` is what the entry-point group `pulsar_trio.commands` names: the command line calls it with its
subparsers and with the class that prints. Knows arguments and what to print; the jobs know nothing of either.
Nothing here imports PySpark until a job runs, so `--help` works where it is not installed.
"""

import argparse
import os
import re
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeAlias

from pulsar_sansio import PulsarError

from .errors import PulsarSparkError
from .options.option_table import OPTIONS
from .progress import Show
from .session import open_session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

DEFAULT_URL = "pulsar://localhost:6650"

SECRETS = {option.name.lower(): option.secret for option in OPTIONS if option.secret}
"""Options that no command line may have, and what to do."""

KEYS, KEY_FILES = "encryption.keys", "encryption.keyFiles"
"""The options of encryption: names of keys for a write, and files for both."""

ARCHIVE = "archive:"
"""Before the path of an archive, where a topic could stand too."""


class ProgressBar(Protocol):
    """The interface of a progress bar that the command draws on a terminal."""

    def __enter__(self) -> Self: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...
    def show(self, done: int, rate: str = "") -> None: ...


class CommandOutput(Protocol):
    """Where a command prints: the command line's, which is handed in."""

    as_json: bool

    def result(self, text: str, **values: object) -> None: ...
    def note(self, text: str) -> None: ...
    def error(self, error: BaseException) -> None: ...
    def bar(self, text: str, total: int) -> ProgressBar: ...


OutputType: TypeAlias = Callable[[bool], CommandOutput]
Job: TypeAlias = "Callable[[argparse.Namespace, SparkSession, CommandOutput], int]"
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
        "--report", type=Path, metavar="FOLDER", help="write report.html: which situations were reached"
    )
    simulate.add_argument("--table", metavar="PATH", help="write a row per seed there, as Parquet")
    simulate.add_argument(
        "--require-coverage", action="store_true", help="fail where something was never reached"
    )
    _add_archive(
        add("archive", _archive, "Add to an archive in Parquet what came into a topic since last time.")
    )
    _add_replay(add("replay", _replay, "Write an archive back into topics, in its order, nothing twice."))
    _add_audit(
        add("audit", _audit, "Compare two topics, or a topic and its archive: lost, doubled, reordered.")
    )
    _add_redrive(add("redrive", _redrive, "Move dead letters back to where they came from, nothing twice."))


def _add_url(command: argparse.ArgumentParser, *keys: str) -> None:
    """Add the options of a connection, and those of `keys`, which are of encryption."""
    command.add_argument(
        "--url",
        default=os.environ.get("PULSAR_SERVICE_URL", DEFAULT_URL),
        help=f"service URL; default is $PULSAR_SERVICE_URL, else {DEFAULT_URL}",
    )
    command.add_argument(
        "--option",
        type=partial(_option, keys),
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help=f"an option {_names(keys)} of the data source; may be repeated. $PULSAR_TOKEN is "
        "a token, $PULSAR_PASSWORD the password of auth.user, $PULSAR_TLS_KEY_PASSWORD that of tls.key",
    )


def _connection(arguments: argparse.Namespace, environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return the options of URL, TLS and credentials."""
    options = {"service.url": arguments.url, **dict(arguments.option)}
    methods = {name for name in options if name.startswith("auth.")}
    if not methods and environment.get("PULSAR_TOKEN"):
        options |= {"auth.method": "token", "auth.token": environment["PULSAR_TOKEN"].strip()}
    if options.get("auth.method") == "basic" and "PULSAR_PASSWORD" in environment:
        options["auth.password"] = environment["PULSAR_PASSWORD"]
    if "tls.key" in options and environment.get("PULSAR_TLS_KEY_PASSWORD"):
        options["tls.keyPassword"] = environment["PULSAR_TLS_KEY_PASSWORD"]
    return options


def _add_archive(command: argparse.ArgumentParser) -> None:
    command.add_argument("topic", help="a topic, or several with commas between")
    command.add_argument("path", help="the archive: a folder, in any file system that Spark knows")
    _add_url(command, KEY_FILES)
    command.add_argument("--subscription", help="keeps in the topic what is not archived yet")
    command.add_argument("--most", type=_positive, metavar="N", help="messages in a micro-batch, about")
    command.add_argument(
        "--report", type=Path, metavar="FOLDER", help="write report.html: rate and lag of every micro-batch"
    )


def _add_replay(command: argparse.ArgumentParser) -> None:
    command.add_argument("path", help="the archive")
    _add_url(command, KEYS, KEY_FILES)
    command.add_argument("--topic", help="where to; by default each message to the topic it came from")
    command.add_argument("--where", metavar="SQL", help="a condition over the archive's columns")
    command.add_argument(
        "--write-id",
        required=True,
        metavar="NAME",
        help="names this replay: under one name nothing comes twice",
    )
    _add_at_least_once(command)


def _add_at_least_once(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--at-least-once", action="store_true", help="for topics without deduplication: some may come twice"
    )


def _add_audit(command: argparse.ArgumentParser) -> None:
    side = "a topic, or archive:PATH"
    command.add_argument("sent", help=side)
    command.add_argument("received", help=side)
    _add_url(command, KEY_FILES)
    command.add_argument(
        "--identity",
        choices=["content", "sequence", "position"],
        help="what makes two messages equal (default: position with an archive, else content)",
    )


def _add_redrive(command: argparse.ArgumentParser) -> None:
    command.add_argument("topic", help="the dead-letter topic")
    command.add_argument("book", help="a folder for what was moved, one for each dead-letter topic")
    _add_url(command, KEY_FILES)
    command.add_argument(
        "--encrypt",
        type=_public_key,
        action="append",
        default=[],
        metavar="NAME=FILE",
        help="encrypt the letters for this key, whose public key FILE has; may be repeated. Letters that "
        "--option encryption.keyFiles decrypts need it",
    )
    command.add_argument("--where", metavar="SQL", help="which letters; all by default")
    command.add_argument("--to", metavar="TOPIC", help="where to; by default where they came from")
    command.add_argument(
        "--subscription", help="of the dead-letter topic: acknowledge it up to the first letter that is left"
    )
    _add_at_least_once(command)


def _run(name: str, job: Job, output_type: OutputType, arguments: argparse.Namespace) -> int:
    output = output_type(arguments.json)
    try:
        session = open_session(name, arguments.master, dict(arguments.conf))
        try:
            return job(arguments, session, output)
        finally:
            session.stop()
    except (PulsarSparkError, PulsarError, OSError) as error:
        output.error(error)
        return 1
    except Exception as error:
        said = _first_line(error)
        if said is None:
            raise
        output.error(PulsarSparkError(said))
        return 1


def _first_line(error: Exception) -> str | None:
    """Return the line of a Spark error that says what went wrong. Spark shows the text of this package
    behind traces of its own. Return None for an error that is not Spark's."""
    from pyspark.errors import PySparkException

    if not isinstance(error, PySparkException):
        return None
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    ours = [line for line in lines if re.match(r"(pulsar_spark|pulsar_sansio)[\w.]*\.\w+: ", line)]
    return ours[-1].partition(": ")[2] if ours else lines[0]


def percents(bar: ProgressBar) -> Show:
    """Draws what is seen on a bar of 100. It may go back: Spark plans more when it sees more."""
    return lambda seen: bar.show(seen.percent, seen.text)


# --- simulate ------------------------------------------------------------------------------------------


def _simulate(arguments: argparse.Namespace, session: "SparkSession", output: CommandOutput) -> int:
    from pulsar_sim.runs.report import files
    from pulsar_sim.runs.summary import summary

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


# --- messages ------------------------------------------------------------------------------------------


def _archive(arguments: argparse.Namespace, session: "SparkSession", output: CommandOutput) -> int:
    from .jobs.archive import archive
    from .report import render

    options = {**_connection(arguments), "topics": arguments.topic}
    if arguments.subscription is not None:
        options["subscription"] = arguments.subscription
    if arguments.most is not None:
        options["maxMessagesPerTrigger"] = str(arguments.most)
    with output.bar("archiving", 100) as bar:
        archived = archive(session, options, arguments.path, show=percents(bar))
    number, batches = archived.messages, len(archived.batches)
    output.result(
        f"{number:,} messages archived, in {batches} micro-batches", messages=number, batches=batches
    )
    if arguments.report is not None:
        page = render(f"Archive of {arguments.topic}", archived.batches)
        _write({"report.html": page}, arguments.report)
    return 0


def _replay(arguments: argparse.Namespace, session: "SparkSession", output: CommandOutput) -> int:
    from .jobs.replay import replay

    with output.bar("replaying", 100) as bar:
        replayed = replay(
            session,
            arguments.path,
            arguments.url,
            write_id=arguments.write_id,
            topic=arguments.topic,
            where=arguments.where,
            exactly_once=not arguments.at_least_once,
            access=_connection(arguments),
            show=percents(bar),
        )
    output.result(f"{replayed.messages:,} messages replayed", messages=replayed.messages)
    return 0


def _audit(arguments: argparse.Namespace, session: "SparkSession", output: CommandOutput) -> int:
    """Exit code 1 where something is wrong."""
    from .jobs.audit import COLUMNS, MessageIdentity, audit

    def side(text: str) -> "DataFrame":
        if text.startswith(ARCHIVE):
            return session.read.parquet(text.removeprefix(ARCHIVE)).select(*COLUMNS)
        options = {**_connection(arguments), "topic": text, "columns": ",".join(COLUMNS)}
        return session.read.format("pulsar").options(**options).load()

    archived = any(text.startswith(ARCHIVE) for text in (arguments.sent, arguments.received))
    identity = MessageIdentity(arguments.identity or ("position" if archived else "content"))
    with output.bar("comparing", 100) as bar:
        found = audit(side(arguments.sent), side(arguments.received), identity=identity, show=percents(bar))
    wrong = {name: getattr(found, name) for name in ("lost", "duplicated", "foreign", "reordered")}
    lines = [
        f"{found.sent:,} messages sent, {found.received:,} received: "
        + ", ".join(f"{name} {number:,}" for name, number in wrong.items()),
        *(
            f"  {each.kind}: {each.topic} {each.ledger}:{each.entry}:{each.batch_index}"
            + (f" key {each.key!r}" if each.key is not None else "")
            for each in found.examples
        ),
    ]
    examples = [
        {"kind": each.kind, "topic": each.topic, "position": [each.ledger, each.entry, each.batch_index]}
        for each in found.examples
    ]
    output.result("\n".join(lines), sent=found.sent, received=found.received, **wrong, examples=examples)
    return 0 if found.clean else 1


def _redrive(arguments: argparse.Namespace, session: "SparkSession", output: CommandOutput) -> int:
    from .jobs.redrive import redrive

    with output.bar("moving letters", 100) as bar:
        redriven = redrive(
            session,
            arguments.url,
            arguments.topic,
            arguments.book,
            where=arguments.where,
            to=arguments.to,
            subscription=arguments.subscription,
            exactly_once=not arguments.at_least_once,
            access=_connection(arguments),
            encrypt=dict(arguments.encrypt),
            show=percents(bar),
        )
    text = f"{redriven.moved:,} letters moved, {redriven.left:,} left"
    if redriven.finished:
        text += f"; {redriven.finished:,} of an interrupted run moved before"
    output.result(text, moved=redriven.moved, finished=redriven.finished, left=redriven.left)
    return 0


# --- types of arguments --------------------------------------------------------------------------------


def _setting(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name.startswith("spark."):
        raise argparse.ArgumentTypeError(f"spark.NAME=VALUE, not {text!r}")
    return name, value


def _names(keys: tuple[str, ...]) -> str:
    return f"{', '.join(('tls.…', 'auth.…', *keys))} or broker.hosts"


def _option(keys: tuple[str, ...], text: str) -> tuple[str, str]:
    """An option of a connection, or of encryption. All users of a machine can read its command lines, so it
    is no secret."""
    name, equals, value = text.partition("=")
    lowered = name.lower()
    allowed = ("broker.hosts", *(key.lower() for key in keys))
    if not equals or not (lowered in allowed or lowered.startswith(("tls.", "auth."))):
        raise argparse.ArgumentTypeError(f"NAME=VALUE, with an option {_names(keys)}")
    if lowered in SECRETS:
        raise argparse.ArgumentTypeError(f"{name}: no secret on a command line; {SECRETS[lowered]}")
    return lowered, value


def _public_key(text: str) -> tuple[str, str]:
    name, equals, file = text.partition("=")
    if not (name and equals and file) or "," in text:
        raise argparse.ArgumentTypeError(f"NAME=FILE, without commas, not {text!r}")
    return name, file


def _whole(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"a whole number of at least 0, not {text!r}")
    return int(text)


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"a whole number of at least 1, not {text!r}")
    return int(text)
