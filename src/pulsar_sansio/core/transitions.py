"""`Transitions`: a machine's legal moves as one literal table.

States are classes (small records that carry what has a meaning in that state only), inputs are members of an
enum, and the table names the state that follows. What is not in the table is not legal: `IllegalMove` is
raised, and the machine is as it was. Machines decide before they move; the table is what holds them to it,
what the exhaustive tests walk through and what the diagrams are drawn from. Per-message work does not go
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
