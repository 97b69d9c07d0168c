"""Places in a topic, as an application says them: for seeks and readers."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import TypeAlias

from pulsar_sansio import (
    EARLIEST,
    LATEST,
    LocalProtocolError,
    Message,
    MessageId,
    TopicMessageId,
    milliseconds_of,
)

from ..official_names import word_meant

Place: TypeAlias = Message | MessageId | TopicMessageId | datetime | int | str
"""A place in a topic: a message or its id, one of its ends ("earliest" or "latest"), or a time of publishing.

A time is a `datetime` with a time zone, or milliseconds since 1970. It stands for the first message published
then or later."""

Position: TypeAlias = Place | Callable[[str], Place]
"""A place, or a function that gives one for the full name of a topic."""

_WORDS = {"earliest": EARLIEST, "latest": LATEST}

CorePlace: TypeAlias = Message | MessageId | TopicMessageId | int


def core_position(position: Position) -> CorePlace | Callable[[str], CorePlace]:
    """The position in terms of `pulsar_sansio`. Raises `LocalProtocolError` for a wrong word or time."""
    if callable(position):
        place_for = position
        return lambda topic: core_place(place_for(topic))
    return core_place(position)


def core_place(place: Place) -> CorePlace:
    """Return the core's value for one place; the core refuses values of another type."""
    if isinstance(place, str):
        if place not in _WORDS:
            raise LocalProtocolError(
                f"position: 'earliest' or 'latest', a message id or a time, not {place!r}"
                f"{word_meant(place, _WORDS)}"
            )
        return _WORDS[place]
    if isinstance(place, datetime):
        return milliseconds_of("position", place)
    if type(place).__name__ == "MessageId" and not isinstance(place, MessageId):
        raise LocalProtocolError(
            f"position: a message id of this client, not {place!r} of another; did you mean 'earliest', "
            "'latest', or decode_message_id(message_id.serialize())?"
        )
    return place


def seconds(delay: float | timedelta) -> float:
    """A timedelta as seconds; everything else is for the core to check."""
    return delay.total_seconds() if isinstance(delay, timedelta) else delay
