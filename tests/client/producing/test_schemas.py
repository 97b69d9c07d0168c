"""A producer with a schema: what it registers, what its entries are stamped with, and what it adopts."""

from typing import Any

import pytest

from pulsar_sansio.client.outputs import ProducerFailed, ProducerReady
from pulsar_sansio.model.config import BatchingPolicy, CompressionType, OutgoingMessage, ProducerSpec
from pulsar_sansio.model.errors import (
    IncompatibleSchema,
    InvalidConfiguration,
    InvalidMessage,
    LocalProtocolError,
    SchemaDecodingError,
    ServerError,
)
from pulsar_sansio.model.schema import Schema, SchemaInfo
from pulsar_sansio.schemas import BYTES, INT32, STRING, AutoConsume, AutoPublish, JsonSchema
from pulsar_sansio.wire import encode_command, proto, unpack_payload
from tests.client.script import WALL, Command, Script, frame_error, frame_producer_success

VERSION = (3).to_bytes(8, "big")
TOPIC = "persistent://public/default/demo"


class TypedProducer:
    """A producer that is being opened, up to its first command on the connection of its topic."""

    def __init__(self, schema: Any, protocol_version: int = 21, **options: Any) -> None:
        self.script = Script()
        spec = ProducerSpec("demo", schema=schema, **options)
        self.handle = self.script.client.open_producer(self.script.now, spec)
        self.link = self.script.ready_link(version=protocol_version)
        self.script.check_partitions(self.link)
        self.script.find_topic(self.link)

    def open(self, version: bytes = VERSION) -> proto.CommandProducer:
        """Accept the producer, and return its PRODUCER."""
        asked: proto.CommandProducer = self.script.sent(self.link, Command.PRODUCER)
        self.script.feed(self.link, frame_producer_success(asked.request_id, schema_version=version))
        self.script.expect_one(ProducerReady)
        return asked

    def send(self, *messages: bytes | OutgoingMessage) -> list[Any]:
        """Send the messages, and return the metadata of the entries."""
        for message in messages:
            self.script.client.send(self.script.now, self.handle, message, WALL)
        self.script.client.push(self.script.now, self.handle)
        sends = [command for _, command in self.script.commands(self.link)]
        return [unpack_payload(send.payload)[-2] for send in sends]

    def definition(self, **answer: Any) -> None:
        """Answer the question for the topic's definition."""
        asked = self.script.sent(self.link, Command.GET_SCHEMA)
        assert (asked.topic, asked.HasField("schema_version")) == (TOPIC, False)
        response = proto.CommandGetSchemaResponse(request_id=asked.request_id, **answer)
        self.script.feed(self.link, encode_command(Command.GET_SCHEMA_RESPONSE, response))


@pytest.mark.parametrize("schema", [None, BYTES], ids=["none", "BYTES"])
def test_bytes_register_nothing(schema: Any) -> None:
    """SCHEMA-04: and a version that the broker returns even so is not theirs."""
    producer = TypedProducer(schema)
    assert not producer.open().HasField("schema")
    assert [metadata.schema_version for metadata in producer.send(b"x")] == [None]


def test_a_schema_is_registered_with_every_attempt() -> None:
    """PROD-12"""
    schema = JsonSchema(definition={"type": "record", "name": "Order", "fields": []})
    producer = TypedProducer(schema)
    asked = producer.open()
    assert (asked.schema.type, asked.schema.schema_data) == (proto.Schema.Json, schema.info.data)
    producer.script.lose(producer.link)
    producer.script.said()
    producer.script.advance(1)
    again = producer.script.ready_link()
    producer.script.find_topic(again)
    assert producer.script.sent(again, Command.PRODUCER).schema == asked.schema


@pytest.mark.parametrize(
    ("options", "messages"),
    [
        ({"batching": None}, [b"short"]),
        ({"batching": None}, [OutgoingMessage(b"keyed", key="k")]),
        ({"batching": None}, [b"long" * 10_000]),
        ({"batching": None, "compression": CompressionType.ZLIB}, [b"compressed"]),
        ({"batching": None, "chunking": True, "chunk_max_message_size": 3}, [b"chunks"]),
        ({}, [b"one", b"batch"]),
        ({}, [b"alone"]),
        ({"batching": BatchingPolicy(by_key=True)}, [OutgoingMessage(b"a", key=key) for key in "xxy"]),
    ],
    ids=["short", "keyed", "long", "compressed", "chunks", "batch", "batch of one", "batches by key"],
)
def test_every_entry_has_the_version_that_the_broker_returned(
    options: dict[str, Any], messages: list[bytes | OutgoingMessage]
) -> None:
    """PROD-37"""
    producer = TypedProducer(STRING, **options)
    producer.open()
    entries = producer.send(*messages)
    assert {metadata.schema_version for metadata in entries} == {VERSION}


def test_a_short_message_is_the_frame_of_the_general_encoder() -> None:
    short, general = TypedProducer(STRING, batching=None), TypedProducer(STRING, batching=None)
    for producer, message in ((short, b"payload"), (general, OutgoingMessage(b"payload"))):
        producer.open()
        producer.script.client.send(producer.script.now, producer.handle, message, WALL)
        producer.script.drain()
    assert short.script.written == general.script.written
    assert short.script.written[short.link]


def test_another_broker_may_have_another_version() -> None:
    producer = TypedProducer(STRING)
    producer.open()
    script = producer.script
    script.lose(producer.link)
    script.said()
    script.advance(1)
    link = script.ready_link()
    script.find_topic(link)
    asked = script.sent(link, Command.PRODUCER)
    script.feed(link, frame_producer_success(asked.request_id, schema_version=b"\0" * 8))
    producer.link = link
    assert [metadata.schema_version for metadata in producer.send(b"x")] == [b"\0" * 8]


