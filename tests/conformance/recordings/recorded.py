"""The recordings of tests/captures as the pieces that passed."""

import json
from collections.abc import Iterator
from functools import cache

from pulsar_sansio.conformance import Session, Side, Violation
from tests.wire.recorded.recordings import FOLDER, NAMES

__all__ = ["NAMES", "Piece", "frames", "judge", "pieces"]

Piece = tuple[int, Side, bytes]


@cache
def pieces(name: str) -> tuple[Piece, ...]:
    """Connection, side and bytes of every piece, in order."""
    return tuple(_read(name))


def _read(name: str) -> Iterator[Piece]:
    for line in (FOLDER / f"{name}.jsonl").read_text().splitlines():
        piece = json.loads(line)
        if "x" in piece:
            side = Side.CLIENT if piece["d"] == ">" else Side.BROKER
            yield piece["c"], side, bytes.fromhex(piece["x"])


@cache
def frames(name: str) -> tuple[Piece, ...]:
    """Return the conversation cut into whole frames, each where its last byte passed."""
    found: list[Piece] = []
    left: dict[tuple[int, Side], bytes] = {}
    for connection, side, data in pieces(name):
        data = left.get((connection, side), b"") + data
        while len(data) >= 4 and len(data) >= (end := 4 + int.from_bytes(data[:4], "big")):
            found.append((connection, side, data[:end]))
            data = data[end:]
        left[connection, side] = data
    assert not any(left.values())
    return tuple(found)


def judge(conversation: tuple[Piece, ...] | list[Piece], session: Session | None = None) -> list[Violation]:
    session = session or Session()
    violations: list[Violation] = []
    for connection, side, data in conversation:
        violations += session.feed(connection, side, data)
    return violations
