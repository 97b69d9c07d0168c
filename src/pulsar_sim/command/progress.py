"""One line that shows the progress of a long command on a terminal."""

import sys
import time
from collections.abc import Callable

PROGRESS_EVERY = 1.0
"""Seconds."""


class ProgressLine:
    """One line on standard error, written over every second; nothing where that is no terminal."""

    def __init__(self, wanted: bool) -> None:
        self._shown = wanted and sys.stderr.isatty()
        self._next = time.monotonic() + PROGRESS_EVERY
        self._length = 0

    def show(self, line: Callable[[], str]) -> None:
        """Show the text that `line` gives, if it is time for that."""
        now = time.monotonic()
        if self._shown and now >= self._next:
            self._next = now + PROGRESS_EVERY
            self._write(line())

    def print(self, line: str) -> None:
        """A line that stays."""
        self.clear()
        print(line, file=sys.stderr)

    def clear(self) -> None:
        if self._length:
            self._write("")

    def _write(self, line: str) -> None:
        print(f"\r{line:<{self._length}}\r{line}", end="", file=sys.stderr, flush=True)
        self._length = len(line)
