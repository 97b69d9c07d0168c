"""Reads tests/captures: recorded conversations as streams of bytes and as frames."""

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

FOLDER = Path(__file__).resolve().parents[2] / "captures"

NAMES = sorted(file.stem for file in FOLDER.glob("*.jsonl"))


class Stream(NamedTuple):
    """All bytes of one direction of one connection."""

    connection: int
    direction: str
    """`>` from client to broker, `<` from broker to client."""
    data: bytes


class RecordedFrame(NamedTuple):
    connection: int
    direction: str
    whole: bytes
    command: bytes
    """The BaseCommand."""
    payload: bytes
    """Headers and payload behind the command; empty for most commands."""


@cache
def streams(name: str) -> list[Stream]:
    """The streams of a conversation, in the order of their first bytes."""
    collected: dict[tuple[int, str], bytearray] = {}
    for line in (FOLDER / f"{name}.jsonl").read_text().splitlines():
        piece = json.loads(line)
        if "x" in piece:
            stream = collected.setdefault((piece["c"], piece["d"]), bytearray())
            stream += bytes.fromhex(piece["x"])
    return [Stream(*key, bytes(data)) for key, data in collected.items()]


def frames(name: str) -> Iterator[RecordedFrame]:
    """The frames of a conversation, cut by their sizes alone, with no help of the code under test."""
    for connection, direction, data in streams(name):
        position = 0
        while position < len(data):
            total_size = int.from_bytes(data[position : position + 4], "big")
            command_size = int.from_bytes(data[position + 4 : position + 8], "big")
            end = position + 4 + total_size
            command_end = position + 8 + command_size
            yield RecordedFrame(
                connection,
                direction,
                data[position:end],
                data[position + 8 : command_end],
                data[command_end:end],
            )
            position = end
