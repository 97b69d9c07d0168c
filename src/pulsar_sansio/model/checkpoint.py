"""Checkpoints: how far a reader has got in each of its topics, as bytes and back.

The application keeps the bytes. They are JSON, so that no code in them is ever run, and people can read
them. This module knows nothing of readers.
"""

import json
from collections.abc import Mapping

from .errors import InvalidConfiguration
from .message_id import MessageId
from .topic_name import TopicName

_VERSION = 1


def encode_checkpoint(positions: Mapping[str, MessageId]) -> bytes:
    """Encode the last processed message of each topic; `positions` maps full names of topics to ids."""
    topics = {topic: message_id[:5] for topic, message_id in sorted(positions.items())}
    return json.dumps({"version": _VERSION, "positions": topics}, separators=(",", ":")).encode()


def decode_checkpoint(data: bytes) -> dict[str, MessageId]:
    """Decode a checkpoint. Raises `InvalidConfiguration` for bytes that are no checkpoint."""
    try:
        found = json.loads(bytes(data))
        if found["version"] != _VERSION:
            raise InvalidConfiguration(f"checkpoint: of version {found['version']!r}, known is {_VERSION}")
        return {str(TopicName.parse(topic)): _message_id(id_) for topic, id_ in found["positions"].items()}
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
        if isinstance(error, InvalidConfiguration):
            raise
        raise InvalidConfiguration(
            f"checkpoint: bytes that a reader gave, not {bytes(data[:40])!r}"
        ) from None


def _message_id(fields: list[object]) -> MessageId:
    """Return the id of five fields. Raises `ValueError` or `TypeError` for fields of no id."""
    numbers = [each for each in fields if type(each) is int and -1 <= each < 2**63]
    if len(numbers) != 5 or len(fields) != 5:
        raise ValueError
    ledger_id, entry_id, partition, index, size = numbers
    return MessageId(ledger_id, entry_id, partition, index, size)
