"""The list of rules: which there are, and which of them look at which frame.

A rule is a function of the state before the frame and of the frame's command. It changes neither.
"""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from .commands import SENT_BY
from .findings import Finding, Side

if TYPE_CHECKING:
    from .state import State

Check = Callable[["State", Any], Finding]


class Rule(NamedTuple):
    """One rule of the protocol that shows on the wire."""

    id: str
    """As in docs/rules.md."""
    fact: str
    """The sentence, in short: the first line of the function's docstring."""
    kinds: tuple[int, ...]
    """The commands it looks at. Empty: it looks at frames of every kind, or at what is no frame at all."""
    side: Side | None
    """Whose frames it looks at; None is both sides'."""
    check: Check


RULES: dict[str, Rule] = {}
"""Every rule by its id."""


def rule(id: str, *kinds: int, side: Side | None = None) -> Callable[[Check], Check]:
    """Registers a function as the rule `id`, asked about every frame of `kinds` (sent by `side`, where
    given)."""

    def register(check: Check) -> Check:
        assert id not in RULES, id
        assert check.__doc__, id
        RULES[id] = Rule(id, check.__doc__.strip().splitlines()[0], kinds, side, check)
        return check

    return register


Route = tuple[tuple[str, Check], ...]


class Selection:
    """Some of the rules, sorted by what they look at."""

    def __init__(self, ids: Iterable[str] | None = None) -> None:
        """`ids`: the rules to apply; None is all of them. Raises `ValueError` for an id that is no rule
        here."""
        chosen = set(RULES) if ids is None else set(ids)
        if unknown := chosen - RULES.keys():
            raise ValueError(f"checks: not rules of the checker: {', '.join(sorted(unknown))}")
        self.ids = frozenset(chosen)
        self.routes: dict[Side, dict[int, Route]] = {side: dict.fromkeys(SENT_BY[side], ()) for side in Side}
        for known in RULES.values():
            if known.id in chosen:
                self._add(known)

    def _add(self, known: Rule) -> None:
        for side, routes in self.routes.items():
            if known.side in (None, side):
                for kind in known.kinds:
                    if kind in routes:
                        routes[kind] += ((known.id, known.check),)
