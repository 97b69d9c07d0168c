"""Messages whose schema is not the producer's: registered once, in order with the others (exchange 23)."""

from typing import Any

import pytest

from pulsar_sansio.client.outputs import Closed, Receipts, RequestDone, RequestFailed, SendFailed
from pulsar_sansio.client.producing.message_schemas import MAX_VERSIONS
from pulsar_sansio.model.config import BatchingPolicy, OutgoingMessage, ProducerSpec
from pulsar_sansio.model.errors import (
    IncompatibleSchema,
    InvalidMessage,
    NotSupported,
    ServerError,
    TimedOut,
)
from pulsar_sansio.model.schema import Schema
from pulsar_sansio.schemas import (
    BYTES,
    INT32,
    INT64,
    STRING,
    AutoConsume,
    AutoPublish,
    JsonSchema,
    KeyValue,
    KeyValueEncoding,
    KeyValueSchema,
    message_of,
)
from pulsar_sansio.wire import encode_command, proto, unpack_payload
from tests.client.script import (
    WALL,
    Command,
    Script,
    frame_error,
    frame_producer_success,
    frame_receipt,
    kinds,
)

OWN, FOUR, FIVE = ((number).to_bytes(8, "big") for number in (3, 4, 5))
LONE: dict[str, Any] = {"batching": None}


class Sender:
    """An open producer, and what the broker gets of it."""

    def __init__(self, *, version: int = 21, opened: bool = True, **options: Any) -> None:
        self.script = Script()
        spec = ProducerSpec("demo", **{"schema": STRING, **LONE, **options})
        self.handle = self.script.client.open_producer(self.script.now, spec)
        if opened:
            self.attach(version)

    def attach(self, version: int = 21) -> None:
        self.link = self.script.ready_link(version=version)
        if not self.script.client.producer_statistics(self.handle).messages_sent and self.link == 1:
            self.script.check_partitions(self.link)
        self.script.find_topic(self.link)
        asked = self.script.sent(self.link, Command.PRODUCER)
        self.script.feed(self.link, frame_producer_success(asked.request_id, schema_version=OWN))
        self.script.said()

    def reattach(self) -> None:
        self.script.lose(self.link)
        self.script.said()
        self.script.advance(1)
        self.attach()

    def send(self, *messages: bytes | OutgoingMessage) -> None:
        for message in messages:
            self.script.client.send(self.script.now, self.handle, message, WALL)
        self.script.drain()

    def asked(self) -> Any:
        """Return the one frame that the producer wrote: GET_OR_CREATE_SCHEMA."""
        return self.script.sent(self.link, Command.GET_OR_CREATE_SCHEMA)

    def answer(self, asked: Any, version: bytes = FOUR) -> None:
        answer = proto.CommandGetOrCreateSchemaResponse(request_id=asked.request_id, schema_version=version)
        self.script.feed(self.link, encode_command(Command.GET_OR_CREATE_SCHEMA_RESPONSE, answer))

    def refuse(self, asked: Any, code: int = ServerError.IncompatibleSchema, text: str = "no") -> None:
        answer = proto.CommandGetOrCreateSchemaResponse(
            request_id=asked.request_id,
            error_code=code,  # type: ignore[arg-type]
            error_message=text,
        )
        self.script.feed(self.link, encode_command(Command.GET_OR_CREATE_SCHEMA_RESPONSE, answer))

    def entries(self) -> list[tuple[int, bytes, bytes | None]]:
        """Return sequence id, payload and schema version of the SENDs since the last call."""
        found = []
        for number, command in self.script.commands(self.link):
            if number == Command.PING:
                continue
            assert number == Command.SEND
            *_, metadata, payload = unpack_payload(command.payload)
            found.append((command.sequence_id, bytes(payload), metadata.schema_version))
        return found


def number(value: int, schema: Schema[int] = INT32) -> OutgoingMessage:
    return message_of(value, schema)


def test_a_schema_is_registered_before_its_first_message_and_once() -> None:
    """SCHEMA-08: messages behind it wait, and none overtakes another."""
    sender = Sender()
    sender.send(b"a")
    assert sender.entries() == [(0, b"a", OWN)]
    sender.send(number(1), b"b", number(2))
    asked = sender.asked()
    assert (asked.topic, asked.schema.type) == ("persistent://public/default/demo", proto.Schema.Int32)
    sender.answer(asked)
    assert sender.entries() == [
        (1, b"\0\0\0\1", FOUR),
        (2, b"b", OWN),
        (3, b"\0\0\0\2", FOUR),
    ]
    sender.send(number(3), b"c")
    assert sender.entries() == [(4, b"\0\0\0\3", FOUR), (5, b"c", OWN)]


