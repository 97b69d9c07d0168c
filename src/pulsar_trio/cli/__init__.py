"""The `pulsar-trio` command: `demo`, `broker`, `produce`, `consume`, `simulate`, and those of other packages.

A package adds a command by an entry point of the group `pulsar_trio.commands`: a function that is called with
the subparsers and the class `Output`, adds its parser, and sets `handler`, which gets the arguments and gives
the exit code. So this package need not know of it.

Exit codes: 0 done, 1 failed, 2 used wrongly. An error is one line on standard error with a hint.
"""

import argparse
import os
import sys
from collections.abc import Awaitable, Callable, Sequence
from importlib.metadata import entry_points
from io import TextIOWrapper
from typing import NoReturn

import trio

from pulsar_sansio import InvalidConfiguration, PulsarError, SubscriptionType

from . import broker, consume, demo, produce, simulate
from .console import Failed, Output

Command = Callable[[argparse.Namespace, Output], Awaitable[None]]

COMMANDS = "pulsar_trio.commands"
"""The group of entry points."""

DEFAULT_URL = "pulsar://localhost:6650"

NOBODY_READS = 141
"""The exit code of a command whose result nobody read, as a shell gives it for SIGPIPE."""


class _Parser(argparse.ArgumentParser):
    """One line for an error, instead of the whole usage."""

    def error(self, message: str) -> NoReturn:
        print(f"{self.prog}: {message} (hint: see `{self.prog} --help`)", file=sys.stderr)
        raise SystemExit(2)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; gives the exit code."""
    given = _parser().parse_args(arguments)
    if isinstance(sys.stdout, TextIOWrapper):  # keys and names may be no text, or none of this terminal
        sys.stdout.reconfigure(errors="backslashreplace")
    if hasattr(given, "handler"):  # needs no event loop, and has exit codes of its own
        try:
            code: int = given.handler(given)
            sys.stdout.flush()
        except BrokenPipeError:
            _write_nothing_more()
            return NOBODY_READS
        return code
    output = Output(given.json)
    try:
        trio.run(given.run, given, output)
    except BaseException as raised:
        error = _first(raised)
        match error:
            case KeyboardInterrupt():
                error = Failed("interrupted")
            case BrokenPipeError():  # whoever read our output has read enough
                _write_nothing_more()
                return 0
            case PulsarError() | OSError() | Failed():
                pass
            case _:
                raise
        output.error(error)
        return 2 if isinstance(error, InvalidConfiguration) else 1
    return 0


def _write_nothing_more() -> None:
    """Python would complain once more when it flushes what nobody reads."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _first(error: BaseException) -> BaseException:
    """What went wrong first, where tasks failed together."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def _parser() -> _Parser:
    parser = _Parser(prog="pulsar-trio", description="Apache Pulsar from the command line.")
    commands = parser.add_subparsers(required=True, metavar="command")

    def add(name: str, run: Command, text: str) -> argparse.ArgumentParser:
        command = commands.add_parser(name, help=text, description=text)
        command.add_argument("--json", action="store_true", help="one JSON object per line")
        command.set_defaults(run=run)
        return command

    def add_url(command: argparse.ArgumentParser) -> None:
        command.add_argument(
            "--url",
            default=os.environ.get("PULSAR_URL", DEFAULT_URL),
            help=f"service URL; default is $PULSAR_URL, else {DEFAULT_URL}",
        )

    command = add("demo", demo.run, "Start a broker, send messages through it and check that all arrive.")
    command.add_argument("--url", help="use this Pulsar instead of a broker of our own")
    command.add_argument("--count", type=_positive, default=100_000, help="messages (default %(default)s)")
    command.add_argument("--size", type=_size, default=100, help="bytes of a message (default %(default)s)")

    command = add("broker", broker.run, "Run a broker in memory until SIGINT or SIGTERM.")
    command.add_argument("--host", default="127.0.0.1", help="address to listen on (default %(default)s)")
    command.add_argument("--port", type=_port, default=6650, help="0 takes a free one (default %(default)s)")
    command.add_argument(
        "--http-port", type=_port, help="serve Pulsar's administration over HTTP here; 0 takes a free port"
    )

    command = add(
        "produce", produce.run, "Send messages: lines of standard input, or --count generated ones."
    )
    command.add_argument("topic")
    add_url(command)
    command.add_argument("--count", type=_positive, help="send so many generated messages instead of lines")
    command.add_argument("--size", type=_size, default=100, help="bytes of a generated message (default 100)")
    command.add_argument("--rate", type=_rate, help="messages per second; default is as fast as possible")

    command = add("consume", consume.run, "Print messages and acknowledge them, until --count or Ctrl-C.")
    command.add_argument("topic")
    add_url(command)
    command.add_argument("--subscription", required=True, help="begins at the earliest message if it is new")
    command.add_argument(
        "--kind",
        choices=[kind.value for kind in SubscriptionType],
        default="shared",
        help="kind of subscription (default %(default)s)",
    )
    command.add_argument("--count", type=_positive, help="stop after so many messages")

    simulate.add_parser(commands)
    for entry in entry_points(group=COMMANDS):
        entry.load()(commands, Output)
    return parser


def _number(text: str, least: float, most: float, kind: type[int] | type[float], words: str) -> float:
    try:
        value = kind(text)
    except ValueError:
        value = least - 1
    if not least <= value <= most:
        raise argparse.ArgumentTypeError(f"{words}, not {text!r}")
    return value


def _positive(text: str) -> int:
    return int(_number(text, 1, 2**63, int, "a whole number of at least 1"))


def _size(text: str) -> int:
    return int(_number(text, 0, 2**31, int, "a whole number of bytes, at least 0"))


def _port(text: str) -> int:
    return int(_number(text, 0, 65535, int, "a port from 0 to 65535"))


def _rate(text: str) -> float:
    return _number(text, 1e-6, 1e9, float, "messages per second, more than 0")
