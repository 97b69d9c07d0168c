"""The jobs as people run them: `pulsar-trio spark …` in a process of its own, with a Spark of its own."""

import json
import os
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from pulsar_spark.command import _first_line
from pulsar_spark.jobs.archive import archive
from tests.spark.brokers import SparkBroker
from tests.spark.conftest import ROOT, spark_settings
from tests.spark.reading_back import values_of
from tests.spark.sending import send
from tests.spark.test_message_jobs import keyed, letters

pytestmark = pytest.mark.spark

Command = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def command(tmp_path: Path, our_broker: SparkBroker) -> Command:
    """Runs `pulsar-trio spark`, with the command as pyproject.toml names it, whatever is installed."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    installed = tmp_path / "installed"
    told = installed / f"pulsar_trio-{project['version']}.dist-info"
    told.mkdir(parents=True)
    (told / "METADATA").write_text(f"Name: {project['name']}\nVersion: {project['version']}\n")
    lines = [
        line
        for group, points in project["entry-points"].items()
        for line in (f"[{group}]", *(f"{name} = {target}" for name, target in points.items()))
    ]
    (told / "entry_points.txt").write_text("\n".join(lines))
    settings = [f"--conf={name}={value}" for name, value in spark_settings(tmp_path).items()]
    environment = {
        **os.environ,
        "PULSAR_URL": our_broker.url,
        "PYTHONPATH": os.pathsep.join([str(installed), os.environ["PYTHONPATH"]]),
    }

    def run(job: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        line = [sys.executable, "-m", "pulsar_trio_command", "spark", job, *arguments, "--json", *settings]
        return subprocess.run(
            line, env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=600, check=False
        )

    return run


def result(done: subprocess.CompletedProcess[str], code: int = 0) -> dict[str, Any]:
    """The one object that it printed."""
    assert done.returncode == code, done.stderr[-3000:]
    found: dict[str, Any] = json.loads(done.stdout)
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
    send(our_broker.url, deduplicated_topic, [b"nobody sent this"])
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
