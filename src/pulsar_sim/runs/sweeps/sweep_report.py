"""The results of one scenario under one kind of sweep."""

from dataclasses import dataclass, field
from typing import Any

from ...engine.failures import Outcome
from ...world.world import SeedReport


@dataclass(slots=True)
class SweepReport:
    """The results of one scenario under one kind of sweep."""

    scenario: str
    kind: str
    points: int = 0
    """The number of points that the scenario has."""
    runs: int = 0
    """The number of points that the sweep tried."""
    complete: bool = False
    """True when the sweep tried all points."""
    failures: list[tuple[str, SeedReport]] = field(default_factory=list)
    """Points, as text, and what happened."""
    _traces: set[str] = field(default_factory=set)

    @property
    def distinct(self) -> int:
        """The number of different runs: some orders differ only in events that do nothing."""
        return len(self._traces)

    @property
    def outcome(self) -> Outcome:
        return min((report.outcome for _, report in self.failures), default=Outcome.PASSED)

    def as_json(self) -> dict[str, Any]:
        return {
            "scenario": self.scenario,
            "kind": self.kind,
            "points": self.points,
            "runs": self.runs,
            "distinct": self.distinct,
            "complete": self.complete,
            "failures": [
                {
                    "point": point,
                    "outcome": report.outcome.name.lower(),
                    "phase": report.phase,
                    "rule": report.rule,
                    "text": report.text,
                }
                for point, report in self.failures
            ],
        }
