"""Positions in topics, and the offsets that Spark keeps of them.

A position is that of the last entry that was read: the start of a range is exclusive, its end inclusive, and
`NOTHING` is before everything. Entries are never cut, so a range is the same messages however they were
batched.

Offsets are equal to Spark where their text is, so there is one text for one content: `to_json` gives keys in
order and nothing that changes by itself. This module is pure: it knows no broker and no Spark.
"""

import json
import re
from base64 import b64decode
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

from pulsar_sansio import InvalidMessage, InvalidTopicName, TopicName, decode_message_id

from ..errors import OffsetParseError, OffsetVersionError, UnsupportedTopic
from ..options.option_values import ValueRefused, timestamp

Position = tuple[int, int]
"""Ledger and entry."""

NOTHING: Final[Position] = (-1, -1)
"""Before everything there is."""

MOST: Final = 2**63 - 2
"""The highest number of a ledger or an entry: the one above it means the end of any topic."""

VERSION: Final = 1

Offsets = dict[str, Position]
"""By topic partition, or topic without partitions, in full: what of it has been read."""


@dataclass(frozen=True)
class Range:
    """The messages of one topic partition behind `start`, up to and including `end`."""

    topic: str
    start: Position
    end: Position
    next_ledger: int | None = None
    """Where `start` is known to be the last entry of its ledger: the ledger after it. Nothing is lost where
    the ledger of `start` is gone and this one is there."""

    def __str__(self) -> str:
        return f"{self.topic} ({self.start[0]}:{self.start[1]}, {self.end[0]}:{self.end[1]}]"


# --- the offsets that Spark keeps -------------------------------------------------------------------


def to_json(offsets: Mapping[str, Position]) -> dict[str, Any]:
    """The offsets as Spark writes them down; the same content gives the same text."""
    topics: dict[str, dict[str, list[int]]] = {}
    for name in sorted(offsets):
        base, index = _parts(name)
        topics.setdefault(base, {})[index] = list(offsets[name])
    ordered = {base: dict(sorted(topics[base].items())) for base in sorted(topics)}
    return {"t": ordered, "v": VERSION}


def from_json(value: Mapping[str, Any]) -> Offsets:
    """The offsets that `to_json` wrote. Raises `OffsetVersionError`, and `OffsetParseError` for what no
    version of this package wrote."""
    version = value.get("v")
    if version != VERSION:
        raise OffsetVersionError(
            f"offsets of version {version!r} in the checkpoint; this package knows version {VERSION}"
        )
    offsets: Offsets = {}
    topics = value.get("t")
    if not isinstance(topics, dict):
        raise OffsetParseError("offsets in the checkpoint: 't' is missing")
    for base, partitions in topics.items():
        if not isinstance(partitions, dict):
            raise OffsetParseError(f"offsets in the checkpoint: {base}: partitions are missing")
        for index, position in partitions.items():
            offsets[_full_name(base, index, "offsets in the checkpoint")] = _position(
                position, f"offsets in the checkpoint: {base}"
            )
    return offsets


def as_text(position: Position) -> str:
    """Return the position as text for people."""
    return "at the beginning" if position == NOTHING else f"behind {position[0]}:{position[1]}"


# --- what people say --------------------------------------------------------------------------------


class Place(Enum):
    """A place that depends on what is in the topic."""

    EARLIEST = "earliest"
    LATEST = "latest"


@dataclass(frozen=True)
class AtTime:
    """Before what was published at this time (milliseconds since 1970) or later."""

    publish_time: int


@dataclass(frozen=True)
class OfSubscription:
    """The position of a subscription."""

    name: str


@dataclass(frozen=True)
class BehindEntry:
    """Behind an entry, as the start of a range is."""

    position: Position


Where = Place | AtTime | OfSubscription | BehindEntry


@dataclass(frozen=True)
class WantedPositions:
    """Where reading is to begin or end: for all topics, and for those that are named."""

    general: Where
    topics: Mapping[str, Where]
    """By topic without its partition: for all partitions of it."""
    partitions: Mapping[str, Where]
    """By topic partition in full."""

    def of(self, name: str) -> Where:
        """For this topic partition."""
        found = self.partitions.get(name)
        if found is None:
            found = self.topics.get(name)
        if found is None:
            found = self.topics.get(_parts(name)[0])
        return self.general if found is None else found

    def named(self) -> set[str]:
        """Every topic or partition that is named."""
        return {*self.topics, *self.partitions}

    @property
    def moves(self) -> bool:
        """True if it means another position at another time, so that it has to be written down before use."""
        return any(
            not isinstance(where, BehindEntry) and where is not Place.EARLIEST
            for where in (self.general, *self.topics.values(), *self.partitions.values())
        )


