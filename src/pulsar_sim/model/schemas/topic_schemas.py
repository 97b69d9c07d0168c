"""`TopicSchemas`: the schemas of the producers and consumers of a world, and the values that must arrive.

Owns the choice among the definitions of a world's kind ("avro", "json", "text", "pairs"), and what a message
must be to a consumer: its value, or an error that has a cause. Frames tell which questions (`Questions`) and
registrations (`Registrations`) have failed. It never looks inside a machine.
"""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from pulsar_sansio.model.errors import SchemaDecodingError, SchemaUnavailable
from pulsar_sansio.model.message import Message
from pulsar_sansio.model.schema import Schema, SchemaInfo, SchemaType
from pulsar_sansio.schemas import (
    STRING,
    AutoConsume,
    AutoPublish,
    AvroSchema,
    JsonSchema,
    KeyValue,
    KeyValueSchema,
)

from ...engine.failures import ViolationError
from ...engine.profile import SchemaPlan
from ...engine.randomness import Stream
from ..records.consumer_record import ConsumerRecord
from ..records.message_position import Position
from ..records.sent import Sent
from .definition import COMPATIBLE, DEFINITIONS, FOREIGN, MEASURED, PLAIN, Definition
from .questions import Questions
from .registrations import Registrations
from .versions import Versions
from .written_value import WrittenValue

ADOPTING = AutoPublish()
"""The schema of producers that take the definition of their topic."""

DETECTING = AutoConsume()
"""The schema of consumers that take each message's own definition."""


class TableRow(NamedTuple):
    """A row of a table view."""

    view: str
    topics: Sequence[str]
    """The topic of the view, or its partitions."""
    key: str
    """The key of its messages, decoded where it is the Base64 text of bytes."""
    found: Any
    """The value, or the error that looking at it raises."""

    def __str__(self) -> str:
        return f"{self.view}: {self.key!r} is {self.found!r:.200}"


