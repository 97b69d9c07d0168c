"""Processor time and memory of a process with all that it started: the driver, the JVM, Spark's workers."""

import os
from dataclasses import dataclass
from pathlib import Path

TICKS = os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True, slots=True)
class Used:
    """`cpu_seconds` since the processes began, those of children that have ended included."""

    cpu_seconds: float
    workers: tuple[int, ...]
    """Resident bytes of each Python worker. Shared memory counts in each of them."""


def used(root: int) -> Used:
    """The usage of process `root` and its descendants."""
    stats = {int(path.name): _stat(path) for path in Path("/proc").iterdir() if path.name.isdigit()}
    children: dict[int, list[int]] = {}
    for pid, stat in stats.items():
        if stat is not None:
            children.setdefault(int(stat[1]), []).append(pid)
    ticks, workers, waiting = 0, [], [root]
    while waiting:
        pid = waiting.pop()
        waiting += children.get(pid, [])
        stat = stats.get(pid)
        if stat is not None:
            ticks += sum(map(int, stat[11:15]))  # utime, stime, and those of children that were waited for
            if "pyspark.daemon" in _command(pid) and not children.get(pid):
                workers.append(int(stat[21]) * PAGE)
    return Used(ticks / TICKS, tuple(workers))


def _stat(path: Path) -> list[str] | None:
    """Fields of /proc/PID/stat behind the name, from the state on; None where it has ended."""
    try:
        return (path / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None


def _command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""
