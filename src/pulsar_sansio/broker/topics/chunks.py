"""The assembly of chunks into messages, while a topic is read entry by entry (rule CHUNK-01).

Consumers assemble messages by these rules, too. The module holds messages whose last chunk has not been read.
It knows no keys and payloads.
"""

from dataclasses import dataclass

from .messages import Chunk


@dataclass(slots=True)
class Unfinished:
    """A message of which at least one chunk, and not the last one, has been read."""

    latest: Chunk
    offsets: list[int]
    """The offsets of its chunks, in order."""


class Assembly:
    """The chunked messages of one topic."""

    def __init__(self) -> None:
        self._begun: dict[tuple[str, str], Unfinished] = {}
        """(producer name, uuid) -> the message that they identify, as for consumers."""

    def take(self, offset: int, chunk: Chunk) -> list[int] | None:
        """Add the next chunk of the topic. Return the offsets of all chunks of the message that it completes,
        else None."""
        name = chunk.producer, chunk.uuid
        if chunk.number == 0:  # After a resend, the other chunks follow again, too.
            self._begun[name] = Unfinished(chunk, [offset])
            return None
        message = self._begun.get(name)
        if message is None or chunk.number < len(message.offsets):
            return None
        if (chunk.number, chunk.total) != (len(message.offsets), message.latest.total):
            del self._begun[name]  # Only another first chunk can complete the message.
            return None
        message.latest = chunk
        message.offsets.append(offset)
        if chunk.number < chunk.total - 1:
            return None
        del self._begun[name]
        return message.offsets

    def unfinished(self) -> list[Unfinished]:
        """Return the messages that later chunks may complete."""
        return list(self._begun.values())
