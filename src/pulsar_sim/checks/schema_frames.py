"""Schemas on the clients' ends of the wires: definitions of producers and consumers, versions, questions.

Owns the version that a broker has returned to each producer of a wire (INV-S1). What failed questions mean to
applications belongs to `model.schemas`. In worlds without schemas it does nothing.
"""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from pulsar_sansio.model.errors import ClosedError
from pulsar_sansio.model.schema import Schema
from pulsar_sansio.wire import MessageCommand, Send, unpack_payload

from ..engine.failures import ViolationError
from ..engine.network import Wire
from ..model.records.consumer_record import ConsumerRecord
from ..model.records.producer_record import ProducerRecord
from ..model.reference_model import ReferenceModel
from ..model.schemas.definition import COMPATIBLE, Definition
from ..model.schemas.questions import whole
from ..model.schemas.topic_schemas import ADOPTING, DETECTING, TopicSchemas
from .copy_frames import CopyProducerEnd, WrittenCopy
from .receive_frames import ConsumerEnd, size_of
from .send_frames import ProducerEnd

if TYPE_CHECKING:
    from ..engine.nodes.broker_node import BrokerNode
    from ..engine.nodes.client_node import ClientNode

QUESTION_VERSION = 13
"""The protocol version from which a broker answers GET_SCHEMA (WIRE-21)."""


