"""The watch of schemas at the clients' ends: definitions that are registered, stamps, questions, letters."""

from types import SimpleNamespace
from typing import Any

import pytest

from pulsar_sansio.model.config import ConsumerSpec, ProducerSpec, SubscriptionType
from pulsar_sansio.model.schema import Schema
from pulsar_sansio.wire import Send, proto
from pulsar_sim.checks.copy_frames import CopyProducerEnd, CopySource, WrittenCopy
from pulsar_sim.checks.receive_frames import ConsumerEnd
from pulsar_sim.checks.schema_frames import SchemaWatch
from pulsar_sim.checks.send_frames import ProducerEnd
from pulsar_sim.engine.clock import SECOND, Clock
from pulsar_sim.engine.failures import ViolationError
from pulsar_sim.engine.profile import SchemaPlan
from pulsar_sim.model.records.consumer_record import ConsumerRecord
from pulsar_sim.model.records.message_position import Position
from pulsar_sim.model.records.producer_record import ProducerRecord
from pulsar_sim.model.records.topic_record import TopicRecord
from pulsar_sim.model.reference_model import ReferenceModel
from pulsar_sim.model.retry_requests import Copy
from pulsar_sim.model.schemas.definition import COLOURED, FOREIGN, PLAIN, SIZED, Definition
from pulsar_sim.model.schemas.questions import Questions
from pulsar_sim.model.schemas.registrations import Registrations
from pulsar_sim.model.schemas.topic_schemas import ADOPTING, TopicSchemas
from pulsar_sim.model.schemas.written_value import WrittenValue
from tests.client.broker_script import entry_bytes
from tests.sim.model.scenes import NAME, TopicScene


class Bench:
    """One topic in a world of Avro, one producer and one wire to a broker of the latest version."""

    def __init__(self, definition: Definition | None = PLAIN, **plan: Any) -> None:
        model = ReferenceModel()
        self.schemas = model.schemas = TopicSchemas(
            SchemaPlan(**plan), Questions(5 * SECOND, Clock(0)), Registrations(5 * SECOND, Clock(0))
        )
        self.watch = SchemaWatch(model)
        self.scene = TopicScene()
        schema = ADOPTING if definition is None else self.schemas.schemas[definition]
        self.record = self._record(self.scene.topic, schema, definition)
        self.wire: Any = SimpleNamespace(
            number=1,
            client=SimpleNamespace(name="client"),
            broker=SimpleNamespace(config=SimpleNamespace(protocol_version=21)),
        )

    @staticmethod
    def _record(topic: TopicRecord, schema: Any, definition: Definition | None) -> ProducerRecord:
        return ProducerRecord("p", topic, ProducerSpec(NAME, schema=schema), definition=definition)

    def opens(self, definition: Definition | None, version: bytes) -> ProducerEnd:
        """Open the producer, with this definition in PRODUCER and this version in the answer."""
        end = ProducerEnd(self.record, self.record.lane(self.scene.topic))
        command = proto.CommandProducer(topic=NAME)
        if definition is not None:
            command.schema.CopyFrom(self.message(definition))
        self.watch.wrote_producer(end, command, self.wire)
        self.watch.has_version(end, version)
        return end

    def message(self, definition: Definition) -> proto.Schema:
        info = self.schemas.schemas[definition].info
        return proto.Schema(name="", schema_data=info.data, type=proto.Schema.Type.Name(info.type))

    def sends(self, end: ProducerEnd, version: bytes | None) -> None:
        payload = entry_bytes(b"x") if version is None else entry_bytes(b"x", schema_version=version)
        self.watch.wrote_send(end, Send(1, 0, payload=payload), self.wire)

    def consumer(self, schema: Schema[Any] | None) -> ConsumerRecord:
        spec = ConsumerSpec(NAME, "s", schema=schema)
        record = ConsumerRecord("c", self.scene.subscription(SubscriptionType.SHARED), spec)
        subscribe = proto.CommandSubscribe(topic=NAME)
        if schema is not None:
            definition = self.schemas.definition_of(schema.info)
            assert definition is not None
            subscribe.schema.CopyFrom(self.message(definition))
        self.watch.wrote_subscribe(record, subscribe, self.wire)
        return record

    def writes_letter(self, consumer: ConsumerRecord, definition: Definition | None) -> None:
        """The consumer copies a message of COLOURED, and its copy producer has registered `definition`."""
        sent = self.scene.sent(None)
        sent.written = WrittenValue(COLOURED, {})
        end = CopyProducerEnd(self.record, self.record.lane(self.scene.topic), "copies")
        self.record.definition = definition
        source = CopySource(consumer.subscription, (1, 0, 0), sent)
        self.watch.wrote_letter(end, WrittenCopy(Copy(1), [source], consumer))


