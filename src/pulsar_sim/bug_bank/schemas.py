"""Bugs of schemas: versions, questions for definitions, messages that wait, and brokers' registries."""

from collections import deque
from typing import Any

from pulsar_sansio.broker.schemas.registry import Schemas
from pulsar_sansio.broker.schemas.strategies import SchemaStrategy
from pulsar_sansio.client.delivery.received_entries import size_of
from pulsar_sansio.client.delivery.schema_queue import SchemaQueue
from pulsar_sansio.client.letter_topics.letter_topics import LetterTopics
from pulsar_sansio.client.producing.message_schemas import MessageSchemas
from pulsar_sansio.client.producing.producer import Producer
from pulsar_sansio.client.producing.registration import Registration
from pulsar_sansio.client.producing.send_encoder import SendEncoder
from pulsar_sansio.client.schemas.decoding_sources import DecodingSources
from pulsar_sansio.client.schemas.schema_question import SchemaQuestion
from pulsar_sansio.client.schemas.schema_versions import SchemaVersions, TopicVersions
from pulsar_sansio.client.schemas.value_decoder import WriterDecoder
from pulsar_sansio.model.errors import ConnectionLost, TimedOut
from pulsar_sansio.model.topic_name import TopicName

from .planted_bug import Patches, bug, nothing
from .preconditions import schemas as needs

# --- producers --------------------------------------------------------------------------------------------


@bug("BUG-115", caught_by=("INV-S1",), needs=[needs.schemas])
def a_reconnect_drops_the_version(patches: Patches) -> None:
    """Entries that a producer makes after it was attached again have no version of its schema."""

    def attached(original: Any, self: SendEncoder, limit: int, version: bytes) -> None:
        original(self, limit, b"" if hasattr(self, "_schema_version") else version)

    patches.around(SendEncoder, "attached", attached)


@bug("BUG-115", caught_by=("INV-S1",), needs=[needs.adopting])
def a_reconnect_adopts_another_definition(patches: Patches) -> None:
    """A producer that has adopted a definition adopts the latest one with each connection, for payloads of
    the first."""

    def ask_first(original: Any, self: Producer, connection: Any, proceed: Any, failed: Any) -> Any:
        self._registration.schema, self._registration.is_known = self.spec.schema, False
        return original(self, connection, proceed, failed)

    patches.around(Producer, "ask_first", ask_first)


@bug("own", caught_by=("INV-S2",), needs=[needs.mixed])
def a_message_has_the_version_of_another_schema(patches: Patches) -> None:
    """A message whose schema is not registered yet is stamped with the version of the schema before."""

    def version(original: Any, self: MessageSchemas, schema: Any) -> bytes | None:
        found: bytes | None = original(self, schema)
        return next(reversed(self._versions.values()), None) if found is None else found

    patches.around(MessageSchemas, "version", version)


@bug("own", caught_by=("INV-S1",), needs=[needs.schemas])
def a_reconnect_registers_no_schema(patches: Patches) -> None:
    """A producer names its schema with its first PRODUCER alone."""

    def command(original: Any, self: Registration, request_id: int, protocol_version: int) -> Any:
        again = self._epoch > 0
        found = original(self, request_id, protocol_version)
        if again:
            found.ClearField("schema")
        return found

    patches.around(Registration, "command", command)


@bug("own", caught_by=("INV-S1",), needs=[needs.schemas])
def the_first_version_is_stamped(patches: Patches) -> None:
    """Entries are stamped with version 0, whichever the broker has returned."""

    def accepted(original: Any, self: Registration, name: str, reply: Any) -> bytes:
        return bytes(8) if original(self, name, reply) else b""

    patches.around(Registration, "accepted", accepted)


# --- questions --------------------------------------------------------------------------------------------


@bug("BUG-115", caught_by=("INV-S5", "CHECK-80"), needs=[needs.bytes_among_values])
def no_version_is_taken_for_one(patches: Patches) -> None:
    """A consumer asks for the definition of messages whose producer has no schema."""

    def of(original: Any, self: DecodingSources, version: bytes | None) -> Any:
        if version:
            return original(self, version)
        info = self._services.schemas.get(self._versions, b"")
        if info is None:
            self._ask(b"")
            return None
        return self._plain

    patches.around(DecodingSources, "of", of)


@bug("own", caught_by=("INV-S2", "INV-S6"), needs=[needs.several_topics])
def versions_are_kept_across_topics(patches: Patches) -> None:
    """A definition of one topic is taken for the definition of that version in every topic."""

    def join(original: Any, self: SchemaVersions, topic: TopicName) -> TopicVersions:
        found: TopicVersions = original(self, topic)
        first = next(iter(self._topics.values()))
        found.known = first.known
        return found

    patches.around(SchemaVersions, "join", join)


@bug("own", caught_by=("INV-S2",), needs=[needs.questions])
def the_latest_definition_is_asked_for(patches: Patches) -> None:
    """A consumer asks for the latest definition of the topic, whichever version a message has."""

    def begin(
        original: Any, self: SchemaQuestion, services: Any, connection: Any, topic: Any, *rest: Any
    ) -> None:
        _, known, failed = rest
        original(self, services, connection, topic, None, known, failed)

    patches.around(SchemaQuestion, "__init__", begin)


