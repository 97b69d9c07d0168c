"""`machine_memory`: the memory that this process may use, of the machine or of its control group."""

import os
from contextlib import suppress
from pathlib import Path

CONTROL_GROUP = Path("/sys/fs/cgroup/memory.max")
"""Linux: the limit of a container in bytes, or `max`."""

WHERE_UNKNOWN = 4 * 1024**3
"""Bytes that a machine is taken to have where the system does not say."""


def machine_memory(control_group: Path = CONTROL_GROUP) -> int:
    """Return the bytes of memory that this process may use."""
    memory = WHERE_UNKNOWN
    with suppress(AttributeError, ValueError, OSError):  # a system without sysconf, or without these names
        memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    with suppress(ValueError, OSError):  # no such file, or no limit
        memory = min(memory, int(control_group.read_text()))
    return memory
