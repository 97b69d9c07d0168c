"""This module plans a micro-batch and divides it among tasks, in pure functions of positions.

The same ranges give the same plan, whenever and wherever it is made: a batch that is done again has the
same tasks with the same rows. What is known of a topic is its `Extent`: which entries lie behind a position.
It may have holes or be out of date; a plan is correct all the same, only less even.
"""

import heapq
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from .offsets import NOTHING, Offsets, Position, Range


@dataclass(frozen=True)
class EntryRun:
    """Entries of one ledger, one after the other: `first` to `last`, both included."""

    ledger: int
    first: int
    last: int

    def __len__(self) -> int:
        return self.last - self.first + 1


Extent = Sequence[EntryRun]
"""The entries behind one position and up to another, in order."""


def entries(extent: Extent) -> int:
    """Return the number of entries of an extent."""
    return sum(len(run) for run in extent)


def walk(extent: Extent, count: int) -> Position:
    """The position of entry number `count` (from 1 to all) of an extent."""
    for run in extent:
        if count <= len(run):
            return run.ledger, run.first + count - 1
        count -= len(run)
    raise ValueError("an extent has no more entries than it has")


def clip(extent: Extent, start: Position, end: Position) -> Extent:
    """The part of an extent behind `start` and up to `end`."""
    clipped = []
    for run in extent:
        first = max(run.first, start[1] + 1) if run.ledger == start[0] else run.first
        last = min(run.last, end[1]) if run.ledger == end[0] else run.last
        if start[0] <= run.ledger <= end[0] and first <= last:
            clipped.append(EntryRun(run.ledger, first, last))
    return clipped


# --- how far a micro-batch goes ---------------------------------------------------------------------


def forward(start: Mapping[str, Position], last: Mapping[str, Position]) -> Offsets:
    """The end of everything there is: no topic goes back, and one that is new begins at its beginning. A
    topic that `last` does not have any more keeps its place."""
    return {name: max(start.get(name, NOTHING), last.get(name, NOTHING)) for name in {*start, *last}}


def admit(
    start: Mapping[str, Position],
    last: Mapping[str, Position],
    extents: Mapping[str, Extent],
    weights: Mapping[str, float],
    budget: float,
) -> Offsets:
    """Return where a micro-batch ends that has about `budget`.

    `extents`: what lies between, for every topic that has something there. `weights`: what an entry of a
    topic takes of the budget; 1 where it is not said. Topics share the budget in proportion to what they
    have. Each topic with a backlog gives at least one entry, so that no topic waits for ever.
    """
    end = forward(start, last)
    backlogs = {name: entries(extents[name]) for name in end if extents.get(name)}
    total = sum(count * weights.get(name, 1.0) for name, count in backlogs.items())
    if total <= budget:
        return end
    for name, count in backlogs.items():
        allowed = max(1, int(count * budget / total))
        if allowed < count:
            reached = walk(extents[name], allowed)
            end[name] = min(end[name], max(reached, start.get(name, NOTHING)))
    return end


# --- how it is divided ------------------------------------------------------------------------------


def ranges(start: Mapping[str, Position], end: Mapping[str, Position]) -> list[Range]:
    """Return the ranges between two offsets. A topic has none where `end` lacks it or goes back."""
    return [
        Range(name, start.get(name, NOTHING), end[name])
        for name in sorted(end)
        if start.get(name, NOTHING) < end[name]
    ]


def split(whole: Sequence[Range], extents: Mapping[str, Extent], least: int) -> list[Range]:
    """The same ranges in at least `least` parts of about the same number of entries, as far as there are as
    many entries. The parts of a range cover it exactly, in order."""
    if len(whole) >= least:
        return list(whole)
    known = [clip(extents.get(each.topic, ()), each.start, each.end) for each in whole]
    counts = [entries(extent) for extent in known]
    pieces = _shares(counts, least)
    parts: list[Range] = []
    for each, extent, count, number in zip(whole, known, counts, pieces, strict=True):
        start = each.start
        for piece in range(1, number):
            cut = walk(extent, count * piece // number)
            if start < cut < each.end:
                parts.append(Range(each.topic, start, cut))
                start = cut
        parts.append(Range(each.topic, start, each.end))
    return parts


def _shares(counts: Sequence[int], least: int) -> list[int]:
    """Give each range a number of parts, at least one. All together are `least`, and the longest is short."""
    pieces = [1] * len(counts)
    longest = [(-count, index) for index, count in enumerate(counts)]
    heapq.heapify(longest)
    missing = least - len(counts)
    while missing > 0 and longest:
        length, index = longest[0]
        if -length <= 1:
            break
        pieces[index] += 1
        missing -= 1
        heapq.heapreplace(longest, (-counts[index] // pieces[index], index))
    return pieces


def pack(parts: Sequence[Range], most: int, extents: Mapping[str, Extent]) -> list[tuple[Range, ...]]:
    """At most `most` tasks of about the same number of entries, each with the ranges it reads one after the
    other. What is not known to be long counts as one entry. The ranges of a topic that come into one task
    stay in order."""
    if len(parts) <= most:
        return [(each,) for each in parts]
    sizes = [max(1, size(each, extents.get(each.topic, ()))) for each in parts]
    loads = [(0, task) for task in range(most)]
    tasks: list[list[int]] = [[] for _ in range(most)]
    for index in sorted(range(len(parts)), key=lambda index: (-sizes[index], index)):
        load, task = loads[0]
        tasks[task].append(index)
        heapq.heapreplace(loads, (load + sizes[index], task))
    return [tuple(parts[index] for index in sorted(task)) for task in tasks if task]


def size(of: Range, extent: Extent) -> int:
    """Count the entries of a range by its extent; without one, by its positions if they share a ledger."""
    known = entries(clip(extent, of.start, of.end))
    if known or of.start[0] != of.end[0]:
        return known
    return of.end[1] - of.start[1]


# --- what is lost -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Lost:
    """Messages that a query should go on with and that are not there any more."""

    topic: str
    expected: Position
    found: Position | None
    """Behind which the topic now begins; None where there is no topic."""
    reason: str


def lost_by_deletion(start: Mapping[str, Position], topics: Iterable[str]) -> list[Lost]:
    """Topics that a query has read from and that are not there."""
    gone = set(start) - set(topics)
    return [
        Lost(name, start[name], None, "the topic does not exist any more, or is not read any more")
        for name in sorted(gone)
    ]


def lost_by_retention(
    topic: str, start: Position, begins: Position, complete: Iterable[Position]
) -> Lost | None:
    """Return the loss if retention removed entries behind `start`; None if it removed none.

    `begins`: the position behind which the topic now begins. `complete`: the known last entries of ledgers.
    Behind those nothing is missing. A ledger that is gone does not say how many entries it had. If its end
    is unknown, something may be lost, and the function reports a loss: silence would be the worse mistake.
    """
    if start == NOTHING or begins == NOTHING or start[0] >= begins[0] or start in complete:
        return None
    return Lost(
        topic,
        start,
        begins,
        f"the ledger {start[0]}, which was read up to entry {start[1]}, is not there any more; what it had "
        "behind that entry, and ledgers after it, are gone",
    )