@bug("own", caught_by=("INV-S4", "INV-N6", "INV-N5"), needs=[needs.questions])
def definitions_are_not_kept(patches: Patches) -> None:
    """A definition serves the messages that wait for it, and is asked for again by the next consumer."""

    def keep(self: TopicVersions, version: bytes, info: Any) -> None:
        self.known.clear()
        self.known[version] = info

    patches.replace(TopicVersions, "keep", keep)


@bug("own", caught_by=("INV-S4",), needs=[needs.questions])
def questions_are_not_shared(patches: Patches) -> None:
    """Each consumer asks for itself, also while another one waits for that version."""

    def ask(original: Any, self: SchemaVersions, versions: TopicVersions, *rest: Any) -> Any:
        return (
            original(self, TopicVersions(versions.topic, 1), *rest)
            if versions.asked
            else original(self, versions, *rest)
        )

    patches.around(SchemaVersions, "ask", ask)


@bug("own", caught_by=("INV-L1", "INV-N5"), needs=[needs.losses])
def a_lost_question_is_never_repeated(patches: Patches) -> None:
    """A consumer whose question was lost with the connection waits for its answer for ever."""

    def ask(
        original: Any, self: SchemaVersions, versions: Any, version: bytes, link: Any, known: Any, failed: Any
    ) -> Any:
        def gone(error: Any) -> None:
            if not isinstance(error, ConnectionLost):
                failed(error)

        return original(self, versions, version, link, known, gone)

    def detach(self: DecodingSources) -> None:
        self._connection = None

    patches.around(SchemaVersions, "ask", ask)
    patches.replace(DecodingSources, "detach", detach)


@bug("own", caught_by=("INV-N5",), needs=[needs.lost_questions])
def a_question_has_no_timeout(patches: Patches) -> None:
    """Messages wait for ever where the broker does not answer the question for their definition."""

    def ask(
        original: Any, self: SchemaVersions, versions: Any, version: bytes, link: Any, known: Any, failed: Any
    ) -> Any:
        def gone(error: Any) -> None:
            if not isinstance(error, TimedOut):
                failed(error)

        return original(self, versions, version, link, known, gone)

    patches.around(SchemaVersions, "ask", ask)


@bug("own", caught_by=("INV-S3",), needs=[needs.refusals])
def a_failure_is_final(patches: Patches) -> None:
    """After one failed question, no message of that version has a value any more."""

    class Kept(dict[bytes, Any]):
        def pop(self, *_: Any) -> None:
            """Forget nothing."""

    def begin(original: Any, self: DecodingSources, *arguments: Any) -> None:
        original(self, *arguments)
        self._sources = Kept()  # type: ignore[assignment]

    patches.around(DecodingSources, "__init__", begin)


@bug("own", caught_by=("INV-L1", "INV-S3"), needs=[needs.losses])
def a_lost_connection_fails_the_question(patches: Patches) -> None:
    """Messages are delivered without a value where the connection was lost before the answer."""

    def ask(
        original: Any, self: SchemaVersions, versions: Any, version: bytes, link: Any, known: Any, failed: Any
    ) -> Any:
        def lost(error: Any) -> None:
            failed(TimedOut(str(error)) if isinstance(error, ConnectionLost) else error)

        return original(self, versions, version, link, known, lost)

    patches.around(SchemaVersions, "ask", ask)
    patches.replace(DecodingSources, "detach", lambda self: None)


@bug("own", caught_by=("WIRE-21",), needs=[needs.old_brokers])
def brokers_of_any_age_are_asked(patches: Patches) -> None:
    """A client asks brokers for definitions that do not know the question."""
    patches.replace(DecodingSources, "_is_too_old", lambda self: False)


# --- messages that wait -----------------------------------------------------------------------------------


@bug("own", caught_by=("INV-C3",), needs=[needs.lost_questions, needs.in_order])
def messages_overtake_those_that_wait(patches: Patches) -> None:
    """A message whose definition is known is delivered before an earlier one that waits for its own."""

    def add(original: Any, self: SchemaQueue, item: Any) -> None:
        held, self._held = self._held, deque()
        original(self, item)
        held.extend(self._held)
        self._held = held

    for name in ("add", "add_batch", "add_singles"):
        patches.around(SchemaQueue, name, add)


@bug("own", caught_by=("INV-C3",), needs=[needs.questions])
def waiting_messages_are_released_backwards(patches: Patches) -> None:
    """The messages that wait are delivered in the wrong order once their definition is known."""

    def release(original: Any, self: SchemaQueue) -> None:
        self._held.reverse()
        original(self)

    patches.around(SchemaQueue, "release", release)


@bug("own", caught_by=("INV-C7", "INV-C3", "INV-N5", "INV-C8"), needs=[needs.questions])
def waiting_messages_survive_a_clearing(patches: Patches) -> None:
    """Messages that wait for their definition stay in the queue when all others are dropped: after a seek, a
    lost connection, or a request for redelivery."""

    def take_in(self: SchemaQueue) -> bool:
        return False

    patches.replace(SchemaQueue, "_take_in", take_in)