def test_a_refused_schema_fails_the_producer_with_the_text_of_the_broker() -> None:
    """SCHEMA-11, ERR-15: no second attempt is made."""
    producer = TypedProducer(INT32)
    asked = producer.script.sent(producer.link, Command.PRODUCER)
    text = "Incompatible schema: exists schema type JSON, new schema type INT32"
    producer.script.feed(producer.link, frame_error(asked.request_id, ServerError.IncompatibleSchema, text))
    failed = producer.script.expect_one(ProducerFailed)
    assert isinstance(failed.error, IncompatibleSchema)
    assert text in str(failed.error)
    producer.script.advance(20)
    assert producer.script.commands(producer.link) == []


def test_a_producer_cannot_read_only() -> None:
    """CLIENT-09"""
    with pytest.raises(InvalidConfiguration, match="AUTO_CONSUME only reads"):
        ProducerSpec("demo", schema=AutoConsume())


@pytest.mark.parametrize("schema", [str, "STRING", STRING.info], ids=["type", "text", "info"])
def test_a_schema_is_a_schema(schema: Any) -> None:
    with pytest.raises(InvalidConfiguration, match="a Schema or None"):
        ProducerSpec("demo", schema=schema)


# --- values ---


def test_values_become_payloads_by_the_encoder_of_the_producer() -> None:
    """PROD-31"""
    producer = TypedProducer(STRING)
    producer.open()
    encode = producer.script.client.encoder(producer.handle)
    assert (encode("text"), encode(None)) == ((b"text", None), (None, None))
    with pytest.raises(InvalidMessage, match="schema STRING: text, not int"):
        encode(7)


def test_a_producer_of_bytes_has_no_encoder() -> None:
    producer = TypedProducer(None)
    with pytest.raises(LocalProtocolError, match="its messages are bytes"):
        producer.script.client.encoder(producer.handle)


# --- the definition of the topic ---


def test_the_definition_of_the_topic_is_adopted_and_checked() -> None:
    """CLIENT-10: the definition comes first, and goes into PRODUCER."""
    producer = TypedProducer(AutoPublish())
    producer.definition(
        schema=proto.Schema(name="demo", schema_data=b"", type=proto.Schema.Int32), schema_version=VERSION
    )
    assert producer.open().schema.type == proto.Schema.Int32
    encode = producer.script.client.encoder(producer.handle)
    assert encode(b"\0\0\0\7") == (b"\0\0\0\7", None)
    with pytest.raises(InvalidMessage, match="schema INT32: 4 bytes, not 2"):
        encode(b"\0\7")
    assert [metadata.schema_version for metadata in producer.send(b"\0\0\0\7")] == [VERSION]


def test_a_broker_that_knows_no_question_has_no_definition_to_adopt() -> None:
    """WIRE-21"""
    producer = TypedProducer(AutoPublish(), protocol_version=12)
    assert not producer.open(b"").HasField("schema")


def test_a_topic_without_a_definition_takes_bytes() -> None:
    producer = TypedProducer(AutoPublish())
    producer.definition(error_code=ServerError.TopicNotFound, error_message="no schema")
    assert not producer.open(b"").HasField("schema")
    assert producer.script.client.encoder(producer.handle)(b"anything") == (b"anything", None)


def test_a_producer_of_bytes_adopts_nothing_later() -> None:
    """Its payloads were not checked by a definition that the topic gets meanwhile."""
    producer = TypedProducer(AutoPublish())
    producer.definition(error_code=ServerError.TopicNotFound, error_message="no schema")
    producer.open(b"")
    producer.script.lose(producer.link)
    producer.script.said()
    producer.script.advance(1)
    producer.link = producer.script.ready_link()
    producer.script.find_topic(producer.link)
    asked = producer.script.sent(producer.link, Command.PRODUCER)
    assert not asked.HasField("schema")


def test_a_question_that_fails_is_asked_again() -> None:
    producer = TypedProducer(AutoPublish())
    producer.definition(error_code=ServerError.ServiceNotReady, error_message="later")
    producer.script.advance(1)
    producer.script.find_topic(producer.link)
    producer.definition(error_code=ServerError.TopicNotFound, error_message="no schema")
    producer.open(b"")


def test_a_definition_that_nothing_reads_fails_the_producer() -> None:
    producer = TypedProducer(AutoPublish())
    producer.definition(schema=proto.Schema(name="", schema_data=b"{", type=proto.Schema.Avro))
    failed = producer.script.expect_one(ProducerFailed)
    assert isinstance(failed.error, SchemaDecodingError)


class NeverAdopts(AutoPublish):
    """A schema of an application's own whose code has an error."""

    def adopted(self, topic: SchemaInfo | None) -> Schema[bytes]:
        raise KeyError("topic")


def test_an_exception_of_an_own_schema_fails_the_producer() -> None:
    producer = TypedProducer(NeverAdopts())
    producer.definition(error_code=ServerError.TopicNotFound, error_message="no schema")
    failed = producer.script.expect_one(ProducerFailed)
    assert isinstance(failed.error, SchemaDecodingError)
    assert isinstance(failed.error.__cause__, KeyError)


def test_the_answer_to_a_closed_producer_opens_nothing() -> None:
    producer = TypedProducer(AutoPublish())
    producer.script.client.close(producer.script.now, producer.handle)
    producer.definition(error_code=ServerError.TopicNotFound, error_message="no schema")
    assert producer.script.commands(producer.link) == []
