"""Actions of consumers."""

from typing import Any

from pulsar_sansio.wire import CUMULATIVE, INDIVIDUAL, Ack, Flow, proto
from tests.differential.generator.asking import schema
from tests.differential.generator.producing import PUBLISHED, send_batch
from tests.differential.generator.script import OpenConsumer, Script, topic
from tests.differential.steps import SYMBOL

Type = proto.BaseCommand.Type
SubType = proto.CommandSubscribe.SubType


def subscribe(script: Script, **fields: Any) -> None:
    connection, consumer_id = script.connection(), script.new_id()
    where = fields.pop("topic", script.topic())
    script.find(connection, where)
    kind = fields.pop("kind", None)
    if kind is None:
        kind = script.random.choice(script.kinds)
    subscription = fields.pop("subscription", script.random.choice(script.subscriptions))
    script.frame(
        connection,
        Type.SUBSCRIBE,
        proto.CommandSubscribe(
            topic=where,
            subscription=subscription,
            subType=kind,
            consumer_id=consumer_id,
            request_id=script.request(),
            consumer_name=f"c{consumer_id}",
            initialPosition=script.random.choice(
                [proto.CommandSubscribe.Earliest, proto.CommandSubscribe.Latest]
            ),
            **fields,
        ),
    )
    consumer = OpenConsumer(connection, consumer_id, where, subscription, kind)
    script.wait_failover([consumer])
    script.consumers.append(consumer)
    if script.random.random() < 0.7:
        script.frame(connection, Type.FLOW, Flow(consumer_id, script.random.choice([1, 2, 1000])))


def subscribe_with_options(script: Script) -> None:
    options: list[dict[str, Any]] = [
        {"priority_level": script.random.randint(0, 2)},
        {"read_compacted": True},
        {"force_topic_creation": False, "topic": topic("missing")},
        {"consumer_epoch": 1},
        {"durable": False},
        {"start_message_rollback_duration_sec": 3600},
        {"replicate_subscription_state": True},
    ]
    subscribe(script, **script.random.choice(options))


def read(script: Script) -> None:
    """Subscribe as a reader does."""
    ledger_id, entry_id = some_position(script)
    subscribe(
        script,
        durable=False,
        kind=SubType.Exclusive,
        subscription=f"reader-{script.ids}",
        start_message_id=proto.MessageIdData(ledgerId=ledger_id, entryId=entry_id),
    )


def subscribe_sticky(script: Script) -> None:
    start = script.random.choice([0, 0, 32768])
    meta = proto.KeySharedMeta(keySharedMode=proto.KeySharedMode.STICKY)
    meta.hashRanges.add(start=start, end=script.random.choice([32767, 65535]))
    subscribe(script, kind=SubType.Key_Shared, keySharedMeta=meta)


def subscribe_with_schema(script: Script) -> None:
    subscribe(script, schema=schema(script))


def flow(script: Script) -> None:
    consumer = script.one_of(script.consumers, subscribe)
    permits = script.random.choice([1, 2, 5, 1000])
    script.frame(consumer.connection, Type.FLOW, Flow(consumer.consumer_id, permits))


def some_position(script: Script) -> tuple[int, int]:
    known = [(SYMBOL + sent.number, 0) for sent in script.sent]
    return script.random.choice(
        [*known, *known, ((1 << 64) - 1, (1 << 64) - 1), ((1 << 63) - 1, (1 << 63) - 1)]
    )


def acknowledge_ids(script: Script, kind: int, ids: list[tuple[int, int, int | None]], **fields: Any) -> None:
    consumer = script.one_of(script.consumers, subscribe)
    fields.setdefault("request_id", script.random.choice([None, script.request()]))
    script.frame(consumer.connection, Type.ACK, Ack(consumer.consumer_id, kind, ids, **fields))


def acknowledge(script: Script) -> None:
    count = script.random.choice([1, 1, 2])
    sent = script.random.sample(script.sent, min(count, len(script.sent)))
    if sent:
        acknowledge_ids(script, INDIVIDUAL, [(SYMBOL + each.number, 0, None) for each in sent])


def acknowledge_cumulatively(script: Script) -> None:
    if script.sent:
        acknowledge_ids(script, CUMULATIVE, [(SYMBOL + script.random.choice(script.sent).number, 0, None)])


def acknowledge_in_batch(script: Script) -> None:
    batches = [each for each in script.sent if each.size > 1]
    if not batches:
        return send_batch(script)
    batch = script.random.choice(batches)
    bits = script.random.randrange(1 << batch.size)
    acknowledge_ids(
        script, script.random.choice([INDIVIDUAL, INDIVIDUAL, CUMULATIVE]), [(SYMBOL + batch.number, 0, bits)]
    )
    return None


def redeliver(script: Script) -> None:
    consumer = script.one_of(script.consumers, subscribe)
    command = proto.CommandRedeliverUnacknowledgedMessages(consumer_id=consumer.consumer_id)
    if script.sent and script.random.random() < 0.6:
        sent = script.random.choice(script.sent)
        command.message_ids.add(ledgerId=SYMBOL + sent.number, entryId=0)
    if script.random.random() < 0.3:
        command.consumer_epoch = script.random.randint(1, 3)
    script.frame(consumer.connection, Type.REDELIVER_UNACKNOWLEDGED_MESSAGES, command)


def seek(script: Script) -> None:
    consumer = script.one_of(script.consumers, subscribe)
    command = proto.CommandSeek(consumer_id=consumer.consumer_id, request_id=script.request())
    if script.random.random() < 0.7:
        ledger_id, entry_id = some_position(script)
        command.message_id.ledgerId, command.message_id.entryId = ledger_id, entry_id
    else:
        command.message_publish_time = PUBLISHED + script.random.randint(-1, 12) * 1000 - 500
    script.frame(consumer.connection, Type.SEEK, command)


def last_message_id(script: Script) -> None:
    consumer = script.one_of(script.consumers, subscribe)
    script.frame(
        consumer.connection,
        Type.GET_LAST_MESSAGE_ID,
        proto.CommandGetLastMessageId(consumer_id=consumer.consumer_id, request_id=script.request()),
    )


def statistics(script: Script) -> None:
    consumer = script.one_of(script.consumers, subscribe)
    script.frame(
        consumer.connection,
        Type.CONSUMER_STATS,
        proto.CommandConsumerStats(consumer_id=consumer.consumer_id, request_id=script.request()),
    )


def unsubscribe(script: Script) -> None:
    consumer = script.one_of(script.consumers, subscribe)
    script.frame(
        consumer.connection,
        Type.UNSUBSCRIBE,
        proto.CommandUnsubscribe(
            consumer_id=consumer.consumer_id,
            request_id=script.request(),
            force=script.random.choice([False, False, True]),
        ),
    )


def close_consumer(script: Script) -> None:
    consumer = script.one_of(script.consumers, subscribe)
    script.consumers.remove(consumer)
    script.frame(
        consumer.connection,
        Type.CLOSE_CONSUMER,
        proto.CommandCloseConsumer(consumer_id=consumer.consumer_id, request_id=script.request()),
    )
    script.wait_failover([consumer])
