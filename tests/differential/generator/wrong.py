"""Actions that a client should not take: unknown ids, wrong names, a second CONNECT."""

from pulsar_sansio.wire import (
    CUMULATIVE,
    INDIVIDUAL,
    Ack,
    Flow,
    MessageMetadata,
    Send,
    encode_message_metadata,
    pack_payload,
    proto,
)
from tests.differential.generator.consuming import acknowledge_ids, subscribe
from tests.differential.generator.producing import open_producer
from tests.differential.generator.script import Script, Sent
from tests.differential.steps import NAMESPACE, SYMBOL

Type = proto.BaseCommand.Type
SubType = proto.CommandSubscribe.SubType


def wrong_producer_id(script: Script) -> None:
    connection = script.connection()
    script.frame(
        connection,
        Type.SEND,
        Send(
            99,
            0,
            payload=b"".join(pack_payload(encode_message_metadata(MessageMetadata("x", 0, 1)), b"x")),
        ),
    )
    script.sent.append(Sent(len(script.sent), "", 1))
    script.lose(connection)


def wrong_checksum(script: Script) -> None:
    producer = script.one_of(script.producers, open_producer)
    packed = b"".join(pack_payload(encode_message_metadata(MessageMetadata("x", 0, 1)), b"x"))
    sequence_id = 1000 + len(script.sent)
    script.frame(
        producer.connection,
        Type.SEND,
        Send(producer.producer_id, sequence_id, payload=packed[:-1] + b"y"),
    )
    script.sent.append(Sent(len(script.sent), producer.topic, 1))


def unknown_consumer(script: Script) -> None:
    connection, request_id = script.connection(), script.request()
    number, command = script.random.choice(
        [
            (Type.FLOW, Flow(99, 1)),
            (Type.ACK, Ack(99, INDIVIDUAL, [(0, 1, None)])),
            (Type.ACK, Ack(99, INDIVIDUAL, [(0, 1, None)], request_id=request_id)),
            (Type.SEEK, proto.CommandSeek(consumer_id=99, request_id=request_id, message_publish_time=1)),
            (Type.UNSUBSCRIBE, proto.CommandUnsubscribe(consumer_id=99, request_id=request_id)),
            (Type.CLOSE_CONSUMER, proto.CommandCloseConsumer(consumer_id=99, request_id=request_id)),
            (Type.CLOSE_PRODUCER, proto.CommandCloseProducer(producer_id=99, request_id=request_id)),
            (
                Type.GET_LAST_MESSAGE_ID,
                proto.CommandGetLastMessageId(consumer_id=99, request_id=request_id),
            ),
            (
                Type.REDELIVER_UNACKNOWLEDGED_MESSAGES,
                proto.CommandRedeliverUnacknowledgedMessages(consumer_id=99),
            ),
        ]
    )
    script.frame(connection, number, command)


def no_permits(script: Script) -> None:
    consumer = script.one_of(script.consumers, subscribe)
    script.frame(consumer.connection, Type.FLOW, Flow(consumer.consumer_id, 0))
    script.lose(consumer.connection)


def unknown_positions(script: Script) -> None:
    wrong = [(0, 1, None), (SYMBOL, 1000, None), (SYMBOL + 1000, 0, None)]
    acknowledge_ids(script, script.random.choice([INDIVIDUAL, CUMULATIVE]), [script.random.choice(wrong)])


def seek_to_unknown(script: Script) -> None:
    consumer = script.one_of(script.consumers, subscribe)
    command = proto.CommandSeek(consumer_id=consumer.consumer_id, request_id=script.request())
    if script.random.random() < 0.7:
        ledger_id, entry_id = script.random.choice([(0, 1), (SYMBOL, 1000)])
        command.message_id.ledgerId, command.message_id.entryId = ledger_id, entry_id
    script.frame(consumer.connection, Type.SEEK, command)


def subscribe_again(script: Script) -> None:
    """Open the same consumer once more."""
    known = script.one_of(script.consumers, subscribe)
    script.frame(
        known.connection,
        Type.SUBSCRIBE,
        proto.CommandSubscribe(
            topic=known.topic,
            subscription=known.subscription,
            subType=known.kind,
            consumer_id=known.consumer_id,
            request_id=script.request(),
            consumer_name=f"c{known.consumer_id}",
        ),
    )
    script.wait_failover([known])


def other_kind(script: Script) -> None:
    """Subscribe to an open subscription with another type."""
    known = script.one_of(script.consumers, subscribe)
    subscribe(
        script,
        topic=known.topic,
        subscription=known.subscription,
        kind=script.random.choice([SubType.Exclusive, SubType.Shared, SubType.Key_Shared]),
    )


def wrong_names(script: Script) -> None:
    name = script.random.choice(
        [
            "persistent://public/nowhere/t",
            "persistent://nobody/default/t",
            f"other://{NAMESPACE}/t",
            f"persistent://{NAMESPACE}/",
            f"persistent://{NAMESPACE}/p-partition-7",
            "a/b/c/d/e",
            "",
        ]
    )
    connection, request_id = script.connection(), script.request()
    number, command = script.random.choice(
        [
            (
                Type.PRODUCER,
                proto.CommandProducer(topic=name, producer_id=script.new_id(), request_id=request_id),
            ),
            (
                Type.SUBSCRIBE,
                proto.CommandSubscribe(
                    topic=name,
                    subscription="s",
                    subType=SubType.Shared,
                    consumer_id=script.new_id(),
                    request_id=request_id,
                ),
            ),
            (Type.LOOKUP, proto.CommandLookupTopic(topic=name, request_id=request_id)),
            (
                Type.PARTITIONED_METADATA,
                proto.CommandPartitionedTopicMetadata(topic=name, request_id=request_id),
            ),
            (Type.GET_SCHEMA, proto.CommandGetSchema(topic=name, request_id=request_id)),
        ]
    )
    script.frame(connection, number, command)


def wrong_subscription(script: Script) -> None:
    subscribe(script, subscription=script.random.choice(["", " ", "pulsar.dedup", "pulsar.repl.x", "a/b"]))


def wrong_namespace(script: Script) -> None:
    connection = script.connection()
    name = script.random.choice(["public/nowhere", "nobody/default", "x", ""])
    script.frame(
        connection,
        Type.GET_TOPICS_OF_NAMESPACE,
        proto.CommandGetTopicsOfNamespace(request_id=script.request(), namespace=name),
    )
    if "/" not in name:
        script.lose(connection)


def unknown_transaction(script: Script) -> None:
    ids = {"txnid_most_bits": 0, "txnid_least_bits": 12345}
    request_id = script.request()
    number, command = script.random.choice(
        [
            (
                Type.END_TXN,
                proto.CommandEndTxn(request_id=request_id, txn_action=proto.TxnAction.COMMIT, **ids),
            ),
            (
                Type.ADD_PARTITION_TO_TXN,
                proto.CommandAddPartitionToTxn(request_id=request_id, partitions=[script.topic()], **ids),
            ),
        ]
    )
    script.frame(script.connection(), number, command)


def connect_again(script: Script) -> None:
    connection = script.connection()
    script.frame(
        connection,
        Type.CONNECT,
        proto.CommandConnect(client_version="differential", protocol_version=21, auth_method_name="none"),
    )
    script.lose(connection)
