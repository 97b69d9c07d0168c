"""Places in a topic as they are written on the command line: `earliest`, `latest`, a time, a message id."""

import argparse
import re
from datetime import datetime

from pulsar_sansio import MessageId, TopicMessageId
from pulsar_trio.client.position import Place

FORMS = (
    "earliest, latest, a time of publishing (2026-01-31, 2026-01-31T12:00+01:00, or milliseconds since 1970) "
    "or a message id as consume prints it (7:42:-1, or 7:42)"
)

_MESSAGE_ID = re.compile(r"(\d+):(\d+)(?::(-1|\d+)(?::(\d+))?)?", re.ASCII)
"""Ledger, entry, partition (-1: not partitioned) and index in the batch, as `str(MessageId)` has it."""

_GREATEST = 2**63 - 1


def position(text: str) -> str | int | datetime | MessageId:
    """The place that `text` names. A time without a zone is one of this machine's zone.

    Raises `argparse.ArgumentTypeError` for a text that names no place.
    """
    if text in ("earliest", "latest"):
        return text
    if text.isascii() and text.isdecimal():
        if (milliseconds := int(text)) <= _GREATEST:
            return milliseconds
    elif found := _MESSAGE_ID.fullmatch(text):
        ledger, entry, partition, index = (int(part) if part else -1 for part in found.groups())
        if max(ledger, entry) <= _GREATEST and max(partition, index) < 2**31:
            return MessageId(ledger, entry, partition, index)
    else:
        try:
            return datetime.fromisoformat(text).astimezone()
        except (ValueError, OverflowError, OSError):  # the last two are of times that no calendar has
            pass
    raise argparse.ArgumentTypeError(f"{FORMS}, not {text!r}")


def place_in(topic: str, place: str | int | datetime | MessageId) -> Place:
    """The place as a seek of `topic` takes it: an id that names a partition needs its topic's name."""
    if isinstance(place, MessageId) and place.partition >= 0:
        return TopicMessageId(topic, place)
    return place
