"""The changes that an application with a table view may get, over several partitions (INV-C18).

A change names a key and a value, but no partition. After growth a key may be in two partitions with one value
in both. So the model follows every sequence of messages that explains the changes; a change is wrong when
none is left. A sequence that is nowhere ahead of another allows all that the other allows.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

from .records import BEFORE_ALL, Place

if TYPE_CHECKING:
    from .compaction import Said
    from .records import Position

Way: TypeAlias = Mapping[int, Place]
"""For one key, by partition: the last message that a change came from, or a position before it."""


class TableViewHistory:
    """The changes of one application, since it listens."""

    def __init__(self, ways: Mapping[str, Sequence[Way]]) -> None:
        """`ways`: the sequences that explain the table at that time, by key."""
        self._ways = {key: _least(each) for key, each in ways.items()}

    def ways(self, key: str) -> Sequence[Way]:
        return self._ways.get(key, [{}])

    def record_change(
        self,
        key: str,
        value: bytes | None,
        said: "Mapping[int, Sequence[Said]]",
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
        self._ways[key] = _least(ways)
        return bool(ways)


def _next(
    value: bytes | None, messages: "Sequence[Said]", after: Place, up_to: "Position"
) -> Sequence[Place]:
    """Return the first message with the value, if there is one. Of messages that arrive together only the
    last is reported, so others may lie between."""
    for place, said in messages:
        if said == value and place > after and place[:2] <= up_to:
            return (place,)
    return ()


def _least(ways: Sequence[Way]) -> list[Way]:
    """Return the sequences that together allow whatever any of them allows."""
    kept: list[Way] = []
    for way in ways:
        if not any(_is_no_further(each, way) for each in kept):
            kept = [each for each in kept if not _is_no_further(way, each)] + [way]
    return kept


def _is_no_further(one: Way, other: Way) -> bool:
    return all(place <= other.get(part, BEFORE_ALL) for part, place in one.items())
