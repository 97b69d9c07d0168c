"""The report of a run of hostile peers: figures that add up, and the first failure.

This module knows no machine.
"""

import re
from collections import Counter
from dataclasses import dataclass, field, fields
from functools import lru_cache
from typing import Any

from pulsar_sansio import ServerError


class Violation(Exception):
    """A machine gave an output that is not declared, or more of it than allowed."""


@dataclass(slots=True)
class Report:
    """The report of one round, or of many together."""

    side: str = ""
    rounds: int = 0
    frames: int = 0
    bytes: int = 0
    cases: int = 0
    """Single mutations of a field, in the order of `mutations.cases()`."""
    attached: int = 0
    """Frames that met a link with something attached to it."""
    links: int = 0
    killed: Counter[str] = field(default_factory=Counter)
    """Links that ended, by cause."""
    kinds: Counter[str] = field(default_factory=Counter)
    outputs: int = 0
    """The most outputs that one input brought."""
    answer: int = 0
    """The most bytes to write that one input brought."""
    slowest: float = 0.0
    """Seconds of processor time of the slowest input."""
    slowest_label: str = ""
    peak: int = 0
    """Bytes: the most that a traced round held beyond what it began with."""
    bound: int = 0
    """Bytes: what the configuration allows for that."""
    traced: int = 0
    """Rounds of which the memory was traced."""
    delivered: int = 0
    """Messages of hostile brokers that an application took and looked at."""
    innocent: int = 0
    """The number of times that a client or application on another link was seen to go on."""
    processor: float = 0.0
    """Seconds of processor time, which are what a busy machine does not change."""
    resident: int = 0
    """Bytes: the most that one process had in memory, interpreter and harness included."""
    failures: list[str] = field(default_factory=list)

    def add(self, other: "Report") -> None:
        for name in (
            "rounds",
            "frames",
            "bytes",
            "cases",
            "attached",
            "links",
            "traced",
            "delivered",
            "innocent",
            "processor",
        ):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.killed += other.killed
        self.kinds += other.kinds
        for name in ("outputs", "answer", "peak", "bound", "resident"):
            setattr(self, name, max(getattr(self, name), getattr(other, name)))
        if other.slowest > self.slowest:
            self.slowest, self.slowest_label = other.slowest, other.slowest_label
        self.failures += other.failures

    def took(self, seconds: float, label: str) -> None:
        if seconds > self.slowest:
            self.slowest, self.slowest_label = seconds, label

    def as_json(self) -> dict[str, Any]:
        values = {each.name: getattr(self, each.name) for each in fields(self)}
        for name in ("killed", "kinds"):
            values[name] = dict(sorted(values[name].items(), key=lambda item: (-item[1], item[0])))
        return values


_FROM_CASE_TO_CASE: tuple[tuple[re.Pattern[str], str], ...] = (
    # What the peer said in its own words, behind its code.
    (re.compile(rf"\b({'|'.join(code.name for code in ServerError)}): .*", re.DOTALL), r"\1"),
    (re.compile(r"'[^']*'|\"[^\"]*\""), "'…'"),
    (re.compile(r"\bpulsar\S*://\S+|\b[\w.]+:\d+"), "…"),
    (re.compile(r"(?<!UTF)(?<!UTF-)-?\d+"), "#"),
    (re.compile(r"the broker sent [A-Z_]+ while"), "the broker sent … while"),
    (re.compile(r"with Command\w+ instead of [A-Z_]+"), "with … instead of …"),
    (re.compile(r"its (required )?field \w+"), r"its \1field …"),
    (re.compile(r"the text [\w.#]+ is"), "the text … is"),
    (re.compile(r"\b\w+ (ends inside a field|without its required)"), r"… \1"),
)


@lru_cache(maxsize=4096)
def cause_of(reason: str) -> str:
    """A reason without what differs from case to case, so that reasons can be counted."""
    text = reason
    for pattern, instead in _FROM_CASE_TO_CASE:
        text = pattern.sub(instead, text)
    return text if len(text) <= 90 else text[:89] + "…"