class SchemaWatch:
    """The schemas of all clients' producers and consumers."""

    def __init__(self, model: ReferenceModel) -> None:
        self._model = model
        self._versions: dict[tuple[ProducerRecord, str], list[bytes]] = {}
        """Producer and topic -> the versions that brokers have returned, the present one last."""

    @property
    def _schemas(self) -> TopicSchemas | None:
        return self._model.schemas

    # --- producers ---

    def wrote_producer(self, producer: ProducerEnd, command: Any, wire: Wire) -> None:
        """INV-S1: a producer registers its own definition with every attempt."""
        if self._schemas is None:
            return
        record = producer.record
        definition = self._definition(command)
        adopts = record.spec.schema is ADOPTING and record.definition is None
        if type(producer) is CopyProducerEnd or adopts:
            record.definition = definition
        elif definition is not record.definition and not self._is_not_told(wire):
            wanted, got = _name(record.definition), _name(definition)
            raise ViolationError("INV-S1", f"{record.tag} has the definition {wanted} and registers {got}")

    def _is_not_told(self, wire: Wire) -> bool:
        """True when the broker is too old for definitions of JSON (SCHEMA-05)."""
        broker: BrokerNode = wire.broker  # type: ignore[assignment]
        assert self._schemas is not None
        return self._schemas.plan.kind == "json" and broker.config.protocol_version < QUESTION_VERSION

    def _definition(self, command: Any) -> Definition | None:
        assert self._schemas is not None
        if not command.HasField("schema"):
            return None
        found = self._schemas.known_as(command.schema.type, command.schema.schema_data)
        if found is None:
            raise ViolationError(
                "INV-S1", f"a schema that no application has: {command.schema.schema_data!r}"
            )
        return found

    def has_version(self, producer: ProducerEnd, version: bytes) -> None:
        """A broker has opened the producer, and returned the version of its definition."""
        if self._schemas is not None:
            versions = self._versions.setdefault((producer.record, producer.lane.topic.name), [])
            versions.append(version if producer.record.definition is not None else b"")

    def wrote_send(self, producer: ProducerEnd, command: Send, wire: Wire) -> None:
        """INV-S1: each entry is stamped with the version that the broker returned. An entry keeps its stamp
        when the topic's versions are deleted, or when the next broker gives none."""
        if self._schemas is None:
            return
        record, topic = producer.record, producer.lane.topic.name
        stamp = unpack_payload(command.payload).metadata.schema_version
        versions = self._versions[record, topic]
        keeps = self._schemas.plan.deleted_after or self._is_not_told(wire)
        of_messages = self._schemas.registrations.versions(wire.client.name, topic)
        allowed = [*(versions if keeps else versions[-1:]), *of_messages]
        if stamp == b"" or (stamp or b"") not in allowed:
            raise ViolationError(
                "INV-S1", f"{record.tag}: an entry has the version {stamp!r}, not {versions[-1]!r}"
            )

    def wrote_registration(self, wire: Wire, command: Any) -> None:
        """INV-S1: a client registers definitions that messages of its applications have."""
        schemas = self._schemas
        if schemas is None or not schemas.plan.mixed_every:
            raise ViolationError("INV-S1", f"{wire.client.name} registers a schema, and no message has one")
        if self._definition(command) not in COMPATIBLE:
            raise ViolationError("INV-S1", f"{wire.client.name} registers the schema of no message")
        schemas.registrations.asked(wire.number, command.request_id, wire.client.name, command.topic)

    def got_registration(self, wire: Wire, command: Any) -> None:
        """A broker has answered the registration of a message's schema."""
        if self._schemas is not None:
            code = command.error_code if command.HasField("error_code") else None
            self._schemas.registrations.answered(
                wire.number, command.request_id, command.schema_version, code
            )

    def waited_until(self, producer: ProducerEnd) -> int:
        """Return the last time at which messages of the producer may have waited for the version of their
        schema; -1 for never."""
        if self._schemas is None:
            return -1
        return self._schemas.registrations.waited_until(producer.lane.topic.name)

    def wrote_letter(self, producer: ProducerEnd, letter: WrittenCopy) -> None:
        """INV-S8: a letter keeps the definition of its original, where the consumer can know it."""
        schemas, consumer = self._schemas, letter.consumer
        original = letter.sources[0].sent.written
        if schemas is None or consumer is None or original is None or len(letter.sources) > 1:
            return
        schema = consumer.spec.schema
        topic = consumer.subscription.topic.name
        if schema is not None and schemas.questions.has_failed(consumer.name, topic):
            return
        expected = None if schema is None else original.definition
        found = producer.record.definition
        if found is not expected:
            raise ViolationError(
                "INV-S8", f"{consumer.name}: a letter of {_name(expected)} is written as {_name(found)}"
            )

    # --- consumers ---

    def wrote_subscribe(self, record: ConsumerRecord, command: Any, wire: Wire) -> None:
        """INV-S1: a consumer names its own schema."""
        if self._schemas is None:
            return
        broker: BrokerNode = wire.broker  # type: ignore[assignment]
        answered = broker.config.protocol_version >= QUESTION_VERSION
        self._schemas.questions.subscribes(record.name, wire.client.name, command.topic, answered)
        schema = record.spec.schema
        if schema is DETECTING:
            return  # older brokers are told nothing (CHECK-13)
        wanted = None if schema is None else self._schemas.definition_of(schema.info)
        if self._definition(command) is not wanted and not self._is_not_told(wire):
            raise ViolationError(
                "INV-S1", f"{record.name} has the definition {_name(wanted)} and names another"
            )

    def may_wait(self, record: ConsumerRecord) -> bool:
        """True when messages of the consumer may wait for their definition."""
        return _needs_definitions(record)

    def gets_message(self, consumer: ConsumerEnd, command: MessageCommand) -> None:
        """A message is about to arrive."""
        schemas, record = self._schemas, consumer.record
        if schemas is None:
            return
        topic, position = record.subscription.topic, (command.ledger_id, command.entry_id)
        first = schemas.questions.arrived(record.name, topic.name, position)
        entry = topic.log.get(position)
        leaves = record.spec.letters is not None or not record.spec.durable
        if entry is None or entry.chunk is not None or entry.sealed is not None or leaves:
            consumer.held_from = None  # such a message may leave the client without being delivered
        elif not first:
            if consumer.held_from is not None:  # the client may know the entry, and keep none of it
                consumer.held_from += size_of(entry, command.ack_set)
        elif consumer.held_from is None and self.may_wait(record):
            version = unpack_payload(entry.payload).metadata.schema_version
            if version and schemas.questions.is_unsettled(record.name, topic.name, version):
                consumer.held_from, consumer.held_version = consumer.arrived, version

    def held(self, consumer: ConsumerEnd) -> int:
        """Return the number of messages that wait for a definition, at least: they are in the queue."""
        schemas, record = self._schemas, consumer.record
        if schemas is None or consumer.held_from is None:
            return 0
        topic = record.subscription.topic.name
        if not schemas.questions.is_unsettled(record.name, topic, consumer.held_version):
            consumer.held_from = None
            return 0
        waits = schemas.questions.is_open(record.name, topic, consumer.held_version)
        return consumer.arrived - consumer.held_from if waits else 0

    # --- questions ---

    def asked(self, wire: Wire, command: Any) -> None:
        """INV-S5: a client asks for versions that entries have, of topics that it reads, or for the latest
        one."""
        if self._schemas is None:
            raise ViolationError("INV-S5", f"{wire.client.name} asks for a definition in a world of bytes")
        if not command.HasField("schema_version"):
            return
        version = command.schema_version
        if len(version) != 8:
            raise ViolationError("INV-S5", f"{wire.client.name} asks for the version {version!r}")
        self._schemas.questions.asked(
            wire.number, command.request_id, wire.client.name, command.topic, version
        )

    def answered(self, wire: Wire, command: Any, consumers: Iterable[ConsumerEnd]) -> None:
        if self._schemas is None:
            return
        failed = not command.HasField("schema")
        self._schemas.questions.answered(
            wire.number,
            command.request_id,
            failed,
            lambda topic: [_asks_if_open(wire, each) for each in consumers if _reads(each.record, topic)],
        )

    def forget(self, wire: Wire) -> None:
        if self._schemas is not None:
            self._schemas.questions.lost(wire.number)
            self._schemas.registrations.lost(wire.number)


def _name(definition: Definition | None) -> str:
    return "of bytes" if definition is None else definition.name


def _reads(record: ConsumerRecord, topic: str) -> bool:
    """True when the consumer needs definitions of the topic."""
    return _needs_definitions(record) and whole(record.subscription.topic.name) == topic


def _needs_definitions(record: ConsumerRecord) -> bool:
    """True when the consumer decodes by definitions, or gives them to its letters."""
    schema: Schema[Any] | None = record.spec.schema
    if schema is None:
        return False
    return schema.wants_writer or (record.spec.letters is not None and bool(schema.info.data))


def _asks_if_open(wire: Wire, consumer: ConsumerEnd) -> Callable[[], bool]:
    """Return a function that tells whether the consumer is open, as its client knows."""
    node: ClientNode = wire.client  # type: ignore[assignment]

    def is_open() -> bool:
        if not consumer.handle or not node.alive:
            return False
        try:
            node.client.available(consumer.handle)
        except ClosedError:
            return False
        return True

    return is_open
