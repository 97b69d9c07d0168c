"""Conversations that break a rule of subscribing, closing or seeking."""

from pulsar_sansio.conformance import commands as c
from pulsar_sansio.wire import proto
from tests.conformance.cases.case import breaks
from tests.conformance.script import Script

# --- SUBSCRIBE -------------------------------------------------------------------------------------


@breaks("CHECK-55")
def an_id_that_is_open(s: Script) -> None:
    s.connect()
    s.consumer()
    s.subscribe()


@breaks("CLIENT-13")
def a_blank_name(s: Script) -> None:
    s.connect()
    s.subscribe(subscription=" ")


@breaks("CONS-03")
def another_name(s: Script) -> None:
    s.connect()
    s.consumer()
    s.reconnect()
    s.subscribe(consumer_name="d")


@breaks("CONS-10")
def a_durable_start(s: Script) -> None:
    s.connect()
    s.subscribe(start_message_id={"ledgerId": 1, "entryId": 1})


@breaks("SUBT-12")
def compacted_and_shared(s: Script) -> None:
    s.connect()
    s.subscribe(kind=c.SHARED, read_compacted=True)


@breaks("SUBT-12")
def compacted_and_not_persistent(s: Script) -> None:
    s.connect()
    s.subscribe(topic="non-persistent://public/default/t", read_compacted=True)


@breaks("CFG-224")
def large_properties(s: Script) -> None:
    s.connect()
    s.subscribe(metadata=[{"key": "k", "value": "v" * 1024}])


@breaks("CHECK-56")
def sticky_without_ranges(s: Script) -> None:
    s.connect()
    s.subscribe(kind=c.KEY_SHARED, keySharedMeta={"keySharedMode": proto.STICKY})


@breaks("CHECK-56")
def ranges_that_overlap(s: Script) -> None:
    s.connect()
    ranges = [{"start": 0, "end": 10}, {"start": 10, "end": 20}]
    s.subscribe(kind=c.KEY_SHARED, keySharedMeta={"keySharedMode": proto.STICKY, "hashRanges": ranges})


@breaks("INV-C8")
def an_epoch_that_does_not_grow(s: Script) -> None:
    s.connect()
    s.consumer(consumer_epoch=0)
    s.redeliver(consumer_epoch=1)
    s.redeliver(consumer_epoch=1)


@breaks("INV-C8")
def an_epoch_that_a_failover_consumer_repeats_once_too_often(s: Script) -> None:
    s.connect()
    s.consumer(kind=c.FAILOVER, consumer_epoch=0)
    s.broker(c.ACTIVE_CONSUMER_CHANGE, consumer_id=0, is_active=True)
    for epoch in (1, 1, 1):
        s.redeliver(consumer_epoch=epoch)


@breaks("INV-C8")
def an_epoch_forgotten(s: Script) -> None:
    s.connect()
    s.consumer(consumer_epoch=0)
    s.redeliver(consumer_epoch=1)
    s.reconnect()
    s.subscribe(consumer_epoch=0)


# --- naming a consumer -----------------------------------------------------------------------------


@breaks("CHECK-57")
def permits_before_success(s: Script) -> None:
    s.connect()
    s.subscribe()
    s.flow(10)


@breaks("CHECK-57")
def a_question_about_no_consumer(s: Script) -> None:
    s.connect()
    s.ask(c.GET_LAST_MESSAGE_ID, consumer_id=0)


@breaks("CHECK-58")
def an_acknowledgement_after_the_close(s: Script) -> None:
    s.connect()
    s.consumer()
    s.message(0)
    s.ask(c.CLOSE_CONSUMER, consumer_id=0)
    s.ack(0)


@breaks("CHECK-58")
def permits_after_the_closes_answer(s: Script) -> None:
    s.connect()
    s.consumer(permits=0)
    s.close_consumer()
    s.flow(1)


@breaks("CHECK-59")
def permits_after_the_brokers_close(s: Script) -> None:
    s.connect()
    s.consumer()
    s.message(0)
    s.message(1)
    s.broker(c.CLOSE_CONSUMER, consumer_id=0, request_id=c.NONE_ID)
    s.flow(1)  # on its way, perhaps
    s.broker(c.PING)
    s.client(c.PONG)
    s.flow(1)


@breaks("CHECK-60")
def the_end_for_no_consumer(s: Script) -> None:
    s.connect()
    s.consumer()
    s.close_consumer()
    s.broker(c.REACHED_END_OF_TOPIC, consumer_id=0)


@breaks("CHECK-60")
def a_close_for_no_consumer(s: Script) -> None:
    s.connect()
    s.broker(c.CLOSE_CONSUMER, consumer_id=0, request_id=c.NONE_ID)


@breaks("SUBT-05")
def an_exclusive_consumer_becomes_active(s: Script) -> None:
    s.connect()
    s.consumer()
    s.broker(c.ACTIVE_CONSUMER_CHANGE, consumer_id=0, is_active=True)


# --- closing ---------------------------------------------------------------------------------------


@breaks("CHECK-61")
def closing_an_unknown_consumer(s: Script) -> None:
    s.connect()
    s.ask(c.CLOSE_CONSUMER, consumer_id=0)


@breaks("CHECK-61")
def closing_an_unknown_producer(s: Script) -> None:
    s.connect()
    s.ask(c.CLOSE_PRODUCER, producer_id=0)


@breaks("CHECK-62")
def closing_twice(s: Script) -> None:
    s.connect()
    s.consumer()
    s.ask(c.CLOSE_CONSUMER, consumer_id=0)
    s.ask(c.CLOSE_CONSUMER, consumer_id=0)


@breaks("CHECK-63")
def a_close_for_no_producer(s: Script) -> None:
    s.connect()
    s.producer()
    s.close_producer()
    s.broker(c.CLOSE_PRODUCER, producer_id=0, request_id=c.NONE_ID)


@breaks("GAP-37")
def a_notice_with_a_request_id(s: Script) -> None:
    s.connect()
    s.consumer()
    s.broker(c.CLOSE_CONSUMER, consumer_id=0, request_id=1)


@breaks("CHECK-64")
def nothing_has_migrated(s: Script) -> None:
    s.connect()
    kind = proto.CommandTopicMigrated.Producer
    s.broker(c.TOPIC_MIGRATED, resource_id=0, resource_type=kind, brokerServiceUrl="pulsar://b:6650")


@breaks("CHECK-64")
def migrated_to_nowhere(s: Script) -> None:
    s.connect()
    s.consumer()
    s.broker(c.TOPIC_MIGRATED, resource_id=0, resource_type=proto.CommandTopicMigrated.Consumer)


@breaks("CHECK-65")
def closed_before_the_receipt(s: Script) -> None:
    s.connect()
    s.producer()
    s.send(0)
    s.close_producer()


# --- SEEK ------------------------------------------------------------------------------------------


@breaks("WIRE-15")
def a_seek_without_target(s: Script) -> None:
    s.connect()
    s.consumer()
    s.ask(c.SEEK, consumer_id=0)


@breaks("SEEK-01")
def two_seeks(s: Script) -> None:
    s.connect()
    s.consumer()
    s.ask(c.SEEK, consumer_id=0, message_publish_time=1)
    s.ask(c.SEEK, consumer_id=0, message_publish_time=1)


@breaks("GAP-35")
def a_seek_that_closes_no_consumer(s: Script) -> None:
    s.connect()
    s.consumer()
    s.success(s.ask(c.SEEK, consumer_id=0, message_publish_time=1))
