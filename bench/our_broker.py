"""`pulsar-trio broker` as a process that is measured, with its processor time and its memory."""

import json
import os
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Self

from pulsar_store import Sync


class OurBroker:
    """`pulsar-trio broker`, in memory without `folder`."""

    def __init__(self, name: str, folder: Path | None, sync: Sync | None) -> None:
        self.name = name
        self._options = [] if folder is None else ["--data", str(folder), "--sync", str(sync)]
        self._process: subprocess.Popen[str] | None = None
        self.url = ""

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def start(self) -> None:
        command = [sys.executable, "-m", "pulsar_trio_command", "broker", "--port", "0", "--json"]
        self._process = subprocess.Popen([*command, *self._options], stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"{self.name}: the broker did not start")
        self.url = json.loads(line)["url"]

    def kill(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.communicate()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exception_type: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.kill()


def cpu_of(pid: int) -> float:
    """The seconds of processor time of a process; 0 where the system does not say."""
    try:
        words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


def memory_of(pid: int, what: str = "VmRSS") -> int:
    """The megabytes that a process has in memory, or had at most (`VmHWM`); 0 where the system does not
    say."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    (line,) = (each for each in status.splitlines() if each.startswith(what))
    return int(line.split()[1]) // 1024
