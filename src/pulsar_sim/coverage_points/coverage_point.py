"""A coverage point is a named situation: a condition on the call of one method of a machine.

This module owns the register of all coverage points, and does not know how they are used. `coverage` replaces
the methods while it records, so the machines know nothing of coverage points and pay nothing for them.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

Condition: TypeAlias = "Callable[..., object]"


@dataclass(frozen=True, slots=True)
class CoveragePoint:
    """One situation."""

    name: str
    text: str
    owner: type
    method: str
    reached: Condition
    """The condition takes the arguments of the method, `self` included."""


COVERAGE_POINTS: dict[str, CoveragePoint] = {}
"""All coverage points, by name."""


def coverage_point(owner: type, method: str) -> Callable[[Condition], Condition]:
    """Add a condition: true where the situation is reached with this call of `owner.method`."""

    def add(reached: Condition) -> Condition:
        name = reached.__name__.strip("_").replace("_", " ")
        if name in COVERAGE_POINTS:
            raise ValueError(f"two coverage points are called {name}")
        COVERAGE_POINTS[name] = CoveragePoint(
            name, " ".join((reached.__doc__ or "").split()), owner, method, reached
        )
        return reached

    return add
