"""The changes that an application with a table view may get, over several partitions (INV-C18).

A change names a key and a value, but no partition. After growth a key may be in two partitions with one value
in both. So the model follows every sequence of messages that explains the changes; a change is wrong when
none is left. A sequence that is nowhere ahead of another allows all that the other allows.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

from .records.message_position import BEFORE_ALL, MessagePosition

if TYPE_CHECKING:
    from .compaction import KeyValue
    from .records.message_position import Position

Explanation: TypeAlias = Mapping[int, MessagePosition]
"""For one key, by partition: the last message that a change came from, or a position before it."""


class TableViewHistory:
    """The changes of one application, since it listens."""

    def __init__(self, explanations: Mapping[str, Sequence[Explanation]]) -> None:
        """`explanations`: the sequences that explain the table at that time, by key."""
        self._explanations = {key: _least(each) for key, each in explanations.items()}

    def explanations(self, key: str) -> Sequence[Explanation]:
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
        explanations = [
            {**explanation, part: found}
            for explanation in self.explanations(key)
            for part, messages in said.items()
            for found in _next(value, messages, explanation.get(part, BEFORE_ALL), read[part])
        ]
        self._explanations[key] = _least(explanations)
        return bool(explanations)


def _next(
    value: bytes | None, messages: "Sequence[KeyValue]", after: MessagePosition, up_to: "Position"
) -> Sequence[MessagePosition]:
    """Return the first message with the value, if there is one. Of messages that arrive together only the
    last is reported, so others may lie between."""
    for message_position, said in messages:
        if said == value and message_position > after and message_position[:2] <= up_to:
            return (message_position,)
    return ()


def _least(explanations: Sequence[Explanation]) -> list[Explanation]:
    """Return the sequences that together allow whatever any of them allows."""
    kept: list[Explanation] = []
    for explanation in explanations:
        if not any(_is_no_further(each, explanation) for each in kept):
            kept = [each for each in kept if not _is_no_further(explanation, each)] + [explanation]
    return kept


def _is_no_further(one: Explanation, other: Explanation) -> bool:
    return all(message_position <= other.get(part, BEFORE_ALL) for part, message_position in one.items())
