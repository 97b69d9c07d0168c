"""The list of rules: which there are, and which of them look at which frame.

A rule is a function of the state before the frame and of the frame's command. It changes neither.
"""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from .commands import SENT_BY
from .findings import Finding, Side

if TYPE_CHECKING:
    from .state.state import State

Check = Callable[["State", Any], Finding]


class Rule(NamedTuple):
    """One rule of the protocol that shows on the wire."""

    id: str
    """The id of the rule in docs/rules.md."""
    fact: str
    """The sentence, in short: the first line of the function's docstring."""
    kinds: tuple[int, ...]
    """The commands it looks at. Empty: it looks at frames of every kind, or at what is no frame at all."""
    side: Side | None
    """The side whose frames the rule looks at; None: both sides."""
    check: Check
    traits: int = 0
    """See `traits`: the rule can find a fault only in a frame that has one of them. 0: in any frame."""
    blames: bool = False
    """The rule may find fault with an earlier frame of the other side, see `Blame`."""


RULES: dict[str, Rule] = {}
"""Every rule by its id."""


def rule(
    id: str, *kinds: int, side: Side | None = None, traits: int = 0, blames: bool = False
) -> Callable[[Check], Check]:
    """Registers a function as the rule `id`, asked about every frame of `kinds` (sent by `side`, and with one
    of `traits`, where given)."""

    def register(check: Check) -> Check:
        assert id not in RULES, id
        assert check.__doc__, id
        RULES[id] = Rule(id, check.__doc__.strip().splitlines()[0], kinds, side, check, traits, blames)
        return check

    return register


def id_of(check: Check) -> str:
    """The rule that a function is."""
    return next(known.id for known in RULES.values() if known.check is check)


Route = tuple[Check, ...]


class Routes(dict[tuple[int, int], Route]):
    """Kind and traits of a frame -> the rules that look at it. The table is filled as rules are looked up."""

    def __init__(self, selection: "Selection", side: Side) -> None:
        self._selection = selection
        self._side = side

    def __missing__(self, key: tuple[int, int]) -> Route:
        kind, traits = key
        route = self[key] = self._selection.rules(self._side, kind, traits)
        return route


class Selection:
    """Some of the rules, sorted by what they look at."""

    def __init__(self, ids: Iterable[str] | None = None) -> None:
        """`ids`: the rules to apply; None is all of them. Raises `ValueError` for an id that is no rule
        here."""
        chosen = set(RULES) if ids is None else set(ids)
        if unknown := chosen - RULES.keys():
            raise ValueError(f"checks: not rules of the checker: {', '.join(sorted(unknown))}")
        self.ids = frozenset(chosen)
        self.routes: dict[Side, Routes] = {side: Routes(self, side) for side in Side}
        self.received: dict[Side, dict[int, Route]] = {
            side: {kind: self.rules(side, kind, blames=True) for kind in SENT_BY[side]} for side in Side
        }
        """Sender and kind -> the rules that apply where only the receiver of the frame is checked."""

    def rules(self, side: Side, kind: int, traits: int = ~0, blames: bool = False) -> Route:
        """The rules that look at a frame of `side` with such traits, in the order of their registration."""
        return tuple(
            known.check
            for known in RULES.values()
            if known.id in self.ids
            and kind in known.kinds
            and known.side in (None, side)
            and (not known.traits or known.traits & traits)
            and (known.blames or not blames)
        )
