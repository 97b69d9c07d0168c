"""`StoredMessage`: an entry of a topic, as an administrator reads it."""

from typing import NamedTuple

from ...model.message_id import MessageId
from ...wire import MessageMetadata
from ..topics.messages import payload_of, read_message
from ..topics.topic import Topic


class StoredMessage(NamedTuple):
    """An entry as a topic stores it; a batch is one entry.

    `payload`: uncompressed, unless it is encrypted. `stored_size`: bytes of the payload as it is stored.
    `uncommitted`: True from the first entry of an open transaction on; consumers do not receive it yet.
    `aborted`: True for an entry of an aborted transaction and for its marker; None outside of transactions.
    """

    message_id: MessageId
    metadata: MessageMetadata
    payload: bytes
    stored_size: int
    uncommitted: bool = False
    aborted: bool | None = None


def stored_message(topic: Topic, offset: int) -> StoredMessage:
    """Read the entry at `offset`."""
    entry = topic.log.peek(offset)
    message_id = MessageId(entry.ledger_id, entry.entry_id, topic.partition)
    transactions = topic.transactions
    return StoredMessage(
        message_id,
        *read_message(entry.data),
        len(payload_of(entry.data)),
        offset >= transactions.read_end,
        transactions.is_aborted(offset),
    )
