"""The conversations of clients with raw brokers (INV-A3).

Each has a client of its own, and a stream of its own. No world sees it, and nothing of it is traced.
"""

from typing import TYPE_CHECKING, Protocol

from .batch_receives import BatchReceives
from .chunked_messages import ChunkedMessages
from .hung_acknowledgements import HungAcknowledgements
from .hung_questions import HungQuestions
from .partitioned_sends import PartitionedSends
from .raw_broker import RawBroker
from .redelivered_messages import RedeliveredMessages
from .sent_messages import SentMessages

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..engine.randomness import Stream, Streams


class ClientConversation(Protocol):
    def hold(self) -> None:
        """Talk. Raises `ViolationError`."""


CONVERSATIONS: dict[str, "Callable[[RawBroker, Stream], ClientConversation]"] = {
    "chunks": ChunkedMessages,
    "batch receives": BatchReceives,
    "partitions": PartitionedSends,
    "questions": HungQuestions,
    "receipts of acknowledgements": HungAcknowledgements,
    "redelivery": RedeliveredMessages,
    "sending": SentMessages,
}

WORLDS_PERMILLE = 250
"""Worlds, per thousand, at whose end the conversations are held, because they take time."""


def hold_client_conversations(streams: "Streams", now: int) -> None:
    """INV-A3: hold all conversations, in some worlds. `now`: nanoseconds."""
    if not streams.stream("conversations").chance(WORLDS_PERMILLE):
        return
    for name, conversation in CONVERSATIONS.items():
        stream = streams.stream(f"conversation about {name}")
        conversation(RawBroker(now, streams.seed_of(f"client of {name}")), stream).hold()