class TopicSchemas:
    """The schemas of one world. All topics have the same definitions."""

    def __init__(self, plan: SchemaPlan, questions: Questions, registrations: Registrations) -> None:
        self.plan = plan
        self.schemas: dict[Definition, Schema[Any]] = {
            definition: _schema(plan.kind, definition) for definition in self._definitions
        }
        """Definition -> its schema, in the world's kind."""
        self._written: dict[bytes, WrittenValue] = {}
        """Payload -> the value that a producer has encoded to it."""
        self._by_data = {schema.info.data: each for each, schema in self.schemas.items()}
        self.questions = questions
        self.registrations = registrations
        self.versions = Versions()
        self.strategy = plan.strategy
        """The strategy in force, as an administrator has set it last."""

    @property
    def _definitions(self) -> tuple[Definition, ...]:
        return (PLAIN,) if self.plan.kind == "text" else DEFINITIONS

    def known_as(self, kind: SchemaType | int, data: bytes) -> Definition | None:
        """Return the definition with that type and these bytes; None for bytes without a schema."""
        own = self.schemas[PLAIN].info.type
        return self._by_data.get(data) if SchemaType(kind) is own else None

    def definition_of(self, info: SchemaInfo) -> Definition | None:
        return self.known_as(info.type, info.data)

    # --- choices ---

    def for_producer(self, draw: Stream, rash: bool) -> Schema[Any] | None:
        """Choose the schema of a producer; None is bytes. After healing every topic takes it."""
        plan = self.plan
        if draw.chance(plan.bytes_permille):
            return None
        if draw.chance(plan.adopting_permille):
            return ADOPTING
        return self._chosen(draw, rash, measured=self.plan.measured)

    def for_consumer(self, draw: Stream, rash: bool) -> Schema[Any] | None:
        """Choose the schema of a consumer; None is bytes. A broker that lets it in once does so again,
        whatever is registered meanwhile."""
        if draw.chance(150):
            return None
        return DETECTING if draw.chance(300) else self._chosen(draw, rash)

    def for_message(self, definition: Definition, number: int) -> Definition:
        """Return the definition of a producer's message: its own, or another one in its turn."""
        every = self.plan.mixed_every
        if not every or number % every or definition not in COMPATIBLE:
            return definition
        return COMPATIBLE[number // every % len(COMPATIBLE)]

    def for_table_view(self, draw: Stream) -> Schema[Any] | None:
        """Choose the schema of a table view; None is bytes."""
        if not draw.chance(700):
            return None
        return self.schemas[PLAIN if self.plan.kind == "text" else draw.choice(COMPATIBLE)]

    def _chosen(self, draw: Stream, rash: bool, measured: bool = False) -> Schema[Any]:
        if self.plan.kind == "text":
            return self.schemas[PLAIN]
        if rash and draw.chance(self.plan.strange_permille):
            strange = MEASURED if measured and draw.chance(500) else FOREIGN
            return self.schemas[strange]
        return self.schemas[draw.choice(COMPATIBLE) if rash else PLAIN]

    # --- values ---

    def payload(self, definition: Definition, value: Any, key: str | None) -> bytes:
        """Encode a value as producers do."""
        schema = self.schemas[definition]
        payload = schema.encode(KeyValue(key, value) if self.plan.kind == "pairs" else value)
        self._written[payload] = WrittenValue(definition, value)
        return payload

    def payloads_in_table(self, schema: Schema[Any], row: TableRow, payloads: Iterable[bytes]) -> list[bytes]:
        """INV-S2, INV-S3: return the payloads, of these, that a table view with that schema reads as the row.
        A value that is unavailable may be any of them, where a question has failed."""
        reader = self.definition_of(schema.info)
        assert reader is not None
        if isinstance(row.found, SchemaUnavailable):
            failed = any(self.questions.has_failed(row.view, topic) for topic in row.topics)
            if not schema.wants_writer or not failed:
                raise ViolationError("INV-S3", f"{row}: no question has failed")
            return [*payloads]
        payloads = [*payloads]
        found = [each for each in payloads if self._is_row(reader, row, self._written.get(each))]
        if not found:  # of bytes a reader makes anything or nothing
            found = [each for each in payloads if each not in self._written]
        if not found:
            raise ViolationError("INV-S2", f"{row}: no message of the key holds that")
        return found

    def _is_row(self, reader: Definition, row: TableRow, written: WrittenValue | None) -> bool:
        """True when the reader makes what the row holds of that value."""
        if written is None:
            return False
        is_error = isinstance(row.found, SchemaDecodingError)
        if not reader.reads(written.definition):
            return is_error
        value = written.value if self.plan.kind == "text" else reader.read(written.value)
        return not is_error and row.found == (
            KeyValue(row.key, value) if self.plan.kind == "pairs" else value
        )

    def value(self, definition: Definition, sent_number: int, text: str) -> Any:
        """Return a value of that definition."""
        return text if self.plan.kind == "text" else definition.value(sent_number, text)

    def check_value(
        self, consumer: ConsumerRecord, message: Message[Any], sent: Sent, position: Position
    ) -> None:
        """INV-S2: a value is what was written, as the consumer's schema reads it. INV-S3: it is unavailable
        only where a question for its definition failed while the message waited, or shortly before."""
        arrived_at = self.questions.taken(consumer.name, consumer.subscription.topic.name, position)
        try:
            value = message.value
        except SchemaUnavailable as error:
            self._check_unavailable(consumer, message, arrived_at, f"{consumer.name}: {sent}: {error}")
            return
        except SchemaDecodingError as error:
            if self._is_readable(consumer, sent):
                raise ViolationError("INV-S2", f"{consumer.name}: {sent} has no value: {error}") from None
            return
        schema, written = consumer.spec.schema, sent.written
        if written is None and schema is not None and schema is not DETECTING:
            return  # bytes of a producer without a schema may happen to be a value
        if not self._is_readable(consumer, sent):
            raise ViolationError("INV-S2", f"{consumer.name}: {sent} has the value {value!r}, of other bytes")
        expected = self._expected(schema, sent)
        if schema is DETECTING and not message.schema_version:  # an old broker gave its producer none
            expected = sent.payload
        if value is None and sent.payload is None:  # also where the definition is unavailable
            expected = None
        if value != expected:
            raise ViolationError(
                "INV-S2", f"{consumer.name}: {sent} is {value!r:.200}, not {expected!r:.200}"
            )

    def _check_unavailable(
        self, consumer: ConsumerRecord, message: Message[Any], arrived_at: int, what: str
    ) -> None:
        schema, version = consumer.spec.schema, message.schema_version
        if schema is None or not schema.wants_writer or not version:
            raise ViolationError("INV-S3", f"{what}: it needs no definition")
        topic = consumer.subscription.topic.name
        if not self.questions.failed_since(consumer.name, topic, version, arrived_at):
            raise ViolationError("INV-S3", f"{what}: no question has failed since {arrived_at}")

    def _is_readable(self, consumer: ConsumerRecord, sent: Sent) -> bool:
        """True when the consumer's schema makes a value of the message."""
        schema, written = consumer.spec.schema, sent.written
        if schema is None or schema is DETECTING or sent.payload is None:
            return True
        reader = self.definition_of(schema.info)
        return written is not None and reader is not None and reader.reads(written.definition)

    def _expected(self, schema: Schema[Any] | None, sent: Sent) -> Any:
        written = sent.written
        if schema is None or written is None:
            return sent.payload
        value = None if sent.payload is None else written.value
        if value is not None and schema is not DETECTING and self.plan.kind != "text":
            reader = self.definition_of(schema.info)
            assert reader is not None
            value = reader.read(value)
        if self.plan.kind == "pairs":
            return KeyValue(sent.dispatch_key, value)
        return value


def _schema(kind: str, definition: Definition) -> Schema[Any]:
    if kind == "text":
        return STRING
    if kind == "json":
        return JsonSchema(definition=definition.text)
    avro: Schema[Any] = AvroSchema(definition=definition.text)
    return KeyValueSchema(STRING, avro) if kind == "pairs" else avro
