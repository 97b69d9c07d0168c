"""`OutgoingMessage` checks its fields, copies its payload, and keeps the payload out of its text."""

from typing import Any

import pytest

from pulsar_sansio.model.config import (
    OutgoingMessage,
)
from pulsar_sansio.model.errors import InvalidMessage

BAD_MESSAGES: list[tuple[dict[str, Any], str]] = [
    ({"payload": "text"}, "payload"),
    ({"payload": 7}, "payload"),
    ({"payload": b"", "key": 7}, "key"),
    ({"payload": b"", "properties": {"a": 1}}, "properties"),
    ({"payload": b"", "properties": {1: "a"}}, "properties"),
    ({"payload": b"", "ordering_key": "k"}, "ordering_key"),
    ({"payload": b"", "event_time": -1}, "event_time"),
    ({"payload": b"", "event_time": 1.5}, "event_time"),
    ({"payload": b"", "sequence_id": 2**63}, "sequence_id"),
    ({"payload": b"", "event_time": 2**63}, "event_time"),
    ({"payload": b"", "sequence_id": -1}, "sequence_id"),
    ({"payload": b"", "sequence_id": True}, "sequence_id"),
    ({"payload": b"", "deliver_at": -1}, "deliver_at"),
    ({"payload": b"", "deliver_at": 2**63}, "deliver_at"),
    ({"payload": b"", "properties": [("a", "b")]}, "properties"),
    ({"payload": b"", "replicate_to": "us-west"}, "replicate_to"),
    ({"payload": b"", "replicate_to": ("us-west", 7)}, "replicate_to"),
    ({"payload": b"", "replicate_to": ("us-west", " ")}, "replicate_to"),
]


@pytest.mark.parametrize(("options", "word"), BAD_MESSAGES)
def test_a_bad_message_is_refused_before_anything_is_sent(options: dict[str, Any], word: str) -> None:
    with pytest.raises(InvalidMessage, match=word):
        OutgoingMessage(**options)


def test_bytes_like_payloads_are_copied() -> None:
    buffer = bytearray(b"abc")
    message = OutgoingMessage(buffer)
    buffer[0] = 0
    assert message.payload == b"abc"
    assert OutgoingMessage(memoryview(b"abc")).payload == b"abc"


def test_a_message_does_not_show_its_payload() -> None:
    assert repr(OutgoingMessage(b"secret", key="k")) == "<OutgoingMessage 6 bytes, key='k'>"
    assert repr(OutgoingMessage(None)) == "<OutgoingMessage null, key=None>"
