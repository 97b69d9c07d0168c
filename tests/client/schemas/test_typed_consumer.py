"""A consumer whose schema wants the definition that each message was written with."""

import pickle
from typing import Any

import pytest

from pulsar_sansio.client.outputs import ConsumerFailed, Deliverable, RequestDone
from pulsar_sansio.model.config import BatchReceivePolicy, ConsumerSpec, SubscriptionType
from pulsar_sansio.model.errors import (
    IncompatibleSchema,
    InvalidConfiguration,
    SchemaDecodingError,
    SchemaUnavailable,
    ServerError,
)
from pulsar_sansio.model.message_id import EARLIEST
from pulsar_sansio.model.schema import SchemaInfo, SchemaType
from pulsar_sansio.schemas import STRING, AutoConsume, JsonSchema, KeyValue, KeyValueSchema
from pulsar_sansio.wire import proto
from tests.client.broker_script import SECOND, ConsumerScript, entry_bytes
from tests.client.schemas.schema_script import NEW, TOPIC, Old, Order, SchemaScript, payload, version


def test_the_definition_is_asked_for_before_the_message_is_delivered() -> None:
    """SCHEMA-07: it is asked for once."""
    s = SchemaScript()
    s.order(1, 0)
    assert s.asked() == [(TOPIC, version(0))]
    assert (s.outputs(), s.take()) == ([], [])
    s.answer(0)
    assert s.outputs() == [Deliverable(s.consumer)]
    (message,) = s.take()
    assert (message.value, message.data, message.schema_version) == (Order("o1", 1), b"\x04o1", version(0))
    s.order(2, 0)
    assert s.asked() == []
    assert s.values() == [Order("o2", 1)]


def test_messages_of_several_definitions_are_delivered_in_order() -> None:
    s = SchemaScript()
    s.order(1, 1)
    s.order(2, 0)
    s.order(3, 1)
    s.orders(4, 0, 2)
    s.order(5, None)
    assert s.asked() == [(TOPIC, version(1))]
    s.answer(1)
    assert s.values() == [Order("o1", 7)]
    assert s.asked() == [(TOPIC, version(0))]
    s.answer(0)
    assert s.values() == [
        Order("o2", 1),
        Order("o3", 7),
        Order("o4", 1),
        Order("o4", 1),
        Order("o5", 7),
    ]
    assert s.asked() == []


def test_a_message_without_a_version_is_of_the_schema_itself() -> None:
    s = SchemaScript()
    s.order(1, None)
    s.deliver(2, _empty_version(2))
    assert s.asked() == []
    assert s.values() == [Order("o1", 7), Order("o2", 7)]


def _empty_version(entry: int) -> bytes:
    """Return an entry of a producer that writes the version and has no schema."""
    return entry_bytes(payload(entry, 1), schema_version=b"")


def test_a_value_is_decoded_once() -> None:
    s = SchemaScript()
    s.order(1, None)
    (message,) = s.take()
    assert message.value is message.value


def test_a_payload_without_a_value_hurts_its_message_only() -> None:
    """CONS-39: its bytes stay, and it can be acknowledged."""
    s = SchemaScript(acknowledgement_group_time=0.0)
    s.message(1, b"\xff")
    s.order(2, None)
    bad, good = s.take()
    for _ in range(2):
        with pytest.raises(SchemaDecodingError):
            assert bad.value
    assert (bad.data, good.value) == (b"\xff", Order("o2", 7))
    s.frames()
    s.acknowledge(bad)
    s.expect("ACK")


def test_a_version_that_the_broker_does_not_have_hurts_its_messages_only() -> None:
    s = SchemaScript()
    s.order(1, 1)
    s.order(2, 0)
    s.asked()
    s.refuse(ServerError.TopicNotFound)
    (message,) = s.take()
    with pytest.raises(SchemaUnavailable, match=r"version 1 of the schema of .*/t could not be had.*no such"):
        assert message.value
    assert message.data == b"\x04o1\x0e"
    assert s.asked() == [(TOPIC, version(0))]
    s.answer(0)
    assert s.values() == [Order("o2", 1)]
    s.pass_time(SECOND)
    s.order(3, 1)
    assert s.asked() == [(TOPIC, version(1))]
    s.answer(1)
    assert s.values() == [Order("o3", 7)]


