"""The changes that an application with a table view may get, over several partitions (INV-C18).

A change names a key and a value, but no partition. After growth a key may be in two partitions with one value
in both. So the model follows every sequence of messages that explains the changes; a change is wrong when
none is left. A sequence that is nowhere ahead of another allows all that the other allows.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

from .records import BEFORE_ALL, MessagePosition

if TYPE_CHECKING:
    from .compaction import KeyValue
    from .records import Position

Explanation: TypeAlias = Mapping[int, MessagePosition]
"""For one key, by partition: the last message that a change came from, or a position before it."""


class TableViewHistory:
    """The changes of one application, since it listens."""

    def __init__(self, ways: Mapping[str, Sequence[Explanation]]) -> None:
        """`ways`: the sequences that explain the table at that time, by key."""
        self._explanations = {key: _least(each) for key, each in ways.items()}

    def ways(self, key: str) -> Sequence[Explanation]:
        return self._explanations.get(key, [{}])

    def record_change(
        self,
        key: str,
        value: bytes | None,
        said: "Mapping[int, Sequence[KeyValue]]",
        read: "Sequence[Position]",
    ) -> bool:
        """Record a change; `said` are the key's messages by partition, and `read` the last entry read of
        each. False when the change is not possible."""
        ways = [
            {**way, part: found}
            for way in self.ways(key)
            for part, messages in said.items()
            for found in _next(value, messages, way.get(part, BEFORE_ALL), read[part])
        ]
        self._explanations[key] = _least(ways)
        return bool(ways)


def _next(
    value: bytes | None, messages: "Sequence[KeyValue]", after: MessagePosition, up_to: "Position"
) -> Sequence[MessagePosition]:
    """Return the first message with the value, if there is one. Of messages that arrive together only the
    last is reported, so others may lie between."""
    for place, said in messages:
        if said == value and place > after and place[:2] <= up_to:
            return (place,)
    return ()


def _least(ways: Sequence[Explanation]) -> list[Explanation]:
    """Return the sequences that together allow whatever any of them allows."""
    kept: list[Explanation] = []
    for way in ways:
        if not any(_is_no_further(each, way) for each in kept):
            kept = [each for each in kept if not _is_no_further(way, each)] + [way]
    return kept


def _is_no_further(one: Explanation, other: Explanation) -> bool:
    return all(place <= other.get(part, BEFORE_ALL) for part, place in one.items())
