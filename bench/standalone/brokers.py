"""The brokers that are compared, as processes that can be killed and started again over their data."""

import json
import os
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

from pulsar_store import Sync
from tests.real_pulsar import RealPulsar


class Standalone(Protocol):
    """A broker with its store, the only ones on this machine. As a context it ends with the block."""

    name: str

    @property
    def url(self) -> str: ...

    @property
    def pid(self) -> int: ...

    def start(self) -> None:
        """Return when the broker serves clients."""
        ...

    def kill(self) -> None:
        """SIGKILL. The data stays."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(
        self,
        exception_type: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
    ) -> None: ...


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


class RealStandalone(RealPulsar):
    """A Java broker with its bookie. Its journal is synced before a receipt, as by default."""

    name = "Apache Pulsar, standalone"

    def __init__(self) -> None:
        super().__init__(long_running=True)

    def __enter__(self) -> Self:
        return self


def cpu_of(pid: int) -> float:
    """The seconds of processor time of a process."""
    words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


def memory_of(pid: int) -> int:
    """The megabytes that a process has in memory."""
    status = Path(f"/proc/{pid}/status").read_text()
    (line,) = (each for each in status.splitlines() if each.startswith("VmRSS"))
    return int(line.split()[1]) // 1024
