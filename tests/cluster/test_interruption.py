"""A run that is interrupted ends every process of its cluster, and its ports and its data are free."""

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytestmark = [pytest.mark.cluster, pytest.mark.long]

ROOT = Path(__file__).parents[2]

PROGRAM = """
import time
from tests.cluster.real_cluster import RealCluster
with RealCluster(secure=False) as cluster:
    processes = [cluster._zookeeper, cluster._bookie, *(broker.process for broker in cluster.brokers)]
    print(*(process.pid for process in processes), flush=True)
    ports = [cluster._zookeeper_port, cluster._bookie_port, *(broker.port for broker in cluster.brokers)]
    print(*ports, flush=True)
    print(cluster.folder, flush=True)
    time.sleep(600)
"""

PATIENCE = 60.0
"""Seconds until a watcher has ended its process; it takes a moment."""


def runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def is_free(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) != 0


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL], ids=lambda each: each.name)
def test_nothing_is_left(how: signal.Signals) -> None:
    started = subprocess.Popen(
        [sys.executable, "-c", PROGRAM],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert started.stdout is not None
    pids = [int(pid) for pid in started.stdout.readline().split()]
    ports = [int(port) for port in started.stdout.readline().split()]
    folder = Path(started.stdout.readline().strip())
    assert len(pids) == len(ports) == 4
    assert all(map(runs, pids))
    assert not any(map(is_free, ports))
    started.send_signal(how)
    started.wait(PATIENCE)
    started.stdout.close()
    deadline = time.monotonic() + PATIENCE
    while any(map(runs, pids)) or not all(map(is_free, ports)) or folder.exists():
        assert time.monotonic() < deadline, [pid for pid in pids if runs(pid)]
        time.sleep(0.1)