def test_schemas_are_registered_one_after_the_other() -> None:
    sender = Sender()
    sender.send(number(1), number(2, INT64), number(3))
    sender.answer(sender.asked())
    first, second = sender.script.commands(sender.link)
    assert (first[0], second[0]) == (Command.SEND, Command.GET_OR_CREATE_SCHEMA)
    assert second[1].schema.type == proto.Schema.Int64
    sender.answer(second[1], FIVE)
    assert [version for _, _, version in sender.entries()] == [FIVE, FOUR]


def test_equal_schemas_are_one_schema() -> None:
    definition = {"type": "record", "name": "Order", "fields": []}
    sender = Sender()
    sender.send(message_of({}, JsonSchema(definition=definition)))
    sender.answer(sender.asked())
    sender.entries()
    sender.send(message_of({}, JsonSchema(definition=definition)))
    assert [version for _, _, version in sender.entries()] == [FOUR]


@pytest.mark.parametrize("schema", [None, STRING], ids=["bytes", "STRING"])
def test_messages_of_bytes_have_no_version_and_ask_nothing(schema: Any) -> None:
    sender = Sender(schema=schema)
    sender.send(OutgoingMessage(b"x", schema=BYTES))
    assert sender.entries() == [(0, b"x", None)]


def test_a_batch_has_one_schema() -> None:
    """BATCH-04: messages of another schema begin another batch."""
    sender = Sender(batching=BatchingPolicy(max_delay=1.0))
    sender.send(b"a", b"b", number(1), number(2), b"c", b"d")
    batch, asked = sender.script.commands(sender.link)
    assert unpack_payload(batch[1].payload)[-2].num_messages_in_batch == 2
    sender.answer(asked[1])
    sender.script.client.push(sender.script.now, sender.handle)
    found = [unpack_payload(command.payload)[-2] for _, command in sender.script.commands(sender.link)]
    assert [(each.num_messages_in_batch, each.schema_version) for each in found] == [(2, FOUR), (2, OWN)]
    sender.send(b"e", number(3), b"f")
    sender.script.client.push(sender.script.now, sender.handle)
    assert [version for *_, version in sender.entries()] == [OWN, FOUR, OWN]


def test_messages_that_wait_for_a_version_are_sent_at_once_where_they_were_pushed() -> None:
    """PROD-28: their batch waits for no others, and may have some behind them."""
    sender = Sender(batching=BatchingPolicy(max_delay=60.0))

    def push() -> None:
        sender.script.client.push(sender.script.now, sender.handle)
        sender.script.drain()

    sender.send(number(1), number(2))
    push()
    push()
    sender.send(number(3))
    push()
    sender.send(number(4))
    asked = sender.asked()
    sender.answer(asked)
    (command,) = [command for _, command in sender.script.commands(sender.link)]
    assert unpack_payload(command.payload).metadata.num_messages_in_batch == 4


def test_messages_that_were_pushed_are_sent_though_one_of_them_is_refused() -> None:
    sender = Sender(batching=BatchingPolicy(max_delay=60.0))
    sender.send(number(1), b"a", number(2))
    sender.script.client.push(sender.script.now, sender.handle)
    sender.script.drain()
    sender.refuse(sender.asked())
    [(_, _, version)] = sender.entries()
    assert version == OWN


def test_batches_by_key_have_one_schema() -> None:
    sender = Sender(batching=BatchingPolicy(max_delay=1.0, by_key=True))
    sender.send(message_of(1, INT32, key="k"))
    sender.answer(sender.asked())
    sender.send(message_of(2, INT32, key="k"), OutgoingMessage(b"own", key="k"))
    sender.script.client.push(sender.script.now, sender.handle)
    assert [version for *_, version in sender.entries()] == [FOUR, OWN]


def test_chunks_have_the_version_of_their_message() -> None:
    sender = Sender(chunking=True, chunk_max_message_size=3)
    sender.send(OutgoingMessage(b"123456", schema=INT32))
    sender.answer(sender.asked())
    assert [version for *_, version in sender.entries()] == [FOUR, FOUR]


def test_a_refused_schema_fails_its_messages_alone() -> None:
    """ERR-15"""
    sender = Sender()
    sender.send(number(1), b"a", number(2), number(3, INT64))
    sender.refuse(sender.asked(), text="type INT32 after STRING, strategy FULL")
    own, asked = sender.script.commands(sender.link)
    assert (own[1].sequence_id, asked[1].schema.type) == (0, proto.Schema.Int64)
    failed = [output for output in sender.script.said() if isinstance(output, SendFailed)]
    assert [(output.first, output.count) for output in failed] == [(0, 1), (2, 1)]
    assert all(isinstance(output.error, IncompatibleSchema) for output in failed)
    assert "strategy FULL" in str(failed[0].error)
    sender.send(number(4))
    sender.answer(asked[1], FIVE)
    again = sender.script.commands(sender.link)[-1]
    assert again[1].schema.type == proto.Schema.Int32, "the next message asks anew"


