"""One message as submitted."""

from base64 import b64decode
from collections.abc import Mapping
from typing import TYPE_CHECKING

from .message_position import MessagePosition, Position

if TYPE_CHECKING:
    from ..schemas.written_value import WrittenValue
    from .producer_record import ProducerRecord
    from .topic_record import TopicRecord


class Sent:
    """One message as submitted."""

    __slots__ = (
        "chunks",
        "deliver_at",
        "event_time",
        "has_base64_key",
        "key",
        "message_positions",
        "number",
        "outcome",
        "payload",
        "producer",
        "properties",
        "sent_at",
        "ticket",
        "topic",
        "turn",
        "wires",
        "written",
    )

    def __init__(
        self,
        producer: "ProducerRecord",
        number: int,
        payload: bytes | None,
        key: str | None,
        properties: Mapping[str, str],
        event_time: int,
    ) -> None:
        self.producer = producer
        self.number = number
        self.payload = payload
        self.key = key
        self.properties = properties
        self.event_time = event_time
        self.ticket = -1
        self.sent_at = 0
        self.outcome = ""
        """The outcome: "" while it is pending, then "confirmed" or "failed"."""
        self.message_positions: list[MessagePosition] = []
        """Positions of the message in the log."""
        self.wires = 0
        """The number of attachments that the message was written on."""
        self.topic: TopicRecord | None = None
        """The topic of the message; for a partitioned topic it is known once the message is written."""
        self.deliver_at: int | None = None
        """The time of delivery, in milliseconds since 1970."""
        self.turn = 0
        """The number of messages without a key that the producer sent before."""
        self.chunks: list[tuple[Position, int]] = []
        """Positions of its chunks in the log, in order, each with the chunk's number."""
        self.has_base64_key = False
        """The key is the Base64 text of a key of bytes."""
        self.written: WrittenValue | None = None
        """The value of the payload, where its producer has registered a schema."""

    @property
    def dispatch_key(self) -> str | None:
        """The key by which Key_Shared consumers share messages: of bytes, not of their Base64 text."""
        return b64decode(self.key).decode() if self.key is not None and self.has_base64_key else self.key

    def __str__(self) -> str:
        return f"{self.producer.tag}#{self.number}"


def identities(sent: Sent) -> list[bytes | str]:
    """Return the values that identify a message on the wire: its payload and, for chunks, its property."""
    found: list[bytes | str] = [sent.payload] if sent.payload else []
    if "n" in sent.properties:
        found.append(sent.properties["n"])
    return found
