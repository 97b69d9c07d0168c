"""`MessageAdministration`: publish a message for an administrator, without a connection and a producer."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from ...model.errors import BrokerError, InvalidConfiguration, InvalidMessage
from ...model.message_id import MessageId
from ...wire import MessageMetadata, Send, encode_message_metadata, pack_payload
from ..admin_errors import NotApplicable
from .parts import Parts


@dataclass(frozen=True, slots=True)
class NewMessage:
    """A message to publish. `event_time` and `deliver_at` in ms since 1970; 0 and None are none."""

    payload: bytes
    producer_name: str
    schema_version: int
    sequence_id: int = 0
    key: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict)
    event_time: int = 0
    deliver_at: int | None = None


class MessageAdministration:
    """Commands that name a message."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._context = parts.services.context
        self._settle = parts.settle

    def publish(self, now: int, topic: str, message: NewMessage) -> MessageId:
        """Store one message, which is no batch, and return its id.

        The checks are those of a message that a producer sends; deduplication does not see it, and no rate
        counts it. Raises `NotFound`, `NotApplicable` for a partitioned topic, for one that is not persistent
        and where the topic refuses the message, `InvalidConfiguration` for a text without UTF-8.
        """
        self._context.now = now
        found = self._parts.persistent_topic(topic)
        metadata = MessageMetadata(
            producer_name=message.producer_name,
            sequence_id=message.sequence_id,
            publish_time=found.services.wall_time,
            properties=tuple(message.properties.items()),
            partition_key=message.key,
            uncompressed_size=len(message.payload),
            event_time=message.event_time,
            schema_version=message.schema_version.to_bytes(8, "big"),
            deliver_at_time=message.deliver_at,
        )
        try:
            data = b"".join(pack_payload(encode_message_metadata(metadata), message.payload))
            entry = found.publish_for_administrator(Send(0, metadata.sequence_id, payload=data))
        except BrokerError as error:
            raise NotApplicable(error.text) from None
        except InvalidMessage as error:
            raise InvalidConfiguration(str(error)) from None
        self._settle()
        return MessageId(entry.ledger_id, entry.entry_id, found.partition)
