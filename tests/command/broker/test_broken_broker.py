"""`pulsar-trio broker` with a bug in it says where the bug is, and ends."""

import os
import socket
import subprocess
import sys

SCRIPT = """
import sys
from pulsar_sansio import Broker
from pulsar_trio_command.command import main

def accepted(self, now, link, peer):
    raise ZeroDivisionError("planted")

Broker.accepted = accepted
sys.exit(main(["broker", "--port", "0"]))
"""


def test_the_traceback_of_a_bug_is_shown() -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(
        [sys.executable, "-c", SCRIPT],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as running:
        assert running.stdout is not None
        ready = running.stdout.readline()
        port = int(ready.rpartition(":")[2])
        with socket.create_connection(("127.0.0.1", port)):
            _, said = running.communicate()
    assert running.returncode == 1
    before, _, after = said.partition("Traceback (most recent call last):")
    assert "a bug in pulsar-trio, please report it with the traceback that was logged" in before
    assert "in accepted\n" in after
    assert "ZeroDivisionError: planted\n" in after
