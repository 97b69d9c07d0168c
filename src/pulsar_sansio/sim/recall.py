"""Recall: how many seeds the simulator needs to notice each planted bug, and by which invariant.

Owns the trying of one bug with one seed after another, and the sum. It has no clock and no processes; whoever
asks has.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import count
from statistics import median
from typing import Any

from .bank import BANK, Mutation, suitable
from .violations import Outcome
from .world import World

SEEDS = 200
"""Suitable seeds that are tried for one bug, unless told otherwise."""

LOOK = 50
"""Seeds that are looked at, at most, for each suitable one."""


@dataclass(slots=True)
class Recalled:
    """What became of one planted bug."""

    name: str
    origin: str
    text: str
    caught_by: tuple[str, ...]
    """Invariants that are right to notice it."""
    seed: int | None = None
    """The first that noticed; None where none did."""
    seeds: int = 0
    """Tried, the one that noticed included; seeds whose worlds cannot show the bug are passed over."""
    rule: str = ""
    what: str = ""
    calls: dict[str, int] = field(default_factory=dict)
    """Each replaced method -> how often it was called."""

    @property
    def caught(self) -> bool:
        return self.seed is not None

    @property
    def right(self) -> bool:
        """Noticed by an invariant that has to do with it, not by what followed later."""
        return self.caught and self.rule in self.caught_by

    def as_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "origin": self.origin,
            "text": self.text,
            "caught": self.caught,
            "right": self.right,
            "seeds": self.seeds,
            "seed": self.seed,
            "rule": self.rule,
            "expected": list(self.caught_by),
            "what": self.what,
        }


class BrokenMutation(Exception):
    """A planted bug raised an error of its own: it does not fit the machines any more."""


def try_seed(mutation: Mutation, seed: int, recalled: Recalled) -> bool:
    """Run one seed with the bug planted, and note what happened; whether it was noticed.

    Raises `BrokenMutation`.
    """
    with mutation.planted() as patches:
        report = World(seed).run()
    recalled.seeds += 1
    for label, calls in patches.calls.items():
        recalled.calls[label] = recalled.calls.get(label, 0) + calls
    if report.outcome is Outcome.PASSED:
        return False
    if report.outcome is Outcome.EXCEPTION and "exception" not in mutation.caught_by:
        raise BrokenMutation(f"{mutation.name} in seed {seed}:\n{report.text}")
    recalled.seed = seed
    recalled.rule = report.rule
    recalled.what = report.text.strip().splitlines()[-1]
    return True


def seeds_for(mutation: Mutation, number: int, first: int = 0) -> Iterator[int]:
    """The first `number` seeds from `first` on whose worlds can show the bug."""
    found = 0
    for looked in count():
        if found == number or looked == number * LOOK:
            return
        if suitable(first + looked, mutation.needs):
            found += 1
            yield first + looked


def recall_one(name: str, seeds: int = SEEDS, first: int = 0) -> Recalled:
    """Run seeds with one bug planted until one notices it."""
    mutation = BANK[name]
    recalled = Recalled(name, mutation.origin, mutation.text, mutation.caught_by)
    for seed in seeds_for(mutation, seeds, first):
        if try_seed(mutation, seed, recalled):
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
            "median_seeds": self.median_seeds,
            "most_seeds": max((each.seeds for each in self.bugs), default=0),
            "bugs": [each.as_json() for each in self.bugs],
        }


def recall(names: Iterable[str] | None = None, seeds: int = SEEDS, first: int = 0) -> Iterator[Recalled]:
    """All bugs of the bank, or those named, each with up to `seeds` suitable seeds from `first` on."""
    for name in BANK if names is None else names:
        yield recall_one(name, seeds, first)
