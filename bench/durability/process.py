"""The processor time and the memory of a broker's process."""

import os
import subprocess
from pathlib import Path


def cpu_of(process: "subprocess.Popen[str]") -> float:
    """The seconds of processor time of a process; 0 where the system does not say."""
    try:
        words = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


def memory_of(process: "subprocess.Popen[str]", what: str = "VmRSS") -> int:
    """The megabytes that a process has in memory, or had at most (`VmHWM`); 0 where the system does not
    say."""
    try:
        status = Path(f"/proc/{process.pid}/status").read_text()
    except OSError:
        return 0
    (line,) = (each for each in status.splitlines() if each.startswith(what))
    return int(line.split()[1]) // 1024
