"""The comparison of two brokers' answers, and the table of what may differ.

`docs/differences.md` has one row for each kind of difference. A cell with several values in backticks stands
for each of them. A difference without a row is a mistake, and so is a row without a difference.
"""

import re
from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import NamedTuple

from pulsar_sansio.wire import proto
from tests.differential.steps import Administer, Conversation, Frame, Pause, Step

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "differences.md"

Type = proto.BaseCommand.Type

ABSENT = "absent"


class Difference(NamedTuple):
    """One field of one answer, or a whole answer that only one broker gave."""

    step: int
    client: str
    """The command of the client, or what the administrator did."""
    answer: str
    what: str
    """The field; `missing` or `extra` where our broker gave fewer or more answers."""
    pulsar: str
    ours: str


class Row(NamedTuple):
    """A row of the table, whose cells are alternatives, with `*` for any text."""

    name: str
    client: list[str]
    answer: list[str]
    what: list[str]
    pulsar: list[str]
    ours: list[str]
    ends: bool
    """The brokers are in different states afterwards: the conversation is compared up to here."""

    def allows(self, difference: Difference) -> bool:
        pairs = zip(self[1:6], difference[1:], strict=True)
        return all(any(fnmatchcase(value, cell) for cell in cells) for cells, value in pairs)


def table() -> list[Row]:
    """Read the rows of the document."""
    rows = []
    for line in DOCUMENT.read_text().splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if len(cells) == 8 and re.fullmatch(r"[A-Z]\d+", cells[0]):
            sent, answer, what, pulsar, ours = (re.findall(r"`([^`]+)`", cell) for cell in cells[1:6])
            assert cells[6] in ("yes", "no"), line
            rows.append(Row(cells[0], sent, answer, what, pulsar, ours, cells[6] == "no"))
    assert rows, f"no table in {DOCUMENT}"
    return rows


def differences(
    conversation: Conversation, pulsar: list[list[str]], ours: list[list[str]]
) -> list[Difference]:
    """Return the differences of the answers to a conversation, in order.

    Answers in a pause belong to the step before it: they are late.
    """
    found = []
    steps = conversation.steps
    for number, step in enumerate(steps):
        if isinstance(step, Pause) and number:
            continue
        theirs, mine = pulsar[number], ours[number]
        if number + 1 < len(steps) and isinstance(steps[number + 1], Pause):
            theirs, mine = theirs + pulsar[number + 1], mine + ours[number + 1]
        if theirs != mine:
            found += [Difference(number, client(step), *each) for each in _of_step(theirs, mine)]
    return found


def client(step: Step) -> str:
    """Return the name of a step."""
    if isinstance(step, Frame):
        return Type.Name(step.number)
    return step.verb if isinstance(step, Administer) else type(step).__name__


def _of_step(pulsar: Sequence[str], ours: Sequence[str]) -> list[tuple[str, str, str, str]]:
    """Pair the answers of one kind at one connection in order, and compare their fields."""
    found = []
    for kind in dict.fromkeys(map(_kind, [*pulsar, *ours])):
        left, right = ([line for line in side if _kind(line) == kind] for side in (pulsar, ours))
        answer = kind[1]
        for one, other in zip(left, right, strict=False):
            a, b = _fields(one), _fields(other)
            found += [
                (answer, name, a.get(name, ABSENT), b.get(name, ABSENT))
                for name in dict.fromkeys([*a, *b])
                if a.get(name) != b.get(name)
            ]
        found += [(answer, "missing", line.partition(" ")[2], ABSENT) for line in left[len(right) :]]
        found += [(answer, "extra", ABSENT, line.partition(" ")[2]) for line in right[len(left) :]]
    return found


def _kind(line: str) -> tuple[str, str]:
    connection, answer = line.split(" ")[:2]
    return connection, answer


def _fields(line: str) -> dict[str, str]:
    words = (word.partition("=") for word in line.split(" ")[2:])
    return {name: value for name, _, value in words}


class Comparison(NamedTuple):
    """The result of a comparison."""

    mistakes: list[Difference]
    """Differences without a row."""
    used: set[str]
    """The rows that were needed."""
    compared: int
    """The number of steps that were compared."""


def judge(conversation: Conversation, pulsar: list[list[str]], ours: list[list[str]]) -> Comparison:
    """Compare the answers to a conversation, up to a row that ends the comparison."""
    rows = table()
    mistakes: list[Difference] = []
    used: set[str] = set()
    end: int | None = None
    for difference in differences(conversation, pulsar, ours):
        if end is not None and difference.step > end:
            break
        row = next((row for row in rows if row.allows(difference)), None)
        if row is None:
            mistakes.append(difference)
            continue
        used.add(row.name)
        if row.ends:
            end = difference.step
    return Comparison(mistakes, used, len(conversation.steps) if end is None else end + 1)
