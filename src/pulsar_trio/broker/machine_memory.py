"""`machine_memory`: the memory that this process may use, of the machine or of its control group."""

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

WHERE_UNKNOWN = 4 * 1024**3
"""Bytes that a machine is taken to have where the system does not say."""


def machine_memory(root: Path = Path("/")) -> int:
    """Return the bytes of memory that this process may use. `root`: the folder with `proc` and `sys`."""
    memory = WHERE_UNKNOWN
    with suppress(AttributeError, ValueError, OSError):  # a system without sysconf, or without these names
        memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    for limit in _limits(root):
        with suppress(ValueError, OSError):  # no such file, or no limit
            memory = min(memory, int(limit.read_text()))
    return memory


def _limits(root: Path) -> Iterator[Path]:
    """Yield the files of Linux that may have a limit: those of the control group of this process and of the
    groups above it, in both versions of control groups."""
    groups = root / "sys/fs/cgroup"
    yield groups / "memory/memory.limit_in_bytes"
    yield groups / "memory.max"
    with suppress(OSError):
        for line in (root / "proc/self/cgroup").read_text().splitlines():
            _, _, group = line.partition("::/")
            for depth in range(len(parts := [each for each in group.split("/") if each])):
                yield groups.joinpath(*parts[: depth + 1], "memory.max")
