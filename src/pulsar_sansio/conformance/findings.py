"""A finding names the broken rule, the side that broke the rule, and the frame."""

from enum import StrEnum
from typing import NamedTuple


class Side(StrEnum):
    """An end of a connection."""

    CLIENT = "client"
    BROKER = "broker"

    @property
    def other(self) -> "Side":
        return Side.BROKER if self is Side.CLIENT else Side.CLIENT


class Violation(NamedTuple):
    """A rule was broken."""

    rule_id: str
    """The rule's id in docs/rules.md."""
    side: Side
    """The side that broke the rule."""
    frame_number: int
    """The frame that shows it: frames of both sides are counted from 0, in the order in which they passed."""
    text: str
    """A description of the fault, with the values at fault."""
    connection: int = 0
    """The number of the connection in the session; 0 when there is only one."""

    def __str__(self) -> str:
        where = f"connection {self.connection}, " if self.connection else ""
        return f"{self.rule_id} broken by the {self.side} ({where}frame {self.frame_number}): {self.text}"


class Blame(NamedTuple):
    """A finding about an earlier frame than the one that brought it to light, perhaps the other side's."""

    side: Side
    frame_number: int
    text: str


Finding = str | Blame | None
"""A rule's result: None means that the rule is kept; text blames the frame at hand and its sender."""
