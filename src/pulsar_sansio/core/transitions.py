"""`Transitions`: a machine's legal moves as one literal table.

States are classes: small records of the values that have a meaning in that state only. Inputs are members of
an enum, and the table names the state that follows. A move that is not in the table raises `IllegalMove` and
leaves the machine as it was. Machines decide before they move, and the table holds them to it. The
exhaustive tests walk through the table, and the diagrams are drawn from it. Per-message work does not go
through tables.
"""

from collections.abc import Mapping
from enum import Enum


class IllegalMove(AssertionError):
    """A machine tried a move that its table does not have: a bug in the machine, never the peer's doing."""


class Transitions:
    """The moves of one kind of machine: `{(state class, input): following state class}`."""

    __slots__ = ("name", "table")

    def __init__(self, name: str, table: Mapping[tuple[type, Enum], type]) -> None:
        self.name = name
        self.table = table

    def allows(self, state: object, event: Enum) -> bool:
        return (type(state), event) in self.table

    def check(self, state: object, event: Enum, following: object) -> None:
        """Raise `IllegalMove` unless `event` leads from `state` to a state of `following`'s kind."""
        expected = self.table.get((type(state), event))
        if expected is not type(following):
            raise IllegalMove(
                f"{self.name}: {event.name} in {type(state).__name__} leads to "
                f"{expected.__name__ if expected else 'nowhere'}, not to {type(following).__name__}"
            )

    @property
    def states(self) -> set[type]:
        return {state for state, _ in self.table} | set(self.table.values())
