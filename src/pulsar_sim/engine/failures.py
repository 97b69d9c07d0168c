"""The failures of a world, and the name of each.

A run ends at the first failure. The classes differ in what they accuse: a machine that raised, a machine that
broke a rule, a machine that did nothing, or the simulator itself.
"""

from enum import IntEnum


class Outcome(IntEnum):
    """Exit codes: the worst outcome of a campaign's seeds."""

    PASSED = 0
    EXCEPTION = 1
    INVARIANT = 2
    LIVENESS = 3
    NONDETERMINISM = 4
    COVERAGE = 5


class ViolationError(Exception):
    """A rule was broken. `rule` names the invariant (INV-P1 and so on, see the simulator's guide)."""

    outcome = Outcome.INVARIANT

    def __init__(self, rule: str, text: str) -> None:
        super().__init__(f"{rule}: {text}")
        self.rule = rule
        self.text = text


class LivenessError(ViolationError):
    """Something that had to happen did not happen in time."""

    outcome = Outcome.LIVENESS


def check(condition: bool, rule: str, text: str) -> None:
    """Raise unless the condition holds. Use this off the hot path only: callers format the text before the
    condition is known."""
    if not condition:
        raise ViolationError(rule, text)