def test_a_topic_that_the_broker_has_not_loaded_gives_no_version() -> None:
    sender = Sender()
    sender.send(number(1))
    sender.refuse(sender.asked(), ServerError.TopicNotFound)
    assert sender.entries() == [(0, b"\0\0\0\1", None)]


def test_a_failure_that_may_pass_is_asked_again() -> None:
    sender = Sender()
    sender.send(number(1))
    sender.refuse(sender.asked(), ServerError.ServiceNotReady)
    assert sender.script.commands(sender.link) == []
    sender.script.advance(1)
    sender.answer(sender.asked())
    assert sender.entries() == [(0, b"\0\0\0\1", FOUR)]


def test_a_broker_that_does_not_answer_fails_the_messages() -> None:
    sender = Sender(send_timeout=0)
    sender.send(number(1), b"a")
    sender.asked()
    sender.script.advance(31)
    failed = sender.script.expect_one(SendFailed)
    assert (failed.first, failed.count) == (0, 1)
    assert isinstance(failed.error, TimedOut)
    assert [payload for _, payload, _ in sender.entries()] == [b"a"]


def test_messages_that_wait_for_a_version_time_out_as_others_do() -> None:
    """PROD-47: all messages fail when the first one is as old as the send timeout, though the operation
    timeout is longer. The answer that comes then is kept for no message."""
    sender = Sender(send_timeout=5.0)
    sender.send(number(1))
    asked = sender.asked()
    sender.script.advance(2)
    sender.send(b"a", number(2, INT64))
    sender.script.advance(2.9)
    assert [output for output in sender.script.said() if isinstance(output, SendFailed)] == []
    sender.script.advance(0.2)
    failed = sender.script.expect_one(SendFailed)
    assert (failed.first, failed.count) == (0, 3)
    assert isinstance(failed.error, TimedOut)
    sender.answer(asked)
    sender.send(b"b")
    assert [payload for _, payload, _ in sender.entries()] == [b"b"]


def test_the_send_timeout_of_each_message_counts_from_its_own_sending() -> None:
    """PROD-47"""
    sender = Sender(send_timeout=5.0)
    sender.send(number(1))
    sender.script.advance(4)
    sender.send(number(2, INT64))
    sender.answer(sender.asked())
    sender.script.advance(4)
    assert [output for output in sender.script.said() if isinstance(output, SendFailed)] == []
    sender.script.advance(1.1)
    failed = [output for output in sender.script.said() if isinstance(output, SendFailed)]
    assert [(output.first, output.count) for output in failed] == [(0, 1), (1, 1)]


def test_the_send_timeout_of_early_messages_counts_from_the_opening() -> None:
    """PROD-48"""
    sender = Sender(send_timeout=5.0, opened=False)
    sender.send(number(1))
    sender.script.advance(4)
    sender.attach()
    sender.script.advance(4.9)
    assert [output for output in sender.script.said() if isinstance(output, SendFailed)] == []
    sender.script.advance(0.2)
    assert isinstance(sender.script.expect_one(SendFailed).error, TimedOut)


def test_an_older_broker_takes_one_schema_only() -> None:
    sender = Sender(version=14)
    sender.send(number(1), b"a")
    failed = sender.script.expect_one(SendFailed)
    assert isinstance(failed.error, NotSupported)
    assert sender.entries() == [(0, b"a", OWN)]


def test_after_a_reconnect_the_schema_is_asked_for_again_and_entries_keep_their_order() -> None:
    """PROD-46"""
    sender = Sender()
    sender.send(b"a", number(1), b"b")
    sender.script.commands(sender.link)
    sender.reattach()
    sent, asked = sorted(sender.script.commands(sender.link))
    assert (sent[0], sent[1].sequence_id) == (Command.SEND, 0)
    sender.answer(asked[1])
    assert [sequence_id for sequence_id, _, _ in sender.entries()] == [1, 2]


def test_a_version_outlives_the_connection() -> None:
    sender = Sender()
    sender.send(number(1))
    sender.answer(sender.asked())
    assert sender.entries()
    sender.script.feed(sender.link, frame_receipt(0))
    sender.reattach()
    sender.send(number(2))
    assert [version for *_, version in sender.entries()] == [FOUR]


def test_messages_that_are_sent_before_the_producer_is_open() -> None:
    script = Script()
    handle = script.client.open_producer(script.now, ProducerSpec("demo", schema=STRING, **LONE))
    for message in (b"a", number(1), b"b"):
        script.client.send(script.now, handle, message, WALL)
    sender = Sender.__new__(Sender)
    sender.script, sender.handle = script, handle
    sender.attach()
    first, asked = script.commands(sender.link)
    assert (first[0], asked[0]) == (Command.SEND, Command.GET_OR_CREATE_SCHEMA)
    sender.answer(asked[1])
    assert [(payload, version) for _, payload, version in sender.entries()] == [
        (b"\0\0\0\1", FOUR),
        (b"b", OWN),
    ]


