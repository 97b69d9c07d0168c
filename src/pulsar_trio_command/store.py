"""`pulsar-trio store`: check and describe the folder of a broker's data. No broker may use it meanwhile."""

import argparse
import json
from pathlib import Path

from pulsar_store.inspection import check, describe

from .console import CommandFailed, Output, printable

SHOWN_FAULTS = 20
"""Faults that are printed; more are only counted."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `store`."""
    parser.add_argument(
        "action",
        choices=["check", "dump"],
        help="find out if a broker can use the data; list all that is in it, without payloads",
    )
    parser.add_argument("folder", type=Path, metavar="DIR", help="a folder that `broker --data` wrote")
    parser.add_argument("--entries", action="store_true", help="of dump: list every entry, too")
    parser.set_defaults(check=_check_arguments)


def _check_arguments(given: argparse.Namespace) -> str | None:
    if given.entries and given.action != "dump":
        return "argument --entries: not allowed with check"
    return None


async def run(given: argparse.Namespace, output: Output) -> None:
    if given.action == "check":
        _check(given.folder, output)
        return
    for each in describe(given.folder, entries=given.entries):
        shown = ", ".join(
            f"{name.replace('_', ' ')} {value if isinstance(value, (int, str)) else json.dumps(value)}"
            for name, value in each.values.items()
        )
        text = f"{each.kind} {each.name}: {shown}"
        output.result(printable(text), kind=each.kind, name=each.name, **each.values)


def _check(folder: Path, output: Output) -> None:
    counts, faults = check(folder)
    for fault in faults[:SHOWN_FAULTS]:
        output.result(printable(fault), fault=fault)
    if faults:
        raise CommandFailed(f"the store in {folder} has {len(faults)} faults", "restore it from a copy")
    text = f"the store in {folder} is whole: {counts['topics']} topics, {counts['entries']} entries"
    output.result(text, folder=str(folder), **counts)
