"""One SEND as a broker stores it, and the mark of a chunk."""

from typing import NamedTuple

from pulsar_sansio.wire import MessageMetadata

from .message_position import Position
from .sealed import Sealed
from .sent import Sent


class StoredChunk(NamedTuple):
    """Marks a SEND as one chunk of a message."""

    number: int
    total: int
    uuid: str
    """The uuid of the message: a producer of that name that sends under that sequence id has it too."""


class StoredEntry:
    """One SEND as a broker stores it: the bytes, and the messages they hold."""

    __slots__ = (
        "chunk",
        "epochs",
        "key",
        "messages",
        "metadata",
        "payload",
        "positions",
        "sealed",
        "size",
        "source",
    )

    def __init__(self, payload: bytes, messages: tuple[Sent, ...], chunk: StoredChunk | None = None) -> None:
        self.key = messages[0].dispatch_key
        """The key of the entry: a batch has the key of its first message (BATCH-11)."""
        self.payload = payload
        self.metadata: MessageMetadata | None = None
        """The producer's metadata of the payload; None until a message of the entry is delivered."""
        self.messages = messages
        """The messages of the entry. A chunk in a log has the message when it completes it, otherwise
        none."""
        self.size = len(messages)
        """The size of the entry, in permits."""
        self.positions: list[Position] = []
        self.chunk = chunk
        self.epochs: tuple[int, ...] = ()
        """Topic epochs under which producers with exclusive access wrote the entry, in order."""
        self.source = messages[0]
        self.sealed: Sealed | None = None
        """None stands for an entry that is not encrypted."""
