"""Processes that may hang, crash, or eat all the memory: each does one piece of work and ends.

This module owns forking, limits and the output of children. A child is a fork of this process, so it has all
that is imported here, and returns lines of text. The caller deals with work that a child leaves undone.
"""

import contextlib
import os
import selectors
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from traceback import format_exc
from typing import Generic, TypeAlias, TypeVar

Key = TypeVar("Key")

Say: TypeAlias = Callable[[str], None]

MEMORY = 2 << 30
"""Bytes of address space; a process that runs worlds or tests takes a tenth of it."""


@dataclass(slots=True)
class EndedChild(Generic[Key]):
    """A child that is done, or was ended."""

    key: Key
    lines: list[str]
    signal: int
    """The number of the signal that ended the child; 0 where it ended by itself."""
    late: bool
    """True when the child took more time by the clock than it was given."""


@dataclass(slots=True)
class _Child(Generic[Key]):
    key: Key
    pid: int
    reading: int
    until: float
    said: bytearray = field(default_factory=bytearray)
    late: bool = False


class Children(Generic[Key]):
    """A few processes at a time. Leaving the context ends those that still run."""

    def __init__(self, jobs: int) -> None:
        self._jobs = jobs
        self._children: dict[int, _Child[Key]] = {}
        self._selector = selectors.DefaultSelector()

    def __enter__(self) -> "Children[Key]":
        return self

    def __exit__(self, *_: object) -> None:
        for child in list(self._children.values()):
            os.kill(child.pid, signal.SIGKILL)
            self._end(child)
        self._selector.close()

    @property
    def full(self) -> bool:
        return len(self._children) >= self._jobs

    @property
    def busy(self) -> bool:
        return bool(self._children)

    def start(self, key: Key, work: Callable[[Say], None], processor: int, clock: float) -> None:
        """Run `work(say)` in a fork of this process, for so many seconds at most, of both kinds."""
        reading, writing = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(reading)
            _work(work, writing, processor)
        os.close(writing)
        self._children[reading] = _Child(key, pid, reading, time.monotonic() + clock)
        self._selector.register(reading, selectors.EVENT_READ)

    def wait(self) -> EndedChild[Key]:
        """The next child that ends. There must be one."""
        while True:
            soonest = min(child.until for child in self._children.values())
            for ready, _ in self._selector.select(max(0.0, soonest - time.monotonic())):
                child = self._children[ready.fd]
                data = os.read(ready.fd, 1 << 16)
                if not data:
                    return self._end(child)
                child.said += data
            for child in self._children.values():
                if time.monotonic() >= child.until:
                    child.late, child.until = True, time.monotonic() + 1.0
                    os.kill(child.pid, signal.SIGKILL)

    def _end(self, child: _Child[Key]) -> EndedChild[Key]:
        self._selector.unregister(child.reading)
        os.close(child.reading)
        del self._children[child.reading]
        _, status = os.waitpid(child.pid, 0)
        lines = child.said.decode(errors="replace").splitlines()
        return EndedChild(child.key, lines, os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0, child.late)


def _work(work: Callable[[Say], None], writing: int, processor: int) -> None:
    """Never returns. A child says what it wants to say through the pipe; what it prints is thrown away."""
    import resource  # for systems that can fork

    try:
        nothing = os.open(os.devnull, os.O_RDWR)
        for standard in (0, 1, 2):
            os.dup2(nothing, standard)
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        resource.setrlimit(resource.RLIMIT_CPU, (processor, processor + 5))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        signal.signal(signal.SIGINT, signal.SIG_DFL)

        def say(line: str) -> None:
            left = f"{' '.join(line.splitlines())}\n".encode(errors="replace")
            while left:
                left = left[os.write(writing, left) :]

        try:
            work(say)
        except BaseException:
            with contextlib.suppress(BaseException):
                say(f"! {format_exc().strip().splitlines()[-1]}")
    finally:
        os._exit(0)
