"""A real Pulsar ends with whoever started it; that it serves and survives a kill, the suite stands on."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytestmark = pytest.mark.real


def test_it_ends_when_its_starter_is_killed() -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "tests.real_pulsar", "run"], stdout=subprocess.PIPE, text=True
    ) as starter:
        try:
            assert starter.stdout is not None
            said = dict(line.split(" ", 1) for line in (starter.stdout.readline() for _ in range(5)))
        finally:
            starter.send_signal(signal.SIGKILL)
    folder = Path(said["log"]).parent
    deadline = time.monotonic() + 10
    while (folder.exists() or alive(int(said["pid"]))) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not alive(int(said["pid"]))
    assert not folder.exists()


def alive(process: int) -> bool:
    """Whether there is such a process and it has not ended yet."""
    try:
        os.kill(process, 0)
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (ProcessLookupError, FileNotFoundError):
        return False
