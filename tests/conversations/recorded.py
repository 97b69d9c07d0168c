"""A recording and what our side said in its place, compared frame by frame.

Each direction of each connection is compared by itself. What may differ stands in `docs/conversations.md`,
one row for each kind of difference; a row that no conversation needs is a mistake, too.
"""

import json
import re
from dataclasses import dataclass
from pathlib import Path

from tests.conversations.facts import Frame, Matching, frame_facts
from tests.wire.recorded.recordings import FOLDER

SIGNS_OF_LIFE = ("PING", "PONG")
DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "conversations.md"


@dataclass(frozen=True)
class Allowed:
    """A row of the table: in these conversations, `what` of this command may differ: the path of a field, or
    the command itself (`moved`, `missing`, `extra`)."""

    row: str
    conversations: re.Pattern[str]
    command: str
    what: str


def allowed() -> list[Allowed]:
    rows = []
    for line in DOCUMENT.read_text().splitlines():
        cells = [cell.strip().strip("`") for cell in line.strip().strip("|").split("|")]
        if len(cells) == 6 and re.fullmatch(r"[A-Z]\d+", cells[0]):
            pattern = "|".join(
                re.escape(each.strip(" `")).replace(r"\*", ".*") for each in cells[1].split(",")
            )
            for command in cells[2].split(","):
                for what in cells[3].split(","):
                    rows.append(Allowed(cells[0], re.compile(pattern), command.strip(" `"), what.strip(" `")))
    return rows


def recording(name: str) -> list[Frame]:
    found: list[Frame] = []
    held: dict[tuple[int, bool], bytes] = {}
    for line in (FOLDER / f"{name}.jsonl").read_text().splitlines():
        piece = json.loads(line)
        if "x" not in piece:
            continue
        by_client = piece["d"] == ">"
        where = (piece["c"], by_client)
        data = held.get(where, b"") + bytes.fromhex(piece["x"])
        while len(data) >= 4 and len(data) >= (end := 4 + int.from_bytes(data[:4], "big")):
            found.append(frame_facts(piece["c"], by_client, data[:end]))
            data = data[end:]
        held[where] = data
    return found


class Comparison:
    """The differences of two conversations, and the rows of the table that the comparison needed."""

    def __init__(self, name: str, ours: list[Frame]) -> None:
        self.rows = [row for row in allowed() if row.conversations.fullmatch(name)]
        self.used: set[str] = set()
        self.differences: list[str] = []
        sides = [
            [each for each in side if each.name not in SIGNS_OF_LIFE] for side in (recording(name), ours)
        ]
        matching = Matching()
        for connection in sorted({frame.connection for side in sides for frame in side}):
            for by_client in (True, False):
                theirs_here, ours_here = (
                    [each for each in side if (each.connection, each.by_client) == (connection, by_client)]
                    for side in sides
                )
                self._compare(f"{connection}{'>' if by_client else '<'}", matching, theirs_here, ours_here)

    def _row(self, command: str, what: str) -> str | None:
        """The row that allows it."""
        return next((row.row for row in self.rows if (row.command, row.what) == (command, what)), None)

    def _allowed(self, command: str, what: str) -> bool:
        row = self._row(command, what)
        if row is not None:
            self.used.add(row)
        return row is not None

    def _is_like(self, matching: Matching, theirs: Frame, ours: Frame) -> bool:
        """Nothing differs but what may."""
        differences = matching.copy().differences(theirs.facts, ours.facts, theirs.connection)
        return all(self._row(theirs.name, path) is not None for path in differences)

    def _compare(self, where: str, matching: Matching, theirs: list[Frame], ours: list[Frame]) -> None:
        waiting = list(ours)
        for number, frame in enumerate(theirs):
            same = [i for i, each in enumerate(waiting) if each.name == frame.name]
            like = (i for i in same if self._is_like(matching, frame, waiting[i]))
            may_miss = self._row(frame.name, "missing") is not None
            place = next(like, same[0] if same and not may_miss else None)
            if place is None:
                if not self._allowed(frame.name, "missing"):
                    self.differences.append(f"{where} {number} {frame.name}: ours is missing")
                continue
            overtaken = [each.name for each in waiting[:place] if not self._allowed(each.name, "extra")]
            if overtaken and not self._allowed(frame.name, "moved"):
                self.differences.append(f"{where} {number} {frame.name}: ours comes after {overtaken}")
            other = waiting.pop(place)
            for path in matching.differences(frame.facts, other.facts, frame.connection):
                if not self._allowed(frame.name, path):
                    both = f"{_at(frame, path)!r} and ours {_at(other, path)!r}"
                    self.differences.append(f"{where} {number} {frame.name} {path}: {both}")
        for frame in waiting:
            if not self._allowed(frame.name, "extra"):
                self.differences.append(f"{where} {frame.name}: only ours says it: {frame.facts}")


def _at(frame: Frame, path: str) -> object:
    value: object = frame.facts
    for name in path.lstrip("+-").split("."):
        if not isinstance(value, dict) or name not in value:
            return value if isinstance(value, list) else None
        value = value[name]
    return value
