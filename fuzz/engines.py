"""Running a target for a while: by hypothesis, always there, or by atheris, which learns from coverage.

Hypothesis is given the corpus to begin with, and shrinks what it finds. Atheris instruments the library, runs
in a process of its own (it ends the one it runs in), and may add to the corpus what reached new code.
"""

import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from fuzz import corpus
from fuzz.targets import MACHINES, TARGETS

LONGEST = 4096
"""Bytes of one input."""

PROGRAM = "FUZZ_PROGRAM"
"""The variable in the environment of `under_atheris` that names its program."""

MOST_KEPT = 30
"""Inputs that one run may add to the corpus: the shortest of those that reach something new."""


class Result(NamedTuple):
    """The result of one target. `failure`: the input in hexadecimal and the exception, or ""."""

    engine: str
    target: str
    seconds: float
    executions: int
    failure: str
    coverage: int = 0
    """Edges of the library that were reached; atheris only."""
    kept: int = 0
    """Inputs that went into the corpus."""

    def __str__(self) -> str:
        rate = self.executions / self.seconds if self.seconds else 0.0
        text = (
            f"{self.engine} {self.target}: {self.executions} executions in {self.seconds:.0f} s, {rate:.0f}/s"
        )
        if self.coverage:
            text += f", {self.coverage} edges"
        if self.kept:
            text += f", {self.kept} inputs kept"
        return f"{text}\nFAILED: {self.failure}" if self.failure else text


# --- hypothesis --------------------------------------------------------------------------------------


def strategy(target: str) -> st.SearchStrategy[bytes]:
    """Any bytes; an input of the corpus; or one of these with a part of it replaced."""
    anything = st.binary(max_size=1500 if target in MACHINES else 300)
    kept = [path.read_bytes() for path in corpus.inputs(target)]
    if not kept:
        return anything
    known = st.sampled_from(kept)
    changed = st.builds(_replaced, known, st.integers(0, LONGEST), st.integers(0, 9), st.binary(max_size=9))
    spliced = st.builds(_spliced, known, known, st.integers(0, LONGEST), st.integers(0, LONGEST))
    return st.one_of(anything, known, changed, changed, spliced)


def _replaced(data: bytes, place: int, length: int, by: bytes) -> bytes:
    place %= len(data) + 1
    return data[:place] + by + data[place + length :]


def _spliced(front: bytes, back: bytes, first: int, second: int) -> bytes:
    return front[: first % (len(front) + 1)] + back[second % (len(back) + 1) :]


def run_hypothesis(target: str, seconds: float, examples: int = 500) -> Result:
    """Again and again `examples` at a time, each time from another seed, until the time is over."""
    call = TARGETS[target]
    count = 0
    until = time.monotonic() + seconds
    begun = time.monotonic()

    def counted(data: bytes) -> None:
        nonlocal count
        count += 1
        call(data)

    phases = (Phase.generate, Phase.shrink)
    search: Callable[[], None] = settings(
        max_examples=examples,
        deadline=None,
        database=None,
        phases=phases,
        suppress_health_check=list(HealthCheck),
    )(given(strategy(target))(counted))
    failure = ""
    while time.monotonic() < until:
        try:
            search()
        except Exception as error:
            notes = " ".join(getattr(error, "__notes__", ()))
            failure = f"{type(error).__name__}: {error} {notes}"
            break
    return Result("hypothesis", target, time.monotonic() - begun, count, failure)


# --- atheris -----------------------------------------------------------------------------------------

_DONE = re.compile(r"Done (\d+) runs? in (\d+) second")
_COVERAGE = re.compile(r"cov: (\d+)")
_RUNS = re.compile(r"^#(\d+)", re.MULTILINE)


def run_atheris(target: str, seconds: float, *, keep: bool = False) -> Result:
    """Run a target under atheris, in a process of its own.

    `keep`: inputs that reached new code go into the corpus, merged to as few as reach all of it.
    """
    if find_spec("atheris") is None:
        return Result("atheris", target, 0.0, 0, "atheris is not installed: pip install atheris")
    with TemporaryDirectory() as folder:
        found = Path(folder) / "found"
        crashes = Path(folder) / "crashes"
        found.mkdir()
        crashes.mkdir()
        begun = time.monotonic()
        command = [
            *(sys.executable, "-m", "fuzz.under_atheris", target, str(found)),
            *(str(corpus.FOLDER / target), f"-max_total_time={max(1, round(seconds))}"),
            *(f"-max_len={LONGEST}", f"-artifact_prefix={crashes}/", "-timeout=60", "-rss_limit_mb=1024"),
        ]
        done = subprocess.run(command, capture_output=True, text=True, check=False, errors="replace")
        took = time.monotonic() - begun
        output = done.stderr + done.stdout
        runs = [int(number) for number in _RUNS.findall(output)]
        finished = _DONE.search(output)
        executions = int(finished[1]) if finished else max(runs, default=0)
        failure = _failure(output, crashes, done.returncode)
        kept = _merge(target, found, Path(folder)) if keep else 0
        coverage = max((int(number) for number in _COVERAGE.findall(output)), default=0)
        return Result("atheris", target, took, executions, failure, coverage, kept)


def _failure(output: str, crashes: Path, code: int) -> str:
    if not code:
        return ""
    inputs = [path.read_bytes().hex() for path in sorted(crashes.iterdir())]
    return f"exit code {code}, {len(inputs)} inputs {' '.join(inputs)}\n{output[-2000:]}"


def _merge(target: str, found: Path, folder: Path) -> int:
    """Keep as few of the new inputs as reach the new code. Returns the number kept."""
    merged = folder / "merged"
    merged.mkdir()
    before = [path.read_bytes() for path in corpus.inputs(target)]
    for number, data in enumerate(before):
        (merged / f"{number}").write_bytes(data)
    # It starts itself again and again, by the name it was started with.
    program = folder / "program"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m fuzz.under_atheris "{target}" "$@"\n')
    program.chmod(0o700)
    command = [str(program), "-merge=1", str(merged), str(found)]
    environment = {**os.environ, PROGRAM: str(program)}
    subprocess.run(command, capture_output=True, check=False, env=environment)
    new = {path.read_bytes() for path in merged.iterdir()} - set(before)
    return sum(corpus.keep(target, data) for data in sorted(new, key=len)[:MOST_KEPT])
