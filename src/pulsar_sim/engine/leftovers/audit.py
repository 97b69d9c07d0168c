"""State that machines should have released (INV-L1): a forgotten reset, a leak, a timer without purpose.

Owns the comparison of a machine's parts with the tables in `released`. Unlike all other checks it reads the
machines' internal state. A leftover often shows much later, or only to an application that uses one feature a
lot.
"""

from collections import deque
from collections.abc import Callable
from operator import attrgetter
from typing import Any

from pulsar_sansio.core.deadlines import Deadlines, Slot

from ..failures import ViolationError
from . import released
from .machine_parts import SHARED, Walk, identity, names_of

_CONTAINERS = (list, dict, set, deque)


def _is_awaited(batch: Any) -> bool:
    """True when the broker was asked to redeliver the batch, or leaves out messages that an open transaction
    may hold."""
    past = batch.past_deliveries
    return bool(batch.left_out) or (past is not None and bool(past.asked))


_LEFT: dict[object, Callable[[Any], object]] = {
    "empty": bool,
    "unset": lambda slot: slot.when is not None,
    "incomplete": lambda batches: any(each.complete and not _is_awaited(each) for each in batches.values()),
}
"""Functions that tell whether an attribute holds anything, by the word in a table."""


class Moment:
    """One kind of moment in a machine's life, and the state that must be released then.

    `over`: no container and no timer may be in use, except those known to be kept.
    """

    def __init__(
        self, what: str, table: str, beyond: frozenset[str] = frozenset(), *, over: bool = False
    ) -> None:
        self._what = what
        self._table = released.parsed(table)
        self._walk = Walk(beyond)
        self._over = over
        self._known: dict[type, _Expected] = {}

    def check(self, name: str, machine: object) -> set[int]:
        """Return the ids of all parts. Raises `ViolationError` for the first part that holds something."""
        known = self._known
        ids = set()
        for part in self._walk.parts(machine):
            ids.add(identity(part))
            kind = type(part)
            expected = known.get(kind)
            if expected is None:
                expected = known[kind] = _Expected(kind, part, self._table)
            if expected.values(part) != expected.wanted:
                for attribute, wanted in expected.each:
                    found = getattr(part, attribute)
                    if found != wanted:
                        self._fail(name, kind, attribute, found)
            for attribute, wanted in expected.others:
                found = getattr(part, attribute)
                if _LEFT[wanted](found):
                    self._fail(name, kind, attribute, found)
            for attribute, container in expected.members:
                found = getattr(part, attribute)
                if found is not None and found not in getattr(part, container):
                    self._fail(name, kind, attribute, found)
            if self._over:
                self._check_over(name, part)
        return ids

    def check_root(self, name: str, root: object, deadlines: Deadlines) -> None:
        """Check all parts of a root. Each timer that is set must belong to a part: a released part has no
        timer."""
        ids = self.check(name, root)
        for _, _, slot in deadlines._heap:
            owner = getattr(slot.action, "__self__", None)
            if slot.when is not None and owner is not None and identity(owner) not in ids:
                what = f"{type(owner).__name__}.{slot.action.__name__}"
                raise ViolationError(
                    "INV-L1", f"{name} {self._what} and waits to call {what} of no part of it"
                )

    def _check_over(self, name: str, part: Any) -> None:
        kind = type(part)
        for attribute in names_of(part):
            found = getattr(part, attribute, None)
            in_use = found if type(found) in _CONTAINERS else type(found) is Slot and found.when is not None
            if in_use and not _is_kept(kind, attribute):
                self._fail(name, kind, attribute, found)

    def _fail(self, name: str, kind: type, attribute: str, found: object) -> None:
        if isinstance(found, Slot):
            text = f"due at {found.when}"
        elif isinstance(found, _CONTAINERS):
            text = f"a {type(found).__name__} of {len(found)}"
        else:
            text = repr(found) if isinstance(found, (int, str, bytes, tuple)) else f"a {type(found).__name__}"
        raise ViolationError("INV-L1", f"{name} {self._what}, and {kind.__name__}.{attribute} is {text}")


class _Expected:
    """The lines of a table for a class and its bases, as far as instances have the attributes."""

    def __init__(self, kind: type, part: object, table: dict[str, list[tuple[str, object]]]) -> None:
        lines = [each for base in kind.__mro__ for each in table.get(base.__name__, ())]
        lines = [each for each in lines if hasattr(part, each[0])]
        self.members = [
            (name, each[3:]) for name, each in lines if isinstance(each, str) and each[:3] == "in:"
        ]
        """Attributes that are None or are in a named container."""
        lines = [each for each in lines if each[0] not in dict(self.members)]
        self.each = [each for each in lines if each[1] not in _LEFT]
        self.others = [each for each in lines if each[1] in _LEFT]
        self.values = attrgetter("__class__", *(attribute for attribute, _ in self.each))
        """Reads all attributes with expected values at once, because most of the time they match."""
        self.wanted: object = (kind, *(wanted for _, wanted in self.each)) if self.each else kind


def _is_kept(kind: type, attribute: str) -> bool:
    return any(attribute in released.KEPT.get(base.__name__, "").split() for base in kind.__mro__)


ENDED = Moment("has ended", released.ENDED, SHARED, over=True)
DETACHED = Moment("is detached", released.DETACHED, SHARED)
LINK_ENDED = Moment("has ended", released.LINK_ENDED, SHARED)
CLOSED = Moment("is closed", released.CLOSED, over=True)
RESTING = Moment("is at rest", released.RESTING)
BROKER_RESTING = Moment("is at rest", released.BROKER_RESTING)
BROKER_LINK_ENDED = Moment(
    "has ended", released.BROKER_LINK_ENDED, SHARED | {"Consumer", "Producer", "Topic"}
)
ALONE = Moment("is alone", released.ALONE)