def test_a_refused_version_is_asked_for_at_most_once_a_second() -> None:
    """Messages of it are delivered meanwhile, with their bytes."""
    s = SchemaScript()
    s.order(1, 1)
    s.asked()
    s.refuse(ServerError.TopicNotFound)
    for entry in range(2, 5):
        s.order(entry, 1)
        s.orders(entry + 10, 1, 2)
    assert s.asked() == []
    messages = s.take()
    assert len(messages) == 10
    for message in messages:
        with pytest.raises(SchemaUnavailable):
            assert message.value
    s.pass_time(SECOND)
    s.order(20, 1)
    assert s.asked() == [(TOPIC, version(1))]


def test_a_message_of_chunks_is_held_as_a_whole() -> None:
    """SCHEMA-07: its definition is asked for once, with its last chunk, and it is delivered in order."""
    s = SchemaScript()
    data = payload(1, 0)
    for chunk in range(3):
        part = entry_bytes(
            data[chunk : chunk + 1],
            sequence_id=1,
            schema_version=version(0),
            uuid="u",
            num_chunks_from_msg=3,
            chunk_id=chunk,
            total_chunk_msg_size=3,
        )
        s.deliver(chunk, part)
        assert s.asked() == ([(TOPIC, version(0))] if chunk == 2 else [])
        if chunk == 0:
            s.order(10, None)
    s.order(11, None)
    assert s.values() == [Order("o10", 7)]
    s.answer(0)
    assert s.values() == [Order("o1", 1), Order("o11", 7)]


def test_a_key_shared_consumer_holds_messages_of_all_its_keys() -> None:
    """The order of each key is kept, and a message that is delivered is acknowledged meanwhile."""
    s = SchemaScript(subscription_type=SubscriptionType.KEY_SHARED, receiver_queue_size=4)

    def deliver(entry: int, key: str, number: int) -> None:
        fields = {"partition_key": key, "schema_version": version(number)}
        s.deliver(entry, entry_bytes(payload(entry, number), **fields))

    for entry, (key, number) in enumerate([("a", 1), ("b", 0), ("a", 0)]):
        deliver(entry, key, number)
    assert s.asked() == [(TOPIC, version(1))]
    s.answer(1)
    (first,) = s.take()
    assert (first.key, first.value) == ("a", Order("o0", 7))
    s.client.acknowledge(s.now, s.consumer, first)
    deliver(3, "b", 1)
    assert s.take() == []
    assert s.asked() == [(TOPIC, version(0))]
    s.answer(0)
    rest = [(message.key, message.value) for message in s.take()]
    assert rest == [("b", Order("o1", 1)), ("a", Order("o2", 1)), ("b", Order("o3", 7))]


def test_a_broker_that_does_not_answer_delays_its_messages_for_the_operation_timeout() -> None:
    s = SchemaScript()
    s.order(1, 0)
    s.order(2, 0)
    s.asked()
    s.pass_time(29 * SECOND)
    assert s.take() == []
    s.pass_time(2 * SECOND)
    for message in s.take():
        with pytest.raises(SchemaUnavailable, match="not answered within 30 s"):
            assert message.value
    assert s.machine.statistics().messages_received == 2


def test_a_definition_of_another_type_is_not_read() -> None:
    s = SchemaScript()
    s.order(1, 0)
    s.asked()
    answer = proto.CommandGetSchemaResponse(request_id=s.questions[0].request_id)
    answer.schema.name, answer.schema.schema_data = "t", b""
    answer.schema.type = proto.Schema.Json
    s.say("GET_SCHEMA_RESPONSE", answer)
    (message,) = s.take()
    with pytest.raises(SchemaDecodingError, match="schema AVRO: the message was written as JSON"):
        assert message.value


