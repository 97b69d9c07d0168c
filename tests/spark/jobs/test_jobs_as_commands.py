"""The jobs as users run them: `pulsar-trio spark …`, each with a Spark of its own."""

import json
import os
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from pulsar_spark.command import _first_line
from pulsar_spark.jobs.archive import archive
from tests.patience import PATIENCE
from tests.spark.conftest import ROOT, spark_settings
from tests.spark.jobs.test_message_jobs import keyed, letters
from tests.spark.scenes.brokers import SparkBroker
from tests.spark.scenes.reading_back import values_of
from tests.spark.scenes.sending import send

pytestmark = pytest.mark.spark

Command = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def runner(
    our_broker: SparkBroker, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[subprocess.Popen[str]]:
    """A process for the commands, which finds them as pyproject.toml names them, whatever is installed."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    folder = tmp_path_factory.mktemp("commands")
    told = folder / f"pulsar_trio-{project['version']}.dist-info"
    told.mkdir()
    (told / "METADATA").write_text(f"Name: {project['name']}\nVersion: {project['version']}\n")
    lines = [
        line
        for group, points in project["entry-points"].items()
        for line in (f"[{group}]", *(f"{name} = {target}" for name, target in points.items()))
    ]
    (told / "entry_points.txt").write_text("\n".join(lines))
    environment = {
        **os.environ,
        "PULSAR_SERVICE_URL": our_broker.url,
        "PYTHONPATH": os.pathsep.join([str(folder), os.environ["PYTHONPATH"]]),
    }
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.spark.scenes.command_runner"],
        env=environment,
        cwd=folder,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    yield process
    process.communicate(timeout=PATIENCE)


@pytest.fixture
def command(runner: subprocess.Popen[str], tmp_path: Path) -> Command:
    """Runs `pulsar-trio spark` on our broker, which the environment names; gives code, output and errors."""
    assert runner.stdin is not None
    assert runner.stdout is not None
    questions, answers = runner.stdin, runner.stdout
    settings = [f"--conf={name}={value}" for name, value in spark_settings(tmp_path).items()]

    def run(job: str, *arguments: str) -> tuple[int, str, str]:
        line = ["spark", job, *arguments, "--json", *settings]
        questions.write(json.dumps(line) + "\n")
        questions.flush()
        code, output, errors = json.loads(answers.readline())
        return code, output, errors

    return run


def result(done: tuple[int, str, str], code: int = 0) -> dict[str, Any]:
    """The one object that it printed."""
    assert done[0] == code, done[2][-3000:]
    found: dict[str, Any] = json.loads(done[1])
    return found


def test_archive_replay_and_audit(
    command: Command, our_broker: SparkBroker, topic: str, deduplicated_topic: str, tmp_path: Path
) -> None:
    for first in range(0, 200, 20):
        send(our_broker.url, topic, keyed(range(first, first + 20)))
    path, report = str(tmp_path / "archive"), tmp_path / "report"
    done = result(command("archive", topic, path, "--most", "60", "--report", str(report)))
    assert done["messages"] == 200
    assert done["batches"] > 1, "one batch has 60 messages at most"
    page = (report / "report.html").read_text()
    assert "200</b>messages" in page
    assert all(f'aria-label="{plot}"' in page for plot in ("Messages a second", "Entries behind"))

    our_broker.admin.create_topic(deduplicated_topic)
    done = result(command("replay", path, "--topic", deduplicated_topic, "--write-id", "again"))
    assert done["messages"] == 200
    send(our_broker.url, deduplicated_topic, [b"no producer sent this"])
    done = result(command("audit", topic, deduplicated_topic), code=1)
    wrong = [done[name] for name in ("sent", "received", "lost", "duplicated", "foreign", "reordered")]
    assert wrong == [200, 201, 0, 0, 1, 0]
    assert [(each["kind"], each["topic"]) for each in done["examples"]] == [("foreign", deduplicated_topic)]


def test_redrive(
    command: Command, our_broker: SparkBroker, topic: str, deduplicated_topic: str, tmp_path: Path
) -> None:
    dead = f"{topic}-s-DLQ"
    our_broker.admin.create_topic(deduplicated_topic)
    send(our_broker.url, dead, letters(deduplicated_topic, ["timeout", "parse", "timeout"]))
    timeout = "__messageProperties['reason'] = 'timeout'"
    done = result(command("redrive", dead, str(tmp_path / "book"), "--where", timeout))
    assert done == {"moved": 2, "finished": 0, "left": 1}
    assert values_of(our_broker, deduplicated_topic) == [b"letter 0", b"letter 2"]


def test_what_goes_wrong_is_one_line(
    spark: SparkSession, our_broker: SparkBroker, topic: str, tmp_path: Path
) -> None:
    """A command prints the first line of an error that came through Spark with its traces."""
    with pytest.raises(Exception, match="TopicNotFound") as caught:
        archive(spark, {"service.url": our_broker.url, "topic": topic}, str(tmp_path / "archive"))
    said = _first_line(caught.value)
    assert said is not None
    assert said.startswith(f"topic {topic} does not exist at {our_broker.url}")
    assert "\n" not in said
