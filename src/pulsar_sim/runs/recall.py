"""Recall: which planted bugs the simulator notices, by which invariants, and in how many seeds.

This module tries one bug with one seed after another, and owns the sum. It has no clock and no processes; its
callers have.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from inspect import getfile
from itertools import count
from statistics import median
from typing import Any

from ..bug_bank import BANK, Patches, PlantedBug, suitable
from ..engine.failures import Outcome
from ..world.world import World

SEEDS = 200
"""Suitable seeds that are tried for one bug, at most, unless told otherwise."""

SAMPLE = 10
"""Suitable seeds that are tried in any case, so that it is known how often a bug shows."""

LOOK = 50
"""Seeds that are looked at, at most, for each suitable one."""


@dataclass(frozen=True, slots=True)
class Notice:
    """One seed that noticed a bug."""

    seed: int
    rule: str
    what: str
    events: int
    """The events of its world until an invariant noticed the bug: the cost of seeing it again."""


@dataclass(slots=True)
class Recalled:
    """The results of one planted bug."""

    name: str
    origin: str
    text: str
    caught_by: tuple[str, ...]
    """Invariants that are right to notice it."""
    tried: int = 0
    """Seeds that were run, without those whose worlds cannot show the bug."""
    seeds: int = 0
    """The seeds run up to the first that noticed the bug, that one included; all where none did."""
    notices: list[Notice] = field(default_factory=list)
    calls: dict[str, int] = field(default_factory=dict)
    """Each replaced method -> how often it was called."""
    broken: str = ""
    """The error that the planted bug raised by itself: it does not fit the machines any more."""

    @property
    def caught(self) -> bool:
        return bool(self.notices) and not self.broken

    @property
    def right(self) -> bool:
        """Noticed, in one seed at least, by an invariant that has to do with it, not by what followed."""
        return any(each.rule in self.caught_by for each in self.notices)

    @property
    def first(self) -> Notice | None:
        """The first seed that noticed."""
        return self.notices[0] if self.notices else None

    @property
    def quickest(self) -> Notice | None:
        """The seed that shows the bug at the least cost, by a right invariant if there is one."""
        return min(
            self.notices, key=lambda each: (each.rule not in self.caught_by, each.events), default=None
        )

    @property
    def rules(self) -> dict[str, int]:
        """Invariant -> seeds in which it noticed, the most frequent first."""
        found: dict[str, int] = {}
        for each in self.notices:
            found[each.rule] = found.get(each.rule, 0) + 1
        return dict(sorted(found.items(), key=lambda item: (-item[1], item[0])))

    def as_json(self) -> dict[str, Any]:
        first, quickest = self.first, self.quickest
        return {
            "name": self.name,
            "origin": self.origin,
            "text": self.text,
            "caught": self.caught,
            "right": self.right,
            "rules": self.rules,
            "expected": list(self.caught_by),
            "noticed": len(self.notices),
            "tried": self.tried,
            "seeds": self.seeds,
            "first_seed": first.seed if first is not None else None,
            "what": first.what if first is not None else "",
            "quickest_seed": quickest.seed if quickest is not None else None,
            "quickest_rule": quickest.rule if quickest is not None else "",
            "calls": self.calls,
            "broken": self.broken,
        }


def try_seed(bug: PlantedBug, seed: int, recalled: Recalled) -> bool:
    """Run one seed with the bug planted, and note what happened; whether it was noticed.

    An error that the bug itself raises is nothing that the simulator noticed, unless crashing is what the bug
    is about. An error that a machine raises because of the bug is.
    """
    with bug.planted() as patches:
        report = World(seed).run()
    recalled.tried += 1
    if not recalled.notices:
        recalled.seeds += 1
    for label, calls in patches.calls.items():
        recalled.calls[label] = recalled.calls.get(label, 0) + calls
    if report.outcome is Outcome.PASSED:
        return False
    own = report.outcome is Outcome.EXCEPTION and _raised_by(bug, report.text)
    if own and "exception" not in bug.caught_by:
        recalled.broken = f"{bug.name} in seed {seed}:\n{report.text}"
        return False
    what = report.text.strip().splitlines()[-1]
    recalled.notices.append(Notice(seed, report.rule, what, report.events))
    return True


def _raised_by(bug: PlantedBug, traceback: str) -> bool:
    """Tell whether the innermost call of a traceback is the bug's own code, or the code that plants it."""
    *_, innermost = [line for line in traceback.splitlines() if line.startswith("  File ")]
    return any(f'"{file}"' in innermost for file in (getfile(bug.plant), getfile(Patches)))


def seeds_for(bug: PlantedBug, number: int, first: int = 0) -> Iterator[int]:
    """The first `number` seeds from `first` on whose worlds can show the bug."""
    found = 0
    for looked in count():
        if found == number or looked == number * LOOK:
            return
        if suitable(first + looked, bug.needs):
            found += 1
            yield first + looked


def unknown(name: str) -> Recalled:
    """A bug of the bank that was not tried yet. Raises `KeyError`."""
    bug = BANK[name]
    return Recalled(name, bug.origin, bug.text, bug.caught_by)


def recall_one(
    name: str,
    seeds: int = SEEDS,
    first: int = 0,
    sample: int = SAMPLE,
    end: Callable[[], bool] = lambda: False,
) -> Recalled:
    """Run seeds with one bug planted: `sample` of them, and then more until one notices it, up to `seeds`.

    A bug that raises an error of its own is not tried any further. No seed begins once `end` says so.
    """
    bug = BANK[name]
    recalled = unknown(name)
    for seed in seeds_for(bug, max(seeds, sample), first):
        if end():
            break
        try_seed(bug, seed, recalled)
        if recalled.broken or (recalled.notices and recalled.tried >= sample):
            break
    return recalled


@dataclass(slots=True)
class Recall:
    """The sum."""

    bugs: list[Recalled]

    @property
    def survivors(self) -> list[Recalled]:
        return [each for each in self.bugs if not each.caught]

    @property
    def median_seeds(self) -> float:
        """Seeds to detection; a bug that was not caught counts with all seeds it was tried with."""
        return median([each.seeds for each in self.bugs]) if self.bugs else 0

    def as_json(self) -> dict[str, Any]:
        return {
            "planted": len(self.bugs),
            "caught": len(self.bugs) - len(self.survivors),
            "right": sum(each.right for each in self.bugs),
            "historical": len({each.origin for each in self.bugs} - {"own"}),
            "median_seeds": self.median_seeds,
            "most_seeds": max((each.seeds for each in self.bugs), default=0),
            "bugs": [each.as_json() for each in self.bugs],
        }


def recall(
    names: Iterable[str] | None = None, seeds: int = SEEDS, first: int = 0, sample: int = SAMPLE
) -> Iterator[Recalled]:
    """All bugs of the bank, or those named, as `recall_one` tries them."""
    for name in BANK if names is None else names:
        yield recall_one(name, seeds, first, sample)