def parse_start(text: str) -> WantedPositions:
    """Option startingOffsets. Raises `OffsetParseError`."""
    return _wanted("startingOffsets", text, ending=False)


def parse_end(text: str) -> WantedPositions:
    """Option endingOffsets. Raises `OffsetParseError`."""
    return _wanted("endingOffsets", text, ending=True)


def wanted_at(publish_time: int) -> WantedPositions:
    """Options startingTimestamp and endingTimestamp."""
    return WantedPositions(AtTime(publish_time), {}, {})


def _wanted(option: str, text: str, *, ending: bool) -> WantedPositions:
    text = text.strip()
    if not text.startswith("{"):
        return WantedPositions(_where(option, text, ending), {}, {})
    try:
        value = json.loads(text)
    except ValueError as error:
        raise OffsetParseError(f"option {option}: not JSON: {error}") from None
    if set(value) == {"t", "v"}:
        if value["v"] != VERSION or not isinstance(value["t"], dict):
            raise OffsetParseError(
                f'option {option}: {{"v":{VERSION},"t":{{topic: …}}}} or {{topic: …}} is allowed'
            )
        value = value["t"]
    topics: dict[str, Where] = {}
    partitions: dict[str, Where] = {}
    for topic, given in value.items():
        of = f"{option}, topic {topic}"
        if isinstance(given, dict) and "time" not in given:
            for index, place in given.items():
                partitions[_full_name(topic, index, f"option {of}")] = _where(of, place, ending)
        else:
            topics[_full_name(topic, "", f"option {of}")] = _where(of, given, ending)
    return WantedPositions(Place.LATEST if ending else Place.EARLIEST, topics, partitions)


def _where(of: str, given: object, ending: bool) -> Where:
    """One place. `of`: the option and topic, for errors."""
    if given == "latest":
        return Place.LATEST
    if given == "earliest" and not ending:
        return Place.EARLIEST
    if isinstance(given, dict) and set(given) == {"time"}:
        try:
            return AtTime(timestamp(str(given["time"])))
        except ValueRefused:
            pass
    elif isinstance(given, list):
        return BehindEntry(_position(given, f"option {of}"))
    elif isinstance(given, str):
        if given.startswith("subscription:") and given != "subscription:" and not ending:
            return OfSubscription(given.removeprefix("subscription:"))
        found = _message_id(given, ending)
        if found is not None:
            return BehindEntry(found)
    allowed = '"latest", {"time": "2026-01-01T00:00:00Z"}, [ledger, entry], a message id in hex or base64'
    allowed += "" if ending else ', "earliest", "subscription:NAME"'
    raise OffsetParseError(f"option {of}: {given!r} is no place in a topic; allowed: {allowed}")


def _message_id(text: str, ending: bool) -> Position | None:
    """The place of an id, as the column `__messageId` has it. An id inside a batch means its
    whole entry. As a start, the entry is read once more unless the id is its last. As an end, the entry is
    read to its end."""
    try:
        data = (
            bytes.fromhex(text)
            if re.fullmatch(r"([0-9a-fA-F]{2})+", text)
            else b64decode(text, validate=True)
        )
        message_id = decode_message_id(data)
    except (ValueError, InvalidMessage):
        return None
    ledger, entry = message_id.ledger_id, message_id.entry_id
    if not (0 <= ledger <= MOST and 0 <= entry <= MOST):
        return None
    whole = message_id.batch_index < 0 or message_id.batch_index + 1 == message_id.batch_size
    return (ledger, entry) if ending or whole else (ledger, entry - 1)


def _position(value: object, where: str) -> Position:
    if (
        isinstance(value, list)
        and len(value) == 2
        and all(type(each) is int and -1 <= each <= MOST for each in value)
        and (value[0] >= 0 or value[1] < 0)
    ):
        return value[0], value[1]
    raise OffsetParseError(f"{where}: {value!r} is no position; a position is [ledger, entry]")


# --- names ------------------------------------------------------------------------------------------


def _parts(name: str) -> tuple[str, str]:
    """A topic partition as its topic and index, an empty text where it is none."""
    topic = TopicName.parse(name)
    return (str(topic.base), str(topic.partition)) if topic.partition >= 0 else (name, "")


def _full_name(topic: str, index: str, where: str) -> str:
    """The other way round, from any form of the topic's name."""
    try:
        parsed = TopicName.parse(topic)
    except InvalidTopicName as error:
        raise OffsetParseError(f"{where}: {error}") from None
    if not parsed.persistent:
        raise UnsupportedTopic(f"{where}: a non-persistent topic has no positions")
    if not index:
        return str(parsed)
    if not re.fullmatch(r"0|[1-9][0-9]{0,8}", index, re.ASCII):
        raise OffsetParseError(f"{where}: {index!r} is no partition; allowed: a number, or nothing")
    return str(parsed.partition_name(int(index)))