ONE, TWO = (1).to_bytes(8, "big"), (2).to_bytes(8, "big")


def test_a_producer_registers_its_own_definition() -> None:
    """INV-S1"""
    bench = Bench()
    bench.opens(PLAIN, ONE)
    for other in (COLOURED, None):
        with pytest.raises(ViolationError, match="INV-S1: p has the definition plain and registers"):
            bench.opens(other, ONE)


def test_a_producer_keeps_the_definition_that_it_has_adopted() -> None:
    """INV-S1"""
    bench = Bench(None)
    bench.opens(SIZED, ONE)
    bench.opens(SIZED, ONE)
    with pytest.raises(ViolationError, match="INV-S1"):
        bench.opens(PLAIN, ONE)


@pytest.mark.parametrize("stamp", [None, b"", ONE])
def test_an_entry_has_the_version_of_the_present_registration(stamp: bytes | None) -> None:
    """INV-S1"""
    bench = Bench()
    bench.opens(PLAIN, ONE)
    end = bench.opens(PLAIN, TWO)
    bench.sends(end, TWO)
    with pytest.raises(ViolationError, match="INV-S1"):
        bench.sends(end, stamp)


def test_an_entry_keeps_its_stamp_when_the_versions_are_deleted() -> None:
    bench = Bench(deleted_after=SECOND)
    bench.opens(PLAIN, ONE)
    bench.sends(bench.opens(PLAIN, TWO), ONE)


def test_a_broker_that_knows_no_json_is_told_nothing() -> None:
    bench = Bench(kind="json")
    bench.wire.broker.config.protocol_version = 12
    end = bench.opens(None, b"")
    bench.sends(end, None)


def test_a_consumer_names_its_own_schema() -> None:
    """INV-S1"""
    bench = Bench()
    record = bench.consumer(bench.schemas.schemas[COLOURED])
    subscribe = proto.CommandSubscribe(topic=NAME, schema=bench.message(PLAIN))
    with pytest.raises(ViolationError, match="INV-S1"):
        bench.watch.wrote_subscribe(record, subscribe, bench.wire)


@pytest.mark.parametrize("version", [b"", b"\1"])
def test_a_version_has_eight_bytes(version: bytes) -> None:
    """INV-S5"""
    bench = Bench()
    bench.watch.asked(bench.wire, proto.CommandGetSchema(request_id=1, topic=NAME))
    bench.watch.asked(bench.wire, proto.CommandGetSchema(request_id=2, topic=NAME, schema_version=ONE))
    with pytest.raises(ViolationError, match="INV-S5"):
        bench.watch.asked(
            bench.wire, proto.CommandGetSchema(request_id=3, topic=NAME, schema_version=version)
        )


def test_nothing_is_asked_in_a_world_of_bytes() -> None:
    """INV-S5"""
    bench = Bench()
    with pytest.raises(ViolationError, match="INV-S5"):
        SchemaWatch(ReferenceModel()).asked(bench.wire, proto.CommandGetSchema(request_id=1, topic=NAME))


