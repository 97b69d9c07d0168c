"""Which chunks of a topic make a message: all of one, from the first to the last (rule CHUNK-01).

Consumers put them together by the same rules. Owns what has begun and is not finished, for whoever goes
through a topic entry by entry. Knows nothing of keys and payloads, nor whether the rest of a message will
ever come.
"""

from dataclasses import dataclass

from .messages import Chunk


@dataclass(slots=True)
class Unfinished:
    """A message of which the first chunks are there, and at least one is not."""

    latest: Chunk
    offsets: list[int]
    """Of its chunks, in order."""


class Assembly:
    """The messages in chunks of one topic."""

    def __init__(self) -> None:
        self._begun: dict[tuple[str, str], Unfinished] = {}
        """By the name of the producer and what it calls the message, as consumers tell them apart."""

    def take(self, offset: int, chunk: Chunk) -> list[int] | None:
        """The next chunk of the topic. Where it completes a message: the offsets of all its chunks."""
        name = chunk.producer, chunk.uuid
        if chunk.number == 0:  # perhaps again, and then the others come again, too
            self._begun[name] = Unfinished(chunk, [offset])
            return None
        message = self._begun.get(name)
        if message is None or chunk.number < len(message.offsets):
            return None
        if (chunk.number, chunk.total) != (len(message.offsets), message.latest.total):
            del self._begun[name]  # nothing but another first chunk makes it whole
            return None
        message.latest = chunk
        message.offsets.append(offset)
        if chunk.number < chunk.total - 1:
            return None
        del self._begun[name]
        return message.offsets

    def unfinished(self) -> list[Unfinished]:
        """What may still be completed by chunks that come."""
        return list(self._begun.values())
