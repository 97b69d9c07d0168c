"""`RealPulsar`: a standalone Apache Pulsar as a child process, on free ports, over a data folder of its own.

It ends with the process that started it, whatever becomes of that one: by `stop()`, at exit, or by a
watcher (a shell that waits for its standard input to close) where the starter was killed.
"""

import atexit
import contextlib
import http.client
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.real_pulsar.admin import Admin, AdminError
from tests.real_pulsar.jars import Unavailable, jars, java

HERE = Path(__file__).parent

START_TIMEOUT = 120.0
"""Seconds until ready: 6 to 8 on two idle cores, ten times that on a machine with better things to do."""

STOP_TIMEOUT = 15.0
"""Seconds between SIGTERM and SIGKILL."""

START_ATTEMPTS = 8
"""The attempts of one `start()`: one start in four after SIGKILL ends in the livelock that `_livelocked`
detects."""

_START_SOON = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]
"""Not the compiler that makes it fast in the long run, nor threads for garbage: with these a start takes 9
seconds of processor time instead of 21."""

_JVM_OPTIONS = [
    "-Xmx1g",
    "-XX:MaxDirectMemorySize=1g",
    "-Dio.netty.tryReflectionSetAccessible=true",
    *("--add-opens", "java.base/java.nio=ALL-UNNAMED"),
    *("--add-opens", "java.base/jdk.internal.misc=ALL-UNNAMED"),
    *("--add-opens", "java.base/java.util.zip=ALL-UNNAMED"),
    *("--add-opens", "java.base/java.io=ALL-UNNAMED"),
    *("--add-opens", "java.base/java.lang=ALL-UNNAMED"),
    *("--add-opens", "java.base/jdk.internal.platform=ALL-UNNAMED"),
]


def standalone_conf(settings: Mapping[str, str]) -> str:
    """Return the text of a standalone.conf; these settings replace those of the file in this folder."""
    lines = "".join(f"{name}={value}\n" for name, value in settings.items())
    return (HERE / "standalone.conf").read_text() + lines