def test_a_flush_waits_for_messages_that_are_held() -> None:
    sender = Sender()
    sender.send(number(1))
    request = sender.script.client.flush(sender.script.now, sender.handle)
    asked = sender.asked()
    assert sender.script.said() == []
    sender.answer(asked)
    sender.entries()
    sender.script.feed(sender.link, frame_receipt(0))
    assert kinds(sender.script.said()) == ["Receipts", "RequestDone"]
    sender.send(number(2, INT64))
    failing = sender.script.client.flush(sender.script.now, sender.handle)
    sender.refuse(sender.asked())
    said = sender.script.said()
    assert [output.request for output in said if isinstance(output, RequestFailed)] == [failing]
    assert not [output for output in said if isinstance(output, RequestDone) and output.request == request]


def test_a_timeout_of_earlier_messages_fails_those_that_are_held() -> None:
    """PROD-26: and the producer goes on afterwards."""
    sender = Sender(send_timeout=5.0)
    sender.send(b"a", number(1), b"b")
    sender.script.commands(sender.link)
    sender.script.advance(6)
    failed = [output for output in sender.script.said() if isinstance(output, SendFailed)]
    assert sum(output.count for output in failed) == 3
    sender.send(number(2, INT64), b"c")
    sender.answer(sender.asked())
    assert [payload for _, payload, _ in sender.entries()] == [(2).to_bytes(8, "big"), b"c"]
    sender.send(b"d")
    assert [payload for _, payload, _ in sender.entries()] == [b"d"]


def test_closing_fails_messages_that_are_held() -> None:
    sender = Sender()
    sender.send(number(1))
    asked = sender.asked()
    sender.script.client.close(sender.script.now, sender.handle)
    sender.script.expect_one(SendFailed)
    sender.answer(asked)
    closing = sender.script.sent(sender.link, Command.CLOSE_PRODUCER)
    sender.script.feed(sender.link, frame_error(closing.request_id, ServerError.UnknownError))
    assert [type(output) for output in sender.script.said()][:1] == [Closed]


def test_a_producer_keeps_a_bounded_number_of_versions() -> None:
    sender = Sender()
    for each in range(MAX_VERSIONS + 1):
        definition = {"type": "record", "name": f"R{each}", "fields": []}
        sender.send(message_of({}, JsonSchema(definition=definition)))
        sender.answer(sender.asked())
        sender.entries()
        sender.script.feed(sender.link, frame_receipt(each))
    sender.script.said()
    sender.send(message_of({}, JsonSchema(definition={"type": "record", "name": "R1", "fields": []})))
    assert sender.entries()
    sender.send(message_of({}, JsonSchema(definition={"type": "record", "name": "R0", "fields": []})))
    sender.asked()


def test_an_explanation_names_the_schema() -> None:
    sender = Sender()
    sender.send(message_of({}, JsonSchema(definition={"type": "record", "name": "Order", "fields": []})))
    text = sender.script.client.explain(sender.script.now, sender.handle)
    assert "messages wait until the broker has registered schema JSON" in text


def test_receipts_have_the_tickets_of_all_messages() -> None:
    sender = Sender()
    sender.send(number(1), b"a")
    sender.answer(sender.asked())
    sender.entries()
    sender.script.feed(sender.link, frame_receipt(0), frame_receipt(1))
    receipts = [output for output in sender.script.said() if isinstance(output, Receipts)]
    assert [(output.first, len(output.message_ids)) for output in receipts] == [(0, 2)]


# --- messages of values ---


def test_a_value_with_a_key_of_its_own() -> None:
    schema = KeyValueSchema(STRING, INT32, KeyValueEncoding.SEPARATED)
    message = message_of(KeyValue("k", 1), schema, properties={"a": "b"})
    assert (message.payload, message.schema, message.properties) == (b"\0\0\0\1", schema, {"a": "b"})
    assert message.key is not None
    with pytest.raises(InvalidMessage, match="give no other one"):
        message_of(KeyValue("k", 1), schema, key="other")


def test_a_null_value() -> None:
    assert message_of(None, INT32).payload is None


@pytest.mark.parametrize("schema", [AutoPublish(), AutoConsume()], ids=["AutoPublish", "AutoConsume"])
def test_a_schema_without_a_definition_is_none_of_a_message(schema: Any) -> None:
    with pytest.raises(InvalidMessage, match="no definition"):
        OutgoingMessage(b"x", schema=schema)


def test_the_schema_of_a_message_is_a_schema() -> None:
    with pytest.raises(InvalidMessage, match="a Schema or None, not type"):
        OutgoingMessage(b"x", schema=str)  # type: ignore[arg-type]