def test_after_a_reconnect_the_broker_delivers_again_and_is_asked_again() -> None:
    s = SchemaScript()
    s.order(1, 0)
    s.asked()
    s.reconnect()
    s.frames()
    assert s.take() == []
    s.order(1, 0)
    assert s.asked() == [(TOPIC, version(0))]
    s.answer(0)
    assert s.values() == [Order("o1", 1)]


def test_a_held_message_of_a_reader_is_read_after_a_reconnect() -> None:
    """CONS-16: the position is behind the delivered messages, and before the held ones."""
    s = SchemaScript(durable=False, start_message_id=EARLIEST)
    s.order(1, None)
    s.order(2, 0)
    s.order(3, None)
    assert s.values() == [Order("o1", 7)]
    subscribe = s.reconnect()
    assert (subscribe.start_message_id.ledgerId, subscribe.start_message_id.entryId) == (1, 1)


def test_permits_come_back_for_held_messages_when_they_are_delivered() -> None:
    s = SchemaScript(receiver_queue_size=4)
    s.order(1, 0)
    s.order(2, 0)
    (question,) = s.expect("GET_SCHEMA")
    s.questions = [question]
    s.answer(0)
    assert len(s.values()) == 2
    (flow,) = s.expect("FLOW")
    assert flow.message_permits == 2


def test_a_queue_of_size_0_asks_for_no_message_while_one_is_held() -> None:
    s = SchemaScript(receiver_queue_size=0)
    assert s.receive() is None
    s.expect("FLOW")
    s.order(1, 0)
    s.questions = s.expect("GET_SCHEMA")
    assert s.receive() is None
    s.client.receiver(s.consumer).want()
    s.expect()
    s.answer(0)
    assert s.receive().value == Order("o1", 1)


def test_a_queue_of_size_0_asks_for_no_second_message_when_it_is_resumed() -> None:
    """FLOW-13: the message that is held is the one that the application waits for."""
    s = SchemaScript(receiver_queue_size=0)
    assert s.receive() is None
    s.expect("FLOW")
    s.order(1, 0)
    s.questions = s.expect("GET_SCHEMA")
    s.client.pause(s.now, s.consumer)
    s.client.resume(s.now, s.consumer)
    s.expect()
    s.answer(0)
    assert s.receive().value == Order("o1", 1)


@pytest.mark.parametrize("dropped", ["connection", "message"])
def test_a_queue_of_size_0_asks_again_when_the_held_message_is_gone(dropped: str) -> None:
    """The application still waits for a message and was told of none."""
    s = SchemaScript(receiver_queue_size=0)
    assert s.receive() is None
    s.order(1, 0)
    s.frames()
    if dropped == "connection":
        s.reconnect()
    else:
        s.machine.queue.remove([(1, 1)])
    (flow,) = s.expect("FLOW")
    assert flow.message_permits == 1


def test_messages_behind_a_held_one_that_is_dropped_are_deliverable() -> None:
    """The application may have acknowledged the held message by an earlier delivery of it."""
    s = SchemaScript()
    s.order(1, 0)
    s.order(2, None)
    s.asked()
    assert s.outputs() == []
    s.machine.queue.remove([(1, 1)])
    assert s.outputs() == [Deliverable(s.consumer)]
    assert s.values() == [Order("o2", 7)]


def test_a_batch_that_was_dropped_before_it_was_taken_leaves_the_next_request_its_turn() -> None:
    s = SchemaScript(batch_receive=BatchReceivePolicy(max_messages=1, timeout=0.0))
    s.client.batch_receive(s.now, s.consumer)
    s.order(1, None)
    s.outputs()
    s.machine.queue.remove([(1, 1)])
    s.order(2, 0)
    s.asked()
    assert s.take() == []
    request = s.client.batch_receive(s.now, s.consumer)
    s.answer(0)
    assert RequestDone(request, None) in s.outputs()


