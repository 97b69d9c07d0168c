"""A real Pulsar ends with the process that started it. The suite relies on its serving and surviving a
kill."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.patience import PATIENCE

pytestmark = pytest.mark.real


STARTER = """
import time
from tests.real_pulsar import RealPulsar
with RealPulsar() as pulsar:
    print(pulsar.pid, pulsar.folder, flush=True)
    time.sleep(600)
"""


def test_it_ends_when_its_starter_is_killed() -> None:
    with subprocess.Popen([sys.executable, "-c", STARTER], stdout=subprocess.PIPE, text=True) as starter:
        try:
            assert starter.stdout is not None
            process, _, folder = starter.stdout.readline().strip().partition(" ")
        finally:
            starter.send_signal(signal.SIGKILL)
    deadline = time.monotonic() + PATIENCE
    while (Path(folder).exists() or alive(int(process))) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not alive(int(process))
    assert not Path(folder).exists()


def alive(process: int) -> bool:
    """Return whether there is such a process and it has not ended yet."""
    try:
        os.kill(process, 0)
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (ProcessLookupError, FileNotFoundError):
        return False
