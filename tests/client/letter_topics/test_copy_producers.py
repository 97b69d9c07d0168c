"""`CopyProducers`: dead letters keep the definition of their originals."""

from typing import Any

from pulsar_sansio.client.letter_topics.copy_producers import MAX_IDLE
from pulsar_sansio.client.outputs import LetterFailed
from pulsar_sansio.model.config import DeadLetterPolicy, SubscriptionType
from pulsar_sansio.model.errors import ServerError
from pulsar_sansio.model.schema import Schema, SchemaInfo, SchemaType
from pulsar_sansio.schemas import STRING, JsonSchema
from pulsar_sansio.wire import proto
from tests.client.broker_script import entry_bytes
from tests.client.schemas.schema_script import NEW, OLD, TOPIC, Old, SchemaScript, version

JSON = JsonSchema(Old)


def script(schema: Schema[Any]) -> SchemaScript:
    return SchemaScript(schema, dead_letter=DeadLetterPolicy(1), subscription_type=SubscriptionType.SHARED)


def opened(s: SchemaScript) -> list[proto.Schema | None]:
    """The schema of each PRODUCER since the last call."""
    producers = [command for name, command in s.frames() if name == "PRODUCER"]
    return [command.schema if command.HasField("schema") else None for command in producers]


def test_the_definition_is_that_of_the_original_where_it_is_known() -> None:
    s = script(NEW)
    s.order(1, 0)
    s.asked()
    s.answer(0)
    s.values()
    s.order(1, 0, redelivery_count=2)
    s.order(2, 0, redelivery_count=2)
    (schema,) = opened(s)
    assert schema is not None
    assert (schema.type, schema.schema_data) == (proto.Schema.Avro, OLD.info.data)


def test_a_message_without_a_version_has_a_copy_without_a_definition() -> None:
    s = script(NEW)
    s.order(1, None, redelivery_count=2)
    assert opened(s) == [None]


def test_a_definition_that_is_not_known_is_asked_for_before_the_copy() -> None:
    """The message may have been delivered to another consumer until now."""
    s = script(NEW)
    s.order(1, 0, redelivery_count=2)
    assert s.asked() == [(TOPIC, version(0))]
    s.answer(0)
    (schema,) = opened(s)
    assert schema is not None
    assert schema.schema_data == OLD.info.data


def test_a_definition_that_the_broker_does_not_have_leaves_the_bytes() -> None:
    s = script(NEW)
    s.order(1, 0, redelivery_count=2)
    s.asked()
    s.refuse(ServerError.TopicNotFound)
    assert opened(s) == [None]


def test_a_connection_that_is_lost_meanwhile_leaves_the_message_to_its_redelivery() -> None:
    s = script(NEW)
    s.order(1, 0, redelivery_count=2)
    s.reconnect()
    s.frames()
    s.order(1, 0, redelivery_count=2)
    assert s.asked() == [(TOPIC, version(0))]
    s.answer(0)
    (schema,) = opened(s)
    assert schema is not None


def test_each_lost_question_is_reported_for_each_message() -> None:
    """DLQ-05: the copies are tried again when the broker delivers the messages again."""
    s = script(NEW)
    for _ in range(2):
        for entry in (1, 2):
            s.order(entry, 0, redelivery_count=2)
        assert s.asked() == [(TOPIC, version(0))]
        s.outputs()
        s.reconnect()
        failed = [each.message_id.entry_id for each in s.outputs() if isinstance(each, LetterFailed)]
        assert failed == [1, 2]
        s.frames()


def test_a_consumer_that_is_closed_meanwhile_opens_no_producer() -> None:
    s = script(NEW)
    s.order(1, 0, redelivery_count=2)
    s.asked()
    s.close()
    s.answer(0)
    assert opened(s) == []


def test_a_letter_of_json_has_the_definition_of_its_original() -> None:
    """A consumer of JSON decodes without definitions, and asks for those that its letters need."""
    s = script(JSON)
    s.order(1, 0, redelivery_count=2)
    assert s.asked() == [(TOPIC, version(0))]
    s.answer_with(SchemaInfo(SchemaType.JSON, "", OLD.info.data))
    (schema,) = opened(s)
    assert schema is not None
    assert (schema.type, schema.schema_data) == (proto.Schema.Json, OLD.info.data)


def test_a_value_of_json_needs_no_definition() -> None:
    """The message waits for the definition of its letter, and is delivered without it."""
    s = script(JSON)
    s.deliver(1, entry_bytes(b'{"id": "o1"}', schema_version=version(0)))
    assert s.asked() == [(TOPIC, version(0))]
    assert s.take() == []
    s.refuse(ServerError.TopicNotFound)
    assert s.values() == [Old("o1")]
    s.deliver(1, entry_bytes(b'{"id": "o1"}', schema_version=version(0)), redelivery_count=2)
    s.asked()
    s.refuse(ServerError.TopicNotFound)
    assert opened(s) == [None]


def test_a_consumer_of_json_without_letters_asks_for_nothing() -> None:
    s = SchemaScript(JSON)
    s.deliver(1, entry_bytes(b'{"id": "o1"}', schema_version=version(0)))
    assert s.asked() == []
    assert s.values() == [Old("o1")]


def test_a_primitive_type_is_registered_itself() -> None:
    s = script(STRING)
    s.order(1, 0, redelivery_count=2)
    (schema,) = opened(s)
    assert schema is not None
    assert schema.type == proto.Schema.String


def test_originals_of_two_definitions_have_two_producers() -> None:
    s = script(STRING)
    s.order(1, 0, redelivery_count=2)
    s.order(2, None, redelivery_count=2)
    first, second = opened(s)
    assert first is not None
    assert second is None


def dead_letter(s: SchemaScript, number: int, *, confirmed: bool = True) -> list[str]:
    """Dead-letter an order of definition `number`, whose copy gets a producer of its own, and return the
    commands about other producers."""
    s.frames()
    s.order(number, number, redelivery_count=2)
    s.asked()
    record = f'{{"type":"record","name":"Order{number}","fields":[{{"name":"id","type":"string"}}]}}'
    s.answer_with(SchemaInfo(SchemaType.AVRO, "", record.encode()))
    frames = s.frames()
    (asked,) = [command for name, command in frames if name == "PRODUCER"]
    s.say(
        "PRODUCER_SUCCESS",
        proto.CommandProducerSuccess(
            request_id=asked.request_id, producer_name="n", last_sequence_id=-1, producer_ready=True
        ),
    )
    if confirmed:
        receipt = proto.CommandSendReceipt(producer_id=asked.producer_id, sequence_id=0)
        receipt.message_id.ledgerId = receipt.message_id.entryId = number
        s.say("SEND_RECEIPT", receipt)
        s.pass_time(0)
    return [f"{name} {command.producer_id}" for name, command in frames if name == "CLOSE_PRODUCER"]


def test_the_number_of_producers_without_copies_under_way_is_bounded() -> None:
    """The one that was used longest ago is closed; a producer whose copy is not stored stays."""
    s = script(NEW)
    for number in range(MAX_IDLE):
        assert dead_letter(s, number, confirmed=number != 0) == []
    s.order(100, 1, redelivery_count=2)  # which uses the second one again
    assert dead_letter(s, MAX_IDLE) == ["CLOSE_PRODUCER 2"]
    assert dead_letter(s, MAX_IDLE + 1) == ["CLOSE_PRODUCER 3"]