class RealPulsar:
    """A standalone broker with its store, as a context manager or by `start()` and `stop()`.

    `settings` are lines of its configuration, replacing those of standalone.conf. Ports and data stay the
    same over `kill()` and `start()`; `stop()` ends it for good and removes the data. `long_running`: be fast
    later rather than ready soon, for measurements. `token`: of a superuser, for a broker with authentication.
    """

    def __init__(
        self,
        settings: Mapping[str, str] | None = None,
        *,
        long_running: bool = False,
        token: str | None = None,
    ) -> None:
        self._settings = dict(settings or {})
        self._options = [*_JVM_OPTIONS, *([] if long_running else _START_SOON)]
        self._process: subprocess.Popen[bytes] | None = None
        self._watcher: subprocess.Popen[bytes] | None = None
        self.port, self.admin_port, self._bookkeeper_port = free_ports(3)
        self.admin = Admin("127.0.0.1", self.admin_port, token)
        self.folder: Path | None = None

    @property
    def url(self) -> str:
        """A service URL that names the broker as it names itself: the lookup's connection is used on."""
        return f"pulsar://localhost:{self.port}"

    @property
    def url_by_another_name(self) -> str:
        """A service URL with another name for the same address.

        A standalone on loopback answers every lookup with `proxy_through_service_url`, so a client of this
        URL opens a second connection to the same place, with `proxy_to_broker_url`.
        """
        return f"pulsar://127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        """The JVM's process id, while it runs."""
        assert self._process is not None
        return self._process.pid

    # --- life ------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Start it and wait until it serves public/default. Raises `Unavailable` where it cannot run."""
        assert self._process is None, "already started"
        command_java, folder = java(), jars()
        if self.folder is None:
            self.folder = Path(tempfile.mkdtemp(prefix="real-pulsar-"))
            atexit.register(self.stop)
        self._write_configuration(self.folder)
        command = [
            *(command_java, *self._options, "-Dlog4j2.configurationFile=log4j2.properties"),
            *("-cp", f"{self.folder / 'conf'}:{folder}/*", "org.apache.pulsar.PulsarStandaloneStarter"),
            *("--config", str(self.folder / "conf" / "standalone.conf"), "-nfw", "-nss"),
            *("--bookkeeper-port", str(self._bookkeeper_port)),
        ]
        try:
            for _ in range(START_ATTEMPTS):
                self._launch(command, self.folder)
                if self._became_ready():
                    return
                self.kill()
            raise Unavailable(f"the real Pulsar did not come up in {START_ATTEMPTS} attempts")
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """End it for good: SIGTERM, after a while SIGKILL; the data goes too. Twice is once."""
        self._end(signal.SIGTERM)
        if self.folder is not None:
            shutil.rmtree(self.folder, ignore_errors=True)
            self.folder = None
            atexit.unregister(self.stop)

    def kill(self) -> None:
        """SIGKILL, and gone when this returns. The data stays; `start()` goes on over it."""
        self._end(signal.SIGKILL)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        exception_type: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()

    # --- inside ------------------------------------------------------------------------------------------

    def _write_configuration(self, folder: Path) -> None:
        conf = folder / "conf"
        conf.mkdir(exist_ok=True)
        shutil.copy(HERE / "log4j2.properties", conf)
        settings = {
            "brokerServicePort": str(self.port),
            "webServicePort": str(self.admin_port),
            "advertisedAddress": "localhost",
            **self._settings,
        }
        (conf / "standalone.conf").write_text(standalone_conf(settings))

    def _launch(self, command: list[str], folder: Path) -> None:
        with (folder / "log").open("wb") as log:
            self._process = subprocess.Popen(
                command,
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # Ctrl-C is for the tests, which then stop it in order
            )
        self._watcher = _watch(self._process.pid, folder)

    def _became_ready(self) -> bool:
        """Wait for it; False where it has to be started once more."""
        assert self._process is not None
        deadline = time.monotonic() + START_TIMEOUT
        while not self._ready():
            if self._livelocked():
                return False
            if self._process.poll() is not None:
                raise Unavailable(f"the real Pulsar ended while it started: {self._last_words()}")
            if time.monotonic() > deadline:
                words = self._last_words()
                raise Unavailable(f"the real Pulsar was not ready in {START_TIMEOUT:.0f} s: {words}")
            time.sleep(0.1)
        return not self._livelocked()

    def _livelocked(self) -> bool:
        """Return whether this start went wrong in Pulsar's own way.

        The metadata store of a standalone keeps the bookie's registration over a SIGKILL. The next bookie
        finds it, deletes it and registers. If the bookie then hears of that deletion, it takes it for a loss
        of its own registration. It deletes and registers again, hears of that, and so for ever; no ledger can
        be made. A healthy start has at most two such lines.
        """
        assert self.folder is not None
        return (self.folder / "log").read_text(errors="replace").count(" was invalidated") > 20

    def _ready(self) -> bool:
        try:
            self.admin.request("GET", "/metrics/", timeout=5.0)
            self.admin.request("GET", "/admin/v2/namespaces/public/default", timeout=5.0)
            self.admin.request("GET", "/admin/v2/persistent/public/default", timeout=5.0)
        except (OSError, http.client.HTTPException, AdminError):
            return False
        return True

    def _last_words(self) -> str:
        assert self.folder is not None
        lines = (self.folder / "log").read_text(errors="replace").splitlines()
        telling = (
            [line for line in lines if "ERROR" in line or "Exception" in line] or lines or ["it said nothing"]
        )
        return telling[-1].strip()[:300]

    def _end(self, how: signal.Signals) -> None:
        process, self._process = self._process, None
        watcher, self._watcher = self._watcher, None
        if watcher is not None:  # before the process group's number can be another's
            watcher.kill()
            watcher.wait()
            assert watcher.stdin is not None
            watcher.stdin.close()
        if process is None:
            return
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, how)
        try:
            process.wait(STOP_TIMEOUT)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _watch(group: int, folder: Path) -> subprocess.Popen[bytes]:
    """A shell that ends the process group, and removes its data, when this process is gone."""
    script = 'read -r _; kill -9 "-$1"; rm -rf -- "$2"'
    return subprocess.Popen(
        ["sh", "-c", script, "sh", str(group), str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def free_ports(count: int) -> list[int]:
    """Ports that were free a moment ago, all different."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]