def test_held_messages_that_are_requested_again_are_dropped() -> None:
    s = SchemaScript()
    s.order(1, None)
    s.order(2, 0)
    s.order(3, 1)
    s.asked()
    s.redeliver()
    assert s.take() == []
    s.answer(0)
    assert s.take() == []


def test_a_message_keeps_its_value_in_a_pickle() -> None:
    s = SchemaScript()
    s.order(1, 0)
    s.asked()
    s.answer(0)
    s.deliver(2, _empty_version(2))
    copies = pickle.loads(pickle.dumps(list(s.take())))
    assert [(copy.value, copy.schema_version) for copy in copies] == [
        (Order("o1", 1), version(0)),
        (Order("o2", 7), None),
    ]


def test_auto_consume_reads_each_message_by_its_own_definition() -> None:
    """SCHEMA-06"""
    s = SchemaScript(AutoConsume())
    s.order(1, 0)
    s.asked()
    s.answer(0)
    s.message(2, b"bytes")
    assert s.values() == [{"id": "o1"}, b"bytes"]


def test_auto_consume_reads_pairs_whose_key_is_the_message_key() -> None:
    """SCHEMA-09: the definition says where the key is; a null value has a key, too."""
    pairs = KeyValueSchema(STRING, STRING)
    s = SchemaScript(AutoConsume())
    header = {"schema_version": version(0), "partition_key": "aw==", "partition_key_b64_encoded": True}
    s.deliver(1, entry_bytes(b"v", **header))
    s.deliver(2, entry_bytes(b"", null_value=True, **header))
    s.asked()
    s.answer_with(pairs.info)
    messages = s.take()
    assert [message.value for message in messages] == [KeyValue("k", "v"), KeyValue("k", None)]
    assert pickle.loads(pickle.dumps(messages[0])).value == KeyValue("k", "v")


def test_pairs_with_a_broken_definition_have_no_value() -> None:
    s = SchemaScript(AutoConsume())
    s.deliver(1, entry_bytes(b"v", schema_version=version(0)))
    s.asked()
    s.answer_with(SchemaInfo(SchemaType.KEY_VALUE, data=b"\0"))
    (message,) = s.take()
    with pytest.raises(SchemaDecodingError, match="no length at byte 0"):
        assert message.value


def test_a_schema_that_needs_no_definition_asks_for_none() -> None:
    s = ConsumerScript(schema=STRING)
    assert s.accept().schema.type == proto.Schema.String
    s.frames()
    s.message(1, "é".encode())
    assert [message.value for message in s.take()] == ["é"]
    s.expect()


@pytest.mark.parametrize(("protocol_version", "sent"), [(20, False), (21, True)])
def test_auto_consume_is_sent_to_brokers_that_know_it(protocol_version: int, sent: bool) -> None:
    """WIRE-21"""
    s = ConsumerScript(protocol_version=protocol_version, schema=AutoConsume())
    ((name, question),) = s.frames()[-1:]
    assert name == "GET_SCHEMA"
    error: Any = ServerError.TopicNotFound
    s.say(
        "GET_SCHEMA_RESPONSE",
        proto.CommandGetSchemaResponse(request_id=question.request_id, error_code=error),
    )
    assert s.accept().HasField("schema") is sent


def test_a_refused_schema_fails_the_consumer() -> None:
    """SCHEMA-11: no second attempt is made."""
    s = ConsumerScript(schema=NEW)
    (subscribe,) = s.expect("SUBSCRIBE")
    error: Any = ServerError.IncompatibleSchema
    s.say("ERROR", proto.CommandError(request_id=subscribe.request_id, error=error, message="differs"))
    failed = s.outputs()[0]
    assert isinstance(failed, ConsumerFailed)
    assert isinstance(failed.error, IncompatibleSchema)
    s.pass_time(10 * SECOND)
    assert s.frames() == []


def test_a_schema_is_a_schema() -> None:
    schema: Any = Old
    with pytest.raises(InvalidConfiguration, match="a Schema or None"):
        ConsumerSpec("t", "s", schema=schema)
    ConsumerSpec("t", "s", schema=JsonSchema(Old))