@bug("own", caught_by=("INV-C6",), needs=[needs.questions])
def waiting_messages_do_not_count(patches: Patches) -> None:
    """Messages that wait for their definition are not in the queue, which asks for more in their place."""

    def add(original: Any, self: SchemaQueue, item: Any) -> None:
        before = len(self._held)
        original(self, item)
        self._permits.give_back(sum(map(size_of, list(self._held)[before:])))

    for name in ("add", "add_batch", "add_singles"):
        patches.around(SchemaQueue, name, add)


@bug("own", caught_by=("INV-N5", "INV-C7"), needs=[needs.refusals])
def a_failed_question_loses_its_messages(patches: Patches) -> None:
    """Messages whose definition could not be had are dropped, and are not asked for again."""

    def release(original: Any, self: SchemaQueue) -> None:
        if any(type(each.decoder).__name__ == "NoDecoder" for each in self._sources._sources.values()):
            self._held.clear()
        original(self)

    patches.around(SchemaQueue, "release", release)


@bug("own", caught_by=("INV-S2",), needs=[needs.questions])
def values_are_read_by_the_own_definition(patches: Patches) -> None:
    """A consumer decodes each payload as if it was written with the consumer's definition."""

    def begin(original: Any, self: WriterDecoder, schema: Any, writer: Any) -> None:
        auto = type(schema).__name__ == "AutoConsume"
        original(self, schema, writer if auto else None)

    patches.around(WriterDecoder, "__init__", begin)


@bug("own", caught_by=("INV-S2",), needs=[needs.questions])
def pairs_are_read_without_their_key(patches: Patches) -> None:
    """AutoConsume looks for the key of a pair in the payload, wherever the definition puts it."""

    def begin(original: Any, self: WriterDecoder, schema: Any, writer: Any) -> None:
        original(self, schema, writer)
        if type(schema).__name__ == "AutoConsume":
            self._separated = False

    patches.around(WriterDecoder, "__init__", begin)


@bug("own", caught_by=("INV-S8",), needs=[needs.letters])
def letters_lose_their_definition(patches: Patches) -> None:
    """Dead letters and messages to reconsume later are copied as bytes."""
    patches.replace(LetterTopics, "_definition_of", nothing)

    def post(
        original: Any, self: LetterTopics, pending: Any, message: Any, publish_time: int, _: Any
    ) -> None:
        original(self, pending, message, publish_time, None)

    patches.around(LetterTopics, "_post", post)


# --- brokers ----------------------------------------------------------------------------------------------


@bug("own", caught_by=("INV-S6",), needs=[needs.schemas])
def an_equal_definition_gets_another_version(patches: Patches) -> None:
    """A broker gives every producer a version of its own."""
    patches.replace(Schemas, "_find", nothing)


@bug("own", caught_by=("INV-S7",), needs=[needs.one_way])
def the_strategy_is_read_backwards(patches: Patches) -> None:
    """BACKWARD asks that the earlier schema reads new values, FORWARD that the new one reads earlier ones."""
    patches.replace(
        SchemaStrategy, "new_reads_old", property(lambda self: self.name.startswith(("FORWARD", "FULL")))
    )
    patches.replace(
        SchemaStrategy, "old_reads_new", property(lambda self: self.name.startswith(("BACKWARD", "FULL")))
    )


@bug("own", caught_by=("INV-S7",), needs=[needs.transitive])
def only_the_latest_version_counts(patches: Patches) -> None:
    """A transitive strategy compares with the latest version alone."""
    patches.replace(SchemaStrategy, "transitive", property(lambda self: False))


@bug("own", caught_by=("INV-S7",), needs=[needs.strange])
def consumers_are_not_checked(patches: Patches) -> None:
    """A broker lets consumers in whose schema reads no value of the topic."""
    patches.replace(Schemas, "check_consumer", nothing)


@bug("own", caught_by=("INV-S6", "CHECK-82"), needs=[needs.questions])
def a_broker_answers_with_the_latest_version(patches: Patches) -> None:
    """A broker ignores the version in a question."""

    def get(original: Any, self: Schemas, topic: TopicName, version: bytes | None) -> Any:
        return original(self, topic, None)

    patches.around(Schemas, "get", get)


@bug("own", caught_by=("INV-S6", "INV-S2"), needs=[needs.kills])
def versions_do_not_survive_a_restart(patches: Patches) -> None:
    """A broker keeps the versions of schemas in memory alone."""

    def save(self: Schemas, saved: Any) -> None:
        self._saved.setdefault(saved.topic, []).append(saved)

    patches.replace(Schemas, "_save", save)


@bug("own", caught_by=("INV-S6",), needs=[needs.deletions])
def numbers_are_used_again_after_a_deletion(patches: Patches) -> None:
    """The versions of a topic begin at 0 again when its schema was deleted."""

    def delete(self: Schemas, topic: TopicName, wall_time: int) -> int:
        self.discard(topic)
        return 0

    patches.replace(Schemas, "delete", delete)
