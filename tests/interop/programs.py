"""The commands of the programs in Java and Go, and the answers of those that try credentials.

A Java program needs Java 17 with its compiler, and the jars of the real Pulsar. A Go program needs Go
and the modules of `go/go.mod`. It is built once into the cache of these jars. `Unavailable` names what is
missing.
"""

import hashlib
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path

import trio

from tests.real_pulsar.jars import Unavailable, cache_root, jars, java

HERE = Path(__file__).parent

BUILD_TIMEOUT = 900.0
"""Seconds. The first build compiles the client and its modules: two minutes of processor time."""


def java_command() -> list[str]:
    """Return the command of the Java program for each credential. Raises `Unavailable`."""
    return _java_source("Exchange.java")


def java_typed_command() -> list[str]:
    """Return the command of the Java program for typed messages. Raises `Unavailable`."""
    return _java_source("Typed.java")


def java_workload_command() -> list[str]:
    """Return the command of the Java program of workloads; compiles it if needed. Raises `Unavailable`."""
    folder = HERE / "java" / "workload"
    sources = sorted(folder.glob("*.java"))
    version = hashlib.sha256(b"".join(file.read_bytes() for file in sources)).hexdigest()[:16]
    classes = cache_root() / "interop" / f"java-{version}"
    if not classes.is_dir():
        _compile(sources, classes)
    return [java(), "-Xmx512m", "-XX:TieredStopAtLevel=1", "-cp", f"{classes}:{jars()}/*", "Workload"]


def _compile(sources: list[Path], classes: Path) -> None:
    javac = shutil.which("javac", path=str(Path(java()).parent)) or shutil.which("javac")
    if javac is None:
        raise Unavailable("the workloads of the Java client need a Java with its compiler")
    classes.parent.mkdir(parents=True, exist_ok=True)
    arriving = Path(tempfile.mkdtemp(prefix="java-arriving-", dir=classes.parent))
    command = [javac, "-d", str(arriving), "-cp", f"{jars()}/*", *map(str, sources)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=BUILD_TIMEOUT, check=False)
    assert done.returncode == 0, done.stderr
    try:
        arriving.rename(classes)
    except OSError:  # another run was faster
        shutil.rmtree(arriving)


def _java_source(name: str) -> list[str]:
    options = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]
    return [java(), *options, "-cp", f"{jars()}/*", str(HERE / "java" / name)]


def go_command() -> list[str]:
    """Return the command of the Go program for each credential. Raises `Unavailable`."""
    return [_built(".")]


def go_typed_command() -> list[str]:
    """Return the command of the Go program for typed messages. Raises `Unavailable`."""
    return [_built("./typed")]


def _built(package: str) -> str:
    sources = sorted(file for file in (HERE / "go").rglob("*") if file.is_file())
    version = hashlib.sha256(b"".join(file.read_bytes() for file in sources)).hexdigest()[:16]
    program = cache_root() / "interop" / f"go-{version}" / package / "program"
    if not program.is_file():
        _build(package, program)
    return str(program)


def _build(package: str, program: Path) -> None:
    go = shutil.which("go")
    if go is None:
        raise Unavailable("the Go client needs Go, and there is no `go` on PATH")
    program.parent.mkdir(parents=True, exist_ok=True)
    command = [go, "build", "-o", str(program), package]
    try:
        done = subprocess.run(
            command, cwd=HERE / "go", capture_output=True, text=True, timeout=BUILD_TIMEOUT, check=False
        )
    except subprocess.TimeoutExpired:
        raise Unavailable(f"Go did not build its client in {BUILD_TIMEOUT:.0f} s") from None
    if done.returncode != 0:
        raise Unavailable(f"Go could not build its client: {done.stderr.strip().splitlines()[-1]}")


async def answers(command: list[str], cases: Iterable[Mapping[str, str]]) -> dict[str, str]:
    """Run a program with a line for each case; returns "ok" or "refused" with the reason, by name."""
    lines = "".join("\t".join(f"{name}={value}" for name, value in case.items()) + "\n" for case in cases)
    done = await trio.run_process(
        command, stdin=lines.encode(), capture_stdout=True, stderr=subprocess.DEVNULL, check=False
    )
    found = (line.split("\t") for line in done.stdout.decode().splitlines())
    return {
        answer[0]: " ".join(answer[1:]).strip()
        for answer in found
        if len(answer) == 3 and answer[1] in ("ok", "refused")  # other lines are of a log
    }
