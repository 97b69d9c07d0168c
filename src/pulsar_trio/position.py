"""Places in a topic, as an application says them: for seeks and readers."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import TypeAlias

from pulsar_sansio import EARLIEST, LATEST, LocalProtocolError, Message, MessageId, TopicMessageId

Place: TypeAlias = Message | MessageId | TopicMessageId | datetime | int | str
"""A message or its id; "earliest" or "latest", the ends of the topic; or a time of publishing, as a
`datetime` with a time zone or in milliseconds since 1970: the place of the first message published then or
later."""

Position: TypeAlias = Place | Callable[[str], Place]
"""A place, or a function that gives one for the full name of a topic."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_WORDS = {"earliest": EARLIEST, "latest": LATEST}

CorePlace: TypeAlias = Message | MessageId | TopicMessageId | int


def core_position(position: Position) -> CorePlace | Callable[[str], CorePlace]:
    """As `pulsar_sansio` has it. Raises `LocalProtocolError` for a word or a time that is none."""
    if callable(position):
        place_for = position
        return lambda topic: core_place(place_for(topic))
    return core_place(position)


def core_place(place: Place) -> CorePlace:
    """The same for one place; what is of another type is for the core to refuse."""
    if isinstance(place, str):
        if place not in _WORDS:
            raise LocalProtocolError(
                f"position: 'earliest' or 'latest', a message id or a time, not {place!r}"
            )
        return _WORDS[place]
    if isinstance(place, datetime):
        if place.utcoffset() is None:
            raise LocalProtocolError(f"position: a datetime with a time zone, not {place!r}")
        return (place - _EPOCH) // timedelta(milliseconds=1)
    return place
