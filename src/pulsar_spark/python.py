"""This module finds the Python that runs Spark's workers, and checks that it can do so.

Spark runs everything that a data source in Python does in workers, planning included. It starts them with
the Python that `PYSPARK_DRIVER_PYTHON` names, else `PYSPARK_PYTHON`, else the `python3` of the search path.
That is seldom the Python of a virtual environment. A worker whose Python has no `pulsar_spark` does not find
the format, and Spark says DATA_SOURCE_NOT_FOUND. Needs no PySpark, and no session.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping

from .errors import PulsarSparkError

PATIENCE = 60.0
"""Seconds that a Python may take to import what workers need. It takes one."""

SCRIPT = "import sys; print(*sys.version_info[:2], sep='.'); import pyarrow, pulsar_sansio, pulsar_spark"
"""Prints the version of the Python, and imports what a worker needs beside PySpark, which Spark brings."""


class WrongPython(PulsarSparkError):
    """The Python of Spark's workers cannot run this package. The text says which it is, and what to do."""


def workers_python(environment: Mapping[str, str] = os.environ) -> tuple[str, str]:
    """The command that starts Spark's workers on this machine, and the variable that names it."""
    for variable in ("PYSPARK_DRIVER_PYTHON", "PYSPARK_PYTHON"):
        if environment.get(variable):
            return environment[variable], variable
    return "python3", "PYSPARK_PYTHON"


def check_python(environment: Mapping[str, str] = os.environ) -> None:
    """Check that the Python of Spark's workers on this machine is the driver's version, and has this package.

    Call it before the session is made, in a program that runs Spark on its own machine (`local[…]`). Raises
    `WrongPython`. It starts that Python once, unless it is the one that runs now.
    """
    command, variable = workers_python(environment)
    given = f"{variable} is {command}"
    if not environment.get(variable):
        given = f"{variable} is not set, which means {command}"
    found = shutil.which(command, path=environment.get("PATH"))
    if found is None:
        raise _wrong(variable, given, "there is no such program")
    if os.path.abspath(found) == sys.executable:
        return
    try:
        done = subprocess.run(
            [found, "-c", SCRIPT], capture_output=True, text=True, timeout=PATIENCE, env=dict(environment)
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise _wrong(variable, given, f"it does not start: {error}") from error
    version = done.stdout.strip()
    ours = ".".join(str(part) for part in sys.version_info[:2])
    if version and version != ours:
        raise _wrong(variable, given, f"it is Python {version}, and the driver is Python {ours}")
    if done.returncode:
        lines = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
        raise _wrong(variable, given, lines[-1])


def _wrong(variable: str, given: str, why: str) -> WrongPython:
    return WrongPython(
        f"Spark's workers cannot run pulsar_spark: {given}: {why}. Set {variable} to a Python that has "
        f"pulsar-trio[spark], such as that of the driver, {sys.executable}, before the session is made"
    )
