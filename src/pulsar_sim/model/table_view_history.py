"""What somebody may have heard of the keys of a topic with several partitions (INV-C18).

A change says a key and a value, and not which partition it is from. As a rule a key is in one; where there
are more partitions than before it may be in two, and both may say the same of it. So every way in which it
may have come to what was heard is followed; a change is wrong when none is left. Of two ways of which one has
come no further in any partition, that one allows whatever the other does.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

from .records import BEFORE_ALL, Place

if TYPE_CHECKING:
    from .compaction import Said
    from .records import Position

Way: TypeAlias = Mapping[int, Place]
"""Of one key: partition -> the message of it that was heard of last, or one before it."""


class TableViewHistory:
    """By one application, since it listens."""

    def __init__(self, ways: Mapping[str, Sequence[Way]]) -> None:
        """How it may have come to what is known of each key by then."""
        self._ways = {key: _least(each) for key, each in ways.items()}

    def ways(self, key: str) -> Sequence[Way]:
        return self._ways.get(key, [{}])

    def hears(
        self,
        key: str,
        value: bytes | None,
        said: "Mapping[int, Sequence[Said]]",
        read: "Sequence[Position]",
    ) -> bool:
        """Of `said`, by partition, and as far as each was `read`: whether that may come next."""
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
    """The first message that says so, if there is one. Of messages that come together only the last is told,
    so that others may lie between."""
    for place, said in messages:
        if said == value and place > after and place[:2] <= up_to:
            return (place,)
    return ()


def _least(ways: Sequence[Way]) -> list[Way]:
    """Those that allow whatever any of them does."""
    kept: list[Way] = []
    for way in ways:
        if not any(_is_no_further(each, way) for each in kept):
            kept = [each for each in kept if not _is_no_further(way, each)] + [way]
    return kept


def _is_no_further(one: Way, other: Way) -> bool:
    return all(place <= other.get(part, BEFORE_ALL) for part, place in one.items())
