"""Actions of producers."""

from typing import Any

from pulsar_sansio.wire import (
    MessageMetadata,
    Send,
    SingleMessageMetadata,
    encode_message_metadata,
    encode_single,
    pack_payload,
    proto,
)
from tests.differential.generator.asking import administer, schema
from tests.differential.generator.script import OpenProducer, Script, Sent
from tests.differential.steps import NAMESPACE, SYMBOL, Pause

Type = proto.BaseCommand.Type
Mode = proto.ProducerAccessMode

PUBLISHED = 1_700_000_000_000
"""The publish time of the first message, in milliseconds since 1970; the others follow by seconds."""


def open_producer(script: Script, **fields: Any) -> None:
    connection, producer_id = script.connection(), script.new_id()
    name = script.random.choice([None, f"p{producer_id}", f"p{producer_id}", "shared-name"])
    where = fields.pop("topic", script.topic())
    script.find(connection, where)
    script.frame(
        connection,
        Type.PRODUCER,
        proto.CommandProducer(
            topic=where,
            producer_id=producer_id,
            request_id=script.request(),
            producer_name=name,
            user_provided_producer_name=name is not None,
            **fields,
        ),
    )
    script.producers.append(OpenProducer(connection, producer_id, where, name))


def producer_with_access_mode(script: Script) -> None:
    mode = script.random.choice(
        [Mode.Shared, Mode.Exclusive, Mode.WaitForExclusive, Mode.ExclusiveWithFencing]
    )
    open_producer(script, producer_access_mode=mode)


def producer_with_topic_epoch(script: Script) -> None:
    open_producer(
        script,
        producer_access_mode=script.random.choice([Mode.Exclusive, Mode.ExclusiveWithFencing]),
        topic_epoch=script.random.randint(0, 3),
    )


def producer_with_schema(script: Script) -> None:
    open_producer(script, schema=schema(script))


def producer_with_subscription(script: Script) -> None:
    open_producer(script, initial_subscription_name=script.random.choice(["s", "initial"]))


def producer_again(script: Script) -> None:
    """Open the same producer once more, as a client does that has lost the answer."""
    known = script.one_of(script.producers, open_producer)
    script.frame(
        known.connection,
        Type.PRODUCER,
        proto.CommandProducer(
            topic=known.topic,
            producer_id=known.producer_id,
            request_id=script.request(),
            producer_name=known.name,
            epoch=script.random.choice([0, 1]),
        ),
    )


def close_producer(script: Script) -> None:
    known = script.one_of(script.producers, open_producer)
    script.producers.remove(known)
    script.frame(
        known.connection,
        Type.CLOSE_PRODUCER,
        proto.CommandCloseProducer(producer_id=known.producer_id, request_id=script.request()),
    )


def send(script: Script, size: int = 1, transaction: int | None = None, **fields: Any) -> None:
    producer = script.one_of(script.producers, open_producer)
    key = (producer.connection, producer.producer_id)
    sequence_id = fields.pop("sequence_id", script.sequence_ids.get(key, 0))
    script.sequence_ids[key] = sequence_id + size
    index = len(script.sent)
    metadata = MessageMetadata(
        producer.name or "generated", sequence_id, PUBLISHED + index * 1000, **fields.pop("metadata", {})
    )
    payload = b"m%d" % index
    if size > 1:
        metadata.num_messages_in_batch = size
        payload = b"".join(
            encode_single(SingleMessageMetadata(sequence_id=sequence_id + place), b"m%d.%d" % (index, place))
            for place in range(size)
        )
    most = least = None
    if transaction is not None:
        most, least = SYMBOL + transaction, 0
        metadata.txnid_most_bits, metadata.txnid_least_bits = most, least
    script.frame(
        producer.connection,
        Type.SEND,
        Send(
            producer.producer_id,
            sequence_id,
            size,
            sequence_id + size - 1 if size > 1 else None,
            least,
            most,
            payload=b"".join(pack_payload(encode_message_metadata(metadata), payload)),
            **fields,
        ),
    )
    script.sent.append(Sent(index, producer.topic, size))


def send_batch(script: Script) -> None:
    send(script, script.random.choice([2, 3, 5]))


def send_with_key(script: Script) -> None:
    send(script, metadata={"partition_key": script.random.choice("abcdefgh")})


def send_again(script: Script) -> None:
    """Send a sequence id once more."""
    send(script, sequence_id=script.random.randint(0, 3))


def send_delayed(script: Script) -> None:
    send(script, metadata={"deliver_at_time": 2500})


def pause(script: Script) -> None:
    script.steps.append(Pause(4.0))


def deduplicate(script: Script) -> None:
    administer(script, "deduplicate", NAMESPACE)
