"""`BrokerProcess`: a broker in a process of its own, which ends with the one that started it."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from tempfile import mkstemp
from threading import Timer
from types import TracebackType

from .control import BrokerHasEnded, ControlClient, PulsarBroker

COMMAND = (
    "-m",
    "pulsar_trio_command",
    "broker",
    "--port",
    "0",
    "--http-port",
    "0",
    "--json",
    "--test-control",
    "--stop-at-eof",
)
"""A broker on free ports of the loopback interface, which ends at the end of its standard input."""

START_TIME = 60.0
"""Seconds for the broker to start."""

STOP_TIME = 10.0
"""Seconds for it to stop; then it is killed."""

SHOWN = 64 * 1024
"""Bytes of the log that are shown at most, the latest ones."""

_NOT_IN_NAMES = re.compile(r"[^\w.-]+", re.ASCII)


class BrokerProcess:
    """`arguments`: options of `pulsar-trio broker`, such as `"--set", "maxMessageSize=1024"`.

    `with BrokerProcess() as process:` starts it and ends it. It also ends when this process does, however
    that happens: its standard input ends then. Raises `BrokerHasEnded` if it cannot start.
    """

    def __init__(self, *arguments: str) -> None:
        self._namespaces = count(1)
        log, name = mkstemp(suffix=".log", prefix="pulsar-broker-")
        self._log = Path(name)
        try:
            self._process = subprocess.Popen(
                [sys.executable, *COMMAND, *arguments],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                start_new_session=True,  # Ctrl-C is for the tests, whose fixtures need the broker to end well
            )
        finally:
            os.close(log)
        try:
            ready = self._wait_ready()
        except BaseException:
            self.close()
            raise
        self.url: str = ready["url"]
        """The service URL for clients."""
        self.admin_url: str = ready["admin_url"]
        """The URL of Pulsar's administration over HTTP."""
        self._control = ControlClient(self.admin_url, self._ended)

    def _wait_ready(self) -> dict[str, str]:
        """Return what the broker says when it is ready. Raises `BrokerHasEnded`."""
        process = self._process
        assert process.stdout is not None
        too_late = Timer(START_TIME, process.kill)
        too_late.start()
        try:
            line = process.stdout.readline()
        finally:
            too_late.cancel()
        if not line:
            process.wait()
            raise BrokerHasEnded(f"the broker did not start: {self.log() or 'it said nothing'}")
        ready: dict[str, str] = json.loads(line)
        return ready

    @property
    def log_size(self) -> int:
        """The number of bytes that the broker has logged."""
        return self._log.stat().st_size if self._log.exists() else 0

    def log(self, start: int = 0) -> str:
        """Return what the broker has logged from this byte on, its last 64 KiB at most."""
        if not self._log.exists():  # after `close`
            return ""
        with self._log.open("rb") as log:
            log.seek(max(start, self.log_size - SHOWN))
            return log.read().decode(errors="replace")

    @contextmanager
    def namespace(self, name: str = "test") -> Iterator[PulsarBroker]:
        """Give the broker with a new namespace, which has `name` in it.

        The namespace is deleted at the end, with its topics; all rules of faults are removed.
        """
        local = _NOT_IN_NAMES.sub("-", name)[:60].strip("-") or "test"
        namespace = f"public/{local}-{next(self._namespaces)}"
        broker = PulsarBroker(self.url, self.admin_url, namespace, self._control)
        broker.create_namespace()
        try:
            yield broker
        finally:
            broker.faults.clear()
            with suppress(LookupError):  # the test went back to a time before it
                broker.delete_namespace()

    def close(self) -> None:
        """End the process. A second call does nothing."""
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        with suppress(OSError):
            process.stdin.close()
        try:
            process.wait(STOP_TIME)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()
        self._log.unlink(missing_ok=True)

    def _ended(self) -> str | None:
        """Say how the process ended; None while it runs."""
        with suppress(subprocess.TimeoutExpired):
            code = self._process.wait(1.0)
            return f"the broker's process ended with exit code {code}: {self.log() or 'it said nothing'}"
        return None

    def __enter__(self) -> "BrokerProcess":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()
