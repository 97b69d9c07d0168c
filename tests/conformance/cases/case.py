"""The conversations that break a rule: each is right but for its last frame, which breaks exactly one
rule."""

from collections.abc import Callable
from typing import NamedTuple

from pulsar_sansio.conformance import Side
from tests.conformance.script import Script

Tell = Callable[[Script], None]


class Case(NamedTuple):
    rule_id: str
    name: str
    tell: Tell
    """Writes the conversation."""
    blamed: tuple[Side, int] | None
    """The side that broke the rule and the number of its frame, where that is not the sender of the last
    one."""
    also: tuple[str, ...]
    """Other rules that the same frame cannot help breaking."""


CASES: list[Case] = []


def breaks(
    rule_id: str, *, blamed: tuple[Side, int] | None = None, also: tuple[str, ...] = ()
) -> Callable[[Tell], Tell]:
    def register(tell: Tell) -> Tell:
        CASES.append(Case(rule_id, tell.__name__, tell, blamed, also))
        return tell

    return register
