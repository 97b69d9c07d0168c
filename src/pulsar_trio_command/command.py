"""The `pulsar-trio` command: `demo`, `broker`, `produce`, `consume`, `store`, `schemas`, and other packages'.

A package adds a command by an entry point of the group `pulsar_trio.commands`, with the name of the command.
The entry point is a function that gets the subparsers and the class `Output`, and adds its parser. It sets
`handler`, which gets the arguments and returns the exit code. This package does not know the other packages.
It imports only the module of the command that runs; `--help` and a wrong command import them all.

Exit codes: 0 done, 1 failed, 2 used wrongly, 130 ended by Ctrl-C before it was done, 141 the reader of the
output went away. An error is one line on standard error with a hint.
"""

import argparse
import os
import signal
import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.metadata import entry_points, version
from io import TextIOWrapper
from typing import NamedTuple, NoReturn

from pulsar_sansio import InvalidConfiguration, PulsarError

from .console import CommandFailed, Output
from .signals import INTERRUPTED


class BuiltIn(NamedTuple):
    """A command of this package: its module has `add_arguments(parser)` and the async `run`."""

    module: str
    text: str
    connects: bool
    """The command takes the options of `options.connection`."""


BUILT_IN = {
    "demo": BuiltIn("demo", "Start a broker, send messages through it and check all arrive.", True),
    "broker": BuiltIn(
        "broker.serve", "Run a broker until SIGINT or SIGTERM, in memory or with --data.", False
    ),
    "produce": BuiltIn("produce", "Send messages: lines of standard input, or --count generated ones.", True),
    "consume": BuiltIn("consume", "Print messages and acknowledge them, until --count or Ctrl-C.", True),
    "store": BuiltIn("store", "Check and describe the folder of a broker's data.", False),
    "schemas": BuiltIn("schemas.command", "Read, register and compare the schemas of a topic.", True),
}

COMMANDS = "pulsar_trio.commands"
"""The group of entry points."""

NOBODY_READS = 141
"""The exit code of a command whose result was not read, as a shell gives it for SIGPIPE."""


class _Parser(argparse.ArgumentParser):
    """One line for an error, instead of the whole usage."""

    def error(self, message: str) -> NoReturn:
        print(f"{self.prog}: {message} (hint: see `{self.prog} --help`)", file=sys.stderr)
        raise SystemExit(2)


def main(arguments: Sequence[str] | None = None, *, interruptible: bool = False) -> int:
    """Run a command; gives the exit code. Raises `SystemExit` for wrong arguments, `--help` and `--version`.

    `interruptible`: a SIGINT has ended the process by itself up to now, and does so again after the command.
    Meanwhile the command says that it was interrupted.
    """
    try:
        try:
            given = _parsed(arguments)
            if interruptible:
                signal.signal(signal.SIGINT, signal.default_int_handler)
            return _run(given)
        finally:
            sys.stdout.flush()
    except BrokenPipeError:
        _write_nothing_more()
        return NOBODY_READS
    except KeyboardInterrupt:
        Output(False).error(CommandFailed("interrupted"))
        return INTERRUPTED
    except OSError as error:  # a file that a command writes, or the output itself
        try:
            sys.stdout.flush()
        except OSError:
            _write_nothing_more()
        Output(False).error(CommandFailed(str(error)))
        return 1
    finally:
        if interruptible:
            signal.signal(signal.SIGINT, signal.SIG_DFL)


def _parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    """A command's `check` finds mistakes that concern several options."""
    arguments = sys.argv[1:] if arguments is None else arguments
    parser = _parser(arguments[0] if arguments else "")
    given = parser.parse_args(arguments)
    mistake = given.check(given) if hasattr(given, "check") else None
    if mistake is not None:
        parser.error(mistake)
    return given


def _run(given: argparse.Namespace) -> int:
    if isinstance(sys.stdout, TextIOWrapper):  # keys and names may be no text, or none of this terminal
        sys.stdout.reconfigure(errors="backslashreplace")
    if hasattr(given, "handler"):  # needs no event loop, and has exit codes of its own
        code: int = given.handler(given)
        return code
    import trio  # a command without an event loop starts sooner without it

    output = Output(given.json)
    try:
        with output.connections_told():
            trio.run(given.run, given, output)
    except BaseException as raised:
        error = _first(raised)
        match error:
            case KeyboardInterrupt():
                output.error(CommandFailed("interrupted"))
                return INTERRUPTED
            case BrokenPipeError():  # the reader of our output has read enough
                _write_nothing_more()
                return 0
            case PulsarError() | OSError() | CommandFailed():
                output.error(error)
                return 2 if isinstance(error, InvalidConfiguration) else 1
            case _:
                raise
    return 0


def _write_nothing_more() -> None:
    """Python would complain once more when it flushes what cannot be written."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _first(error: BaseException) -> BaseException:
    """The first error, where several tasks failed together."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def _parser(wanted: str) -> _Parser:
    """The parser of the command that is `wanted`, or of all commands where there is none of that name."""
    parser = _Parser(prog="pulsar-trio", description="Apache Pulsar from the command line.")
    parser.add_argument("--version", action="version", version=f"%(prog)s {version('pulsar-trio')}")
    commands = parser.add_subparsers(required=True, metavar="command")
    others = {entry.name: entry for entry in entry_points(group=COMMANDS)}
    only_wanted = wanted in BUILT_IN or wanted in others
    for name, command in BUILT_IN.items():
        if not only_wanted or name == wanted:
            _add_built_in(commands, name, command)
    for name, entry in others.items():
        if not only_wanted or name == wanted:
            entry.load()(commands, Output)
    return parser


def _add_built_in(commands: "argparse._SubParsersAction[_Parser]", name: str, command: BuiltIn) -> None:
    module = import_module(f".{command.module}", __package__)
    parser = commands.add_parser(name, help=command.text, description=command.text)
    parser.add_argument("--json", action="store_true", help="one JSON object per line")
    parser.set_defaults(run=module.run)
    if command.connects:
        from .options.connection import (
            add_client_arguments,  # not for `broker`, which starts sooner without it
        )

        add_client_arguments(parser)
    module.add_arguments(parser)
