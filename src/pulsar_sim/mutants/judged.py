"""The fate of each mutant, and the sums by module.

Owns the fates and the percentages. An equivalent mutant counts nowhere but in its own column: nothing can
notice it. A mutant that is marked equivalent and noticed all the same counts as noticed.
"""

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import Any

SIMULATOR, TESTS, EQUIVALENT, SURVIVED = "simulator", "tests", "equivalent", "survived"

FATES = (SIMULATOR, TESTS, EQUIVALENT, SURVIVED)
"""Noticed by the simulator; by unit tests only; cannot be noticed; not noticed."""


@dataclass(frozen=True, slots=True)
class Judged:
    """One mutant and its fate."""

    name: str
    module: str
    line: int
    fate: str
    by: str = ""
    """The invariant, "exception", "hang", or the test that noticed; the reason of an equivalent one."""
    where: str = ""
    """The world that noticed."""
    worlds: int = 0
    """Worlds that were run, the last one included."""
    tested: bool = False
    """The unit tests were run on it, too."""

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(slots=True)
class FateTable:
    """Fates by module."""

    modules: dict[str, dict[str, int]] = field(default_factory=dict)

    @classmethod
    def of(cls, judged: Iterable[Judged]) -> "FateTable":
        table = cls()
        for each in judged:
            row = table.modules.setdefault(each.module, dict.fromkeys(FATES, 0))
            row[each.fate] += 1
        table.modules = dict(sorted(table.modules.items()))
        return table

    @property
    def total(self) -> dict[str, int]:
        return {fate: sum(row[fate] for row in self.modules.values()) for fate in FATES}

    @staticmethod
    def percent(row: dict[str, int], *fates: str) -> float:
        """The share of the mutants that are not equivalent and have one of these fates, in per cent."""
        counted = sum(row.values()) - row[EQUIVALENT]
        return 100.0 * sum(row[fate] for fate in fates) / counted if counted else 100.0

    def as_json(self) -> dict[str, Any]:
        total = self.total
        return {
            "mutants": sum(total.values()),
            **total,
            "percent_simulator": round(self.percent(total, SIMULATOR), 1),
            "percent_noticed": round(self.percent(total, SIMULATOR, TESTS), 1),
            "modules": self.modules,
        }

    def as_markdown(self) -> str:
        """One line for each module and one for all."""
        lines = [
            "| module | mutants | by the simulation | by unit tests only | equivalent | not noticed |",
            "| --- | --- | --- | --- | --- | --- |",
        ]
        for name, row in [*self.modules.items(), ("all", self.total)]:
            counts = " | ".join(str(row[fate]) for fate in FATES)
            lines.append(f"| {name} | {sum(row.values())} | {counts} |")
        return "\n".join(lines) + "\n"
