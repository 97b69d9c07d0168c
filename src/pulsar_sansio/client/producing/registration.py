"""`Registration`: the name and the epochs that a producer repeats with every PRODUCER command."""

from typing import Any

from ...model.config import ProducerAccessMode
from ...model.schema import SchemaType
from ...wire import proto
from ..schemas.schema_message import schema_message
from .producer_services import ProducerServices

_ACCESS_MODES = {
    ProducerAccessMode.SHARED: proto.Shared,
    ProducerAccessMode.EXCLUSIVE: proto.Exclusive,
    ProducerAccessMode.WAIT_FOR_EXCLUSIVE: proto.WaitForExclusive,
    ProducerAccessMode.EXCLUSIVE_WITH_FENCING: proto.ExclusiveWithFencing,
}


class Registration:
    """The registration of one producer, from attempt to attempt."""

    __slots__ = ("_epoch", "_services", "_topic_epoch", "is_known", "name", "schema")

    def __init__(self, services: ProducerServices) -> None:
        self._services = services
        self.name = services.spec.name
        """The name that the application or a broker gave; None before."""
        self.schema = services.spec.schema
        """The schema to register; None for bytes. One that adopts is replaced before the first attempt."""
        self.is_known = False
        """A broker has opened the producer, or one of another partition: the schema is final."""
        self._epoch = 0
        self._topic_epoch: int | None = None
        """The broker's epoch of exclusive access, which every reconnect repeats.

        The broker refuses an old epoch, because another producer has had exclusive access since.
        """

    @property
    def described(self) -> str:
        """The producer and its topic in words, for error texts."""
        topic = self._services.topic
        return f"producer {self.name!r} on {topic}" if self.name else f"producer on {topic}"

    def command(self, request_id: int, protocol_version: int) -> proto.CommandProducer:
        """Return PRODUCER; the epoch starts at 0 and grows with every attempt (WIRE-06)."""
        services = self._services
        spec = services.spec
        command = proto.CommandProducer(
            topic=str(services.topic),
            producer_id=services.wire_id,
            request_id=request_id,
            encrypted=services.encryption is not None,
            epoch=self._epoch,
            user_provided_producer_name=spec.name is not None,
            producer_access_mode=_ACCESS_MODES[spec.access_mode],
            txn_enabled=services.client.config.transactions,
        )
        self._epoch += 1
        if self._topic_epoch is not None:
            command.topic_epoch = self._topic_epoch
        if self.name is not None:
            command.producer_name = self.name
        if spec.initial_subscription is not None:
            command.initial_subscription_name = spec.initial_subscription
        schema = schema_message(self.schema, protocol_version)
        if schema is not None:
            command.schema.CopyFrom(schema)
        for key, value in spec.properties.items():
            command.metadata.add(key=key, value=value)
        return command

    def has_to_wait(self, reply: Any) -> bool:
        """True while another producer has exclusive access. The name in the reply is final."""
        if (
            self._services.spec.access_mode is not ProducerAccessMode.WAIT_FOR_EXCLUSIVE
            or not reply.HasField("producer_ready")
            or reply.producer_ready
        ):
            return False
        self.name = self.name or reply.producer_name or None
        return True

    def accepted(self, name: str, reply: Any) -> bytes:
        """Keep the name, and the epoch in the reply. Return the version of the producer's schema; empty for
        bytes."""
        self.name = name
        self.is_known = True
        if reply.HasField("topic_epoch"):
            self._topic_epoch = reply.topic_epoch
        registered = self.schema is not None and self.schema.info.type is not SchemaType.NONE
        version: bytes = reply.schema_version
        return version if registered else b""
