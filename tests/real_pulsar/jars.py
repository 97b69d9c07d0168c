"""The jars of Apache Pulsar: fetched once with Maven into a cache outside the checkout.

The cache is `~/.cache/pulsar-trio/real-pulsar/<version>` (`PULSAR_TRIO_CACHE` replaces
`~/.cache/pulsar-trio`). It appears by a rename when everything is there, so a fetch that was cut short is
never used and two runs that fetch at once do not meet.
"""

import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

VERSION = "4.0.7"
"""Apache Pulsar's version; pom.xml says which others exist."""

POM = Path(__file__).with_name("pom.xml")

FETCH_TIMEOUT = 900.0
"""Seconds. 315 jars, 231 MB: about a minute from a near mirror, and the limit of patience from a far one."""


class Unavailable(Exception):
    """A real Pulsar cannot be had here; the text is one line that says what is missing."""


def java() -> str:
    """The path of a `java` of version 17 or later: from JAVA_HOME if that is set, else from PATH.

    Raises `Unavailable`.
    """
    command = _tool("java", "Java 17 or later")
    said = subprocess.run([command, "-version"], capture_output=True, text=True, check=False)
    found = re.search(r'version "(\d+)', said.stderr + said.stdout)
    if found is None or int(found[1]) < 17:
        version = f"version {found[1]}" if found else "of no recognisable version"
        raise Unavailable(f"a real Pulsar needs Java 17 or later; {command} is {version}")
    return command


def jars(cache: Path | None = None) -> Path:
    """The folder with the jars; fetches them if they are not there yet. Raises `Unavailable`."""
    root = cache or cache_root()
    folder = root / "real-pulsar" / VERSION
    if not folder.is_dir():
        _fetch(folder)
    return folder


def cache_root() -> Path:
    """`PULSAR_TRIO_CACHE`, or `~/.cache/pulsar-trio`."""
    given = os.environ.get("PULSAR_TRIO_CACHE")
    return Path(given) if given else Path.home() / ".cache" / "pulsar-trio"


def _fetch(folder: Path) -> None:
    maven = _tool("mvn", "Maven (to fetch its jars the first time)")
    folder.parent.mkdir(parents=True, exist_ok=True)
    arriving = Path(tempfile.mkdtemp(prefix=f"{VERSION}-arriving-", dir=folder.parent))
    try:
        _copy_dependencies(maven, arriving)
        arriving.chmod(0o755)
        try:
            arriving.rename(folder)
        except OSError:
            if not folder.is_dir():  # else: another run was faster, and its jars are as good
                raise
    finally:
        shutil.rmtree(arriving, ignore_errors=True)


def _copy_dependencies(maven: str, target: Path) -> None:
    command = [
        *(maven, "-q", "-B", "-f", str(POM), f"-Dpulsar.version={VERSION}"),
        *("dependency:copy-dependencies", f"-DoutputDirectory={target}"),
    ]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=FETCH_TIMEOUT, check=False)
    except subprocess.TimeoutExpired:
        raise Unavailable(f"Maven did not fetch Apache Pulsar {VERSION} in {FETCH_TIMEOUT:.0f} s") from None
    if done.returncode != 0 or not any(target.glob("pulsar-broker-*.jar")):
        lines = [line for line in (done.stdout + done.stderr).splitlines() if "ERROR" in line]
        reason = lines[0].strip() if lines else f"exit status {done.returncode}"
        raise Unavailable(f"Maven could not fetch Apache Pulsar {VERSION}: {reason}")


def _tool(name: str, words: str) -> str:
    home = os.environ.get("JAVA_HOME")
    if name == "java" and home and (Path(home) / "bin" / "java").is_file():
        return str(Path(home) / "bin" / "java")
    found = shutil.which(name)
    if found is None:
        raise Unavailable(f"a real Pulsar needs {words}, and there is no `{name}` on PATH")
    return found
