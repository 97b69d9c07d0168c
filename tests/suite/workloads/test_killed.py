"""Workloads of the official Java client, whose broker is killed and started again over its data on disk."""

import json
import os
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
import trio

from tests.patience import give_up

from .program import run_workload

pytestmark = [
    pytest.mark.real,
    pytest.mark.slow,
    pytest.mark.unwatched(why="the checker cannot tell which connections are of one Java client"),
]

SCENARIOS = (
    "shared",
    "key-shared",
    "failover",
    "cumulative",
    "chunks",
    "deduplication",
    "table",
    "partitioned-reader",
    "delayed",
    "letters",
)
"""Scenarios of Workload.java whose messages are stored, and that need no connection to be calm."""


class KilledBroker:
    """A process of `pulsar-trio broker --data DIR --sync batch` on ports that it keeps."""

    def __init__(self, nursery: trio.Nursery, data: Path) -> None:
        self._nursery = nursery
        self._data = data
        self._ports = ["0", "0"]
        self.url = ""
        self.admin_url = ""

    async def start(self) -> None:
        port, http_port = self._ports
        command = [sys.executable, "-m", "pulsar_trio_command", "broker", "--json", "--data", str(self._data)]
        command += ["--sync", "batch", "--port", port, "--http-port", http_port]
        run = partial(
            trio.run_process, command, check=False, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        self._process: trio.Process = await self._nursery.start(run)
        assert self._process.stdout is not None
        line = b""
        while not line.endswith(b"\n"):
            line += await self._process.stdout.receive_some()
        ready = json.loads(line)
        self.url, self.admin_url = ready["url"], ready["admin_url"]
        self._ports = [self.url.rpartition(":")[2], self.admin_url.rpartition(":")[2]]

    async def kill(self) -> None:
        os.kill(self._process.pid, signal.SIGKILL)
        await self._process.wait()


async def test_what_the_java_client_was_told_outlives_a_broker_that_is_killed(
    nursery: trio.Nursery, tmp_path: Path
) -> None:
    nursery.start_soon(give_up)
    broker = KilledBroker(nursery, tmp_path / "data")
    await broker.start()
    kills = 0

    async def disturb(number: int) -> None:
        """Kill the broker while messages are on their way, and start it again."""
        nonlocal kills
        await broker.kill()
        await broker.start()
        kills += 1

    arguments = [broker.url, broker.url, broker.admin_url, "public/killed", *SCENARIOS]
    outcome = await run_workload(arguments, disturb)
    assert outcome.scenarios == dict.fromkeys(SCENARIOS, "ok"), outcome.failures
    assert ", 0 confirmed and again" in outcome.reports["cumulative"], outcome.reports
    assert kills == outcome.rounds > 0
    await broker.kill()