@pytest.mark.parametrize("schema", [PLAIN, None], ids=["avro", "bytes"])
def test_a_letter_has_the_definition_of_its_original(schema: Definition | None) -> None:
    """INV-S8: and none from a consumer of bytes."""
    bench = Bench()
    consumer = bench.consumer(None if schema is None else bench.schemas.schemas[schema])
    right, wrong = (None, COLOURED) if schema is None else (COLOURED, None)
    bench.writes_letter(consumer, right)
    with pytest.raises(ViolationError, match="INV-S8"):
        bench.writes_letter(consumer, wrong)


def test_a_letter_has_no_definition_where_a_question_has_failed() -> None:
    bench = Bench()
    consumer = bench.consumer(bench.schemas.schemas[PLAIN])
    bench.watch.asked(bench.wire, proto.CommandGetSchema(request_id=1, topic=NAME, schema_version=ONE))
    refusal = proto.CommandGetSchemaResponse(request_id=1, error_code=proto.UnknownError)
    bench.watch.answered(bench.wire, refusal, [])
    bench.writes_letter(consumer, None)


def registration(bench: Bench, definition: Definition) -> Any:
    return proto.CommandGetOrCreateSchema(request_id=7, topic=NAME, schema=bench.message(definition))


def test_an_entry_may_have_the_version_of_a_messages_schema() -> None:
    """INV-S1"""
    bench = Bench(mixed_every=2)
    producer = bench.opens(PLAIN, (7).to_bytes(8, "big"))
    other = (8).to_bytes(8, "big")
    send = Send(0, 0, payload=entry_bytes(b"x", schema_version=other))
    with pytest.raises(ViolationError, match="INV-S1"):
        bench.watch.wrote_send(producer, send, bench.wire)
    bench.watch.wrote_registration(bench.wire, registration(bench, COLOURED))
    bench.watch.got_registration(
        bench.wire, proto.CommandGetOrCreateSchemaResponse(request_id=7, schema_version=other)
    )
    bench.watch.wrote_send(producer, send, bench.wire)


def test_a_refused_registration_gives_no_version() -> None:
    """INV-S1"""
    bench = Bench(mixed_every=2)
    producer = bench.opens(PLAIN, (7).to_bytes(8, "big"))
    bench.watch.wrote_registration(bench.wire, registration(bench, COLOURED))
    refused: Any = proto.IncompatibleSchema
    answer = proto.CommandGetOrCreateSchemaResponse(request_id=7, error_code=refused)
    bench.watch.got_registration(bench.wire, answer)
    with pytest.raises(ViolationError, match="INV-S1"):
        bench.watch.wrote_send(producer, Send(0, 0, payload=entry_bytes(b"x")), bench.wire)


def test_a_registration_is_of_a_messages_schema() -> None:
    """INV-S1"""
    for bench, definition in ((Bench(), COLOURED), (Bench(mixed_every=2), FOREIGN)):
        with pytest.raises(ViolationError, match="INV-S1"):
            bench.watch.wrote_registration(bench.wire, registration(bench, definition))


def test_a_repeated_entry_leaves_the_others_in_the_count_of_the_queue() -> None:
    """INV-C6: messages that wait for their definition are in the queue, also when an entry arrives that had
    arrived before: it alone may not be."""
    bench = Bench()
    record = bench.consumer(bench.schemas.schemas[COLOURED])
    consumer = ConsumerEnd(record, 1, False)
    stamped = entry_bytes(b"x", schema_version=ONE)
    positions = [(1, number) for number in range(4)]
    for position in positions:
        entry = bench.scene.store(position, "a")
        entry.payload = stamped

    def arrives(position: Position) -> int:
        command: Any = SimpleNamespace(ledger_id=position[0], entry_id=position[1], ack_set=None)
        bench.watch.gets_message(consumer, command)
        consumer.arrived += 1
        return bench.watch.held(consumer)

    assert arrives(positions[0]) == 0  # no question was asked yet
    bench.watch.asked(bench.wire, proto.CommandGetSchema(request_id=1, topic=NAME, schema_version=ONE))
    assert [arrives(each) for each in positions[1:3]] == [2, 3]
    assert arrives(positions[1]) == 3
    assert arrives(positions[3]) == 4
