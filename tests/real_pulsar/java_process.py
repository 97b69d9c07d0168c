"""`JavaProcess`: one JVM over Pulsar's jars, which ends with the process that started it.

It ends by `end()`, or by a watcher (a shell that waits for its standard input to close) where the starter was
killed.
"""

import contextlib
import os
import shutil
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from tests.real_pulsar.jars import jars, java

STOP_TIMEOUT = 15.0
"""Seconds between SIGTERM and SIGKILL."""

START_SOON = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]
"""Not the compiler that makes a JVM fast in the long run, nor threads for garbage: with these a start takes 9
seconds of processor time instead of 21."""

_OPTIONS = [
    "-Dio.netty.tryReflectionSetAccessible=true",
    *("--add-opens", "java.base/java.nio=ALL-UNNAMED"),
    *("--add-opens", "java.base/jdk.internal.misc=ALL-UNNAMED"),
    *("--add-opens", "java.base/java.util.zip=ALL-UNNAMED"),
    *("--add-opens", "java.base/java.io=ALL-UNNAMED"),
    *("--add-opens", "java.base/java.lang=ALL-UNNAMED"),
    *("--add-opens", "java.base/jdk.internal.platform=ALL-UNNAMED"),
]


class JavaProcess:
    """`main`: the class that runs, with its `arguments`. `options`: those of the JVM, and its properties.

    `folder`: the working directory. It holds `log`, all that the process writes. `cleared`: the folder that
    goes when the starter was killed.
    """

    running: ClassVar[set["JavaProcess"]] = set()
    """These were launched and not ended."""

    def __init__(
        self, main: str, arguments: Sequence[str], folder: Path, options: Sequence[str], cleared: Path
    ) -> None:
        self._main = main
        self._arguments = list(arguments)
        self._folder = folder
        self._java_options = list(options)
        self._cleared = cleared
        self._process: subprocess.Popen[bytes] | None = None
        self._watcher: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        """The JVM's process id, while it runs."""
        assert self._process is not None
        return self._process.pid

    @property
    def log(self) -> str:
        return self.log_from(0)

    @property
    def logged(self) -> int:
        """The bytes of the log."""
        return (self._folder / "log").stat().st_size

    def log_from(self, first: int) -> str:
        """Return the log from this byte on."""
        with (self._folder / "log").open("rb") as log:
            log.seek(first)
            return log.read().decode(errors="replace")

    def launch(self) -> None:
        """Start it. Raises `Unavailable` where there is no Java or no jar."""
        assert self._process is None, "already started"
        command_java, folder = java(), jars()
        conf = self._folder / "conf"
        conf.mkdir(parents=True, exist_ok=True)
        shutil.copy(Path(__file__).parent / "log4j2.properties", conf)
        command = [
            *(command_java, *_OPTIONS, *self._java_options, "-Dlog4j2.configurationFile=log4j2.properties"),
            *("-cp", f"{conf}:{folder}/*", self._main, *self._arguments),
        ]
        with (self._folder / "log").open("wb") as log:
            self._process = subprocess.Popen(
                command,
                cwd=self._folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # Ctrl-C is for the tests, which then stop it in order
            )
        self._watcher = _watch(self._process.pid, self._cleared)
        JavaProcess.running.add(self)

    def ended(self) -> bool:
        """True when the process has ended by itself."""
        return self._process is not None and self._process.poll() is not None

    def last_output(self) -> str:
        """The last line of the log that tells of a failure; without one, the last line."""
        lines = self.log.splitlines()
        telling = (
            [line for line in lines if "ERROR" in line or "Exception" in line] or lines or ["it said nothing"]
        )
        return telling[-1].strip()[:300]

    def end(self, how: signal.Signals) -> None:
        """Send this signal, after `STOP_TIMEOUT` SIGKILL; the process is gone when this returns."""
        JavaProcess.running.discard(self)
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
