"""The output of the commands: results on standard output, progress and errors on standard error.

Results are lines for people or, with `--json`, one object per line. A bar is drawn only on a terminal;
`NO_COLOR` is honoured. Text that came from elsewhere is printed with its control characters escaped.
"""

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from logging import INFO, WARNING, Handler, LogRecord, getLogger
from traceback import format_exception
from types import TracebackType

from rich.console import Console as RichConsole
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from pulsar_sansio import BrokerAddressRefused, ConnectionLost, InvalidConfiguration, TimedOut


class CommandFailed(Exception):
    """A command did not do what it was asked to. `hint` says what to try."""

    def __init__(self, text: str, hint: str = "") -> None:
        super().__init__(text)
        self.hint = hint


class Output:
    """The output of one command."""

    def __init__(self, as_json: bool) -> None:
        self.as_json = as_json

    def result(self, text: str, **values: object) -> None:
        """One result: `text` for people, `values` for machines."""
        sys.stdout.write((json.dumps(values, ensure_ascii=False) if self.as_json else text) + "\n")
        sys.stdout.flush()

    def note(self, text: str) -> None:
        """Print a line that is only for a person at the terminal."""
        if not self.as_json:
            print(text, file=sys.stderr, flush=True)

    def warning(self, text: str, traceback: str = "") -> None:
        """One line about something that may pass by itself; the command goes on.

        `traceback`: of the exception behind it, printed below the line.
        """
        text = one_line(text)
        if self.as_json:
            values = {"warning": text} | ({"traceback": traceback} if traceback else {})
            line = json.dumps(values, ensure_ascii=False)
        else:
            line = "\n".join([f"pulsar-trio: {text}", *map(printable, traceback.splitlines())])
        print(line, file=sys.stderr, flush=True)

    @contextmanager
    def connections_told(self) -> Iterator[None]:
        """Print warnings of the library, and that a connection is back, at once while the block runs."""
        library, connection = getLogger("pulsar_trio"), getLogger("pulsar_trio.connection")
        level = connection.level
        handler = _Told(self)
        library.addHandler(handler)
        connection.setLevel(INFO)
        try:
            yield
        finally:
            library.removeHandler(handler)
            connection.setLevel(level)

    def error(self, error: BaseException) -> None:
        """One line, with a hint where there is one."""
        text, hint = one_line(str(error) or type(error).__name__), hint_for(error)
        if self.as_json:
            line = json.dumps({"error": text, "hint": hint}, ensure_ascii=False)
        else:
            line = f"pulsar-trio: {text}" + (f" (hint: {hint})" if hint else "")
        print(line, file=sys.stderr, flush=True)

    def bar(self, text: str, total: int) -> "Bar":
        return Bar(text, total, not self.as_json and sys.stderr.isatty() and os.environ.get("TERM") != "dumb")


class _Told(Handler):
    """Prints records: warnings of all loggers of the library, and what `pulsar_trio.connection` says."""

    def __init__(self, output: Output) -> None:
        super().__init__()
        self._output = output

    def emit(self, record: LogRecord) -> None:
        if record.levelno >= WARNING or record.name == "pulsar_trio.connection":
            traceback = "".join(format_exception(*record.exc_info)) if record.exc_info else ""
            self._output.warning(record.getMessage(), traceback.rstrip())


class Bar:
    """A progress bar, drawn only if it is visible. `advance` draws at most ten times a second."""

    def __init__(self, text: str, total: int, visible: bool) -> None:
        self._progress: Progress | None = None
        if visible:
            self._progress = Progress(
                TextColumn("{task.description}"),
                BarColumn(),
                MofNCompleteColumn(),
                TextColumn("{task.fields[rate]}"),
                TimeElapsedColumn(),
                console=RichConsole(stderr=True, no_color=bool(os.environ.get("NO_COLOR")) or None),
                auto_refresh=False,
            )
            self._task = self._progress.add_task(text, total=total, rate="")

    def __enter__(self) -> "Bar":
        if self._progress is not None:
            self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._progress is not None:
            self._progress.refresh()
            self._progress.stop()

    def show(self, done: int, rate: str = "") -> None:
        """Draw the state; the caller does it now and then."""
        if self._progress is not None:
            self._progress.update(self._task, completed=done, rate=rate, refresh=True)


def hint_for(error: BaseException) -> str:
    """A hint that says what to try next, or an empty text."""
    if isinstance(error, CommandFailed):
        return error.hint
    if isinstance(error, InvalidConfiguration):
        return "see --help"
    if isinstance(error, (TimedOut, ConnectionLost)):
        return "is a broker listening at the URL? `pulsar-trio broker` starts one"
    if isinstance(error, BrokerAddressRefused):
        return "--broker-host allows a host that brokers may send this client to"
    if isinstance(error, OSError):
        return "is the port in use? choose another with --port"
    return ""


def one_line(text: str) -> str:
    return printable(" ".join(text.split()))


def printable(text: str) -> str:
    """Text with everything escaped that would move a terminal's cursor or change its state."""
    if text.isprintable():
        return text
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode()
        for character in text
    )


def number(value: float) -> str:
    """A count or rate for people: 1 234 567 as 1.23 M."""
    for unit, size in (("M", 1e6), ("k", 1e3)):
        if value >= size:
            return f"{value / size:.3g} {unit}"
    return f"{value:.3g}"
