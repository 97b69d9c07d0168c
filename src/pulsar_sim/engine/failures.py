"""How a world fails, and what each way of failing is called.

A run ends at the first failure. The classes differ in what they accuse: a machine that raised, a machine
that did wrong, a machine that did nothing, or the simulator itself.
"""

from enum import IntEnum


class Outcome(IntEnum):
    """Exit codes: what the worst seed of a campaign came to."""

    PASSED = 0
    EXCEPTION = 1
    INVARIANT = 2
    LIVENESS = 3
    NONDETERMINISM = 4
    COVERAGE = 5


class ViolationError(Exception):
    """A rule was broken. `rule` names the invariant (INV-P1 and so on, see docs of the simulator)."""

    outcome = Outcome.INVARIANT

    def __init__(self, rule: str, text: str) -> None:
        super().__init__(f"{rule}: {text}")
        self.rule = rule
        self.text = text


class LivenessError(ViolationError):
    """Something that had to happen did not happen in time."""

    outcome = Outcome.LIVENESS


def check(condition: bool, rule: str, text: str) -> None:
    """For checks off the hot path; the text is made before the condition is known."""
    if not condition:
        raise ViolationError(rule, text)
