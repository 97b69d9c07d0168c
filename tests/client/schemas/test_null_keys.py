"""The null key of a pair in SEPARATED: its field on the wire, there and back."""

from typing import Any

import pytest

from pulsar_sansio.model.config import NULL_KEY, BatchingPolicy, OutgoingMessage, ProducerSpec
from pulsar_sansio.schemas import INT32, STRING, KeyValue, KeyValueSchema, message_of
from pulsar_sansio.wire import SingleMessageMetadata, encode_single, split_batch, unpack_payload
from tests.client.broker_script import entry_bytes
from tests.client.producing.sender import Sender
from tests.client.schemas.schema_script import SchemaScript

PAIRS = KeyValueSchema(STRING, INT32)


def sent(batching: BatchingPolicy | None, *messages: OutgoingMessage) -> list[Any]:
    """Return the metadata of each message, of the entry or within the batch."""
    sender = Sender(spec=ProducerSpec("demo", batching=batching))
    for message in messages:
        sender.send(message)
    sender.script.client.push(sender.script.now, sender.handle)
    entries = [unpack_payload(send.payload) for send in sender.sent()]
    if batching is None:
        return [entry[-2] for entry in entries]
    (entry,) = entries
    batch = split_batch(entry[-1], len(messages))
    return [batch.single(index) for index in range(len(messages))]


@pytest.mark.parametrize("batching", [None, BatchingPolicy()], ids=["alone", "batched"])
def test_a_null_key_has_a_field_of_its_own(batching: BatchingPolicy | None) -> None:
    """SCHEMA-09: a message without a key, and one with an empty key, do not have it."""
    found = sent(
        batching,
        OutgoingMessage(b"\0\0\0\7", key=NULL_KEY, properties={"a": "b"}),
        OutgoingMessage(None, key=NULL_KEY),
        OutgoingMessage(b"\0\0\0\7"),
        OutgoingMessage(b"\0\0\0\7", key=b""),
    )
    assert [(each.null_partition_key, each.partition_key) for each in found] == [
        (True, None),
        (True, None),
        (False, None),
        (False, ""),
    ]
    assert [each.null_value for each in found] == [False, True, False, False]


@pytest.mark.parametrize("key", [None, "", "k"])
def test_the_key_of_a_pair_is_that_of_its_message(key: str | None) -> None:
    message = message_of(KeyValue(key, 7), KeyValueSchema[Any, int](STRING, INT32))
    assert (message.has_null_key, message.key) == (key is None, {None: None, "": "", "k": "aw=="}[key])


@pytest.mark.parametrize("batched", [False, True], ids=["alone", "batched"])
def test_a_null_key_is_received(batched: bool) -> None:
    """SCHEMA-09: the field is that of Java's `setNullPartitionKey`; an empty key is none."""
    consumer = SchemaScript(PAIRS)
    keys: list[dict[str, Any]] = [{"null_partition_key": True}, {"partition_key": ""}]
    for entry, key in enumerate(keys):
        if batched:
            member = encode_single(SingleMessageMetadata(sequence_id=entry, **key), b"\0\0\0\7")
            consumer.deliver(entry, entry_bytes(member, num_messages_in_batch=1))
        else:
            consumer.deliver(entry, entry_bytes(b"\0\0\0\7", **key))
    assert consumer.values() == [KeyValue(None, 7), KeyValue("", 7)]
