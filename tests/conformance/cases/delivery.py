"""Conversations that break a rule of permits, delivery, acknowledgement or redelivery."""

from pulsar_sansio.conformance import commands as c
from tests.conformance.cases.case import breaks
from tests.conformance.script import TOPIC, Script, batch, stored

# --- permits ---------------------------------------------------------------------------------------


@breaks("FLOW-08")
def no_permits(s: Script) -> None:
    s.connect()
    s.consumer()
    s.flow(0)


@breaks("INV-C6")
def permits_for_messages_that_never_came(s: Script) -> None:
    s.connect()
    s.consumer(permits=10)
    s.message(0, batch(0, 5))
    s.flow(5)
    s.flow(1)


@breaks("BROKER-30")
def a_message_before_any_grant(s: Script) -> None:
    s.connect()
    s.consumer(permits=0)
    s.message(0)


@breaks("GAP-27")
def one_message_too_many(s: Script) -> None:
    s.connect()
    s.consumer(permits=2)
    s.message(0)
    s.message(1)
    s.message(2)


@breaks("GAP-27")
def a_message_after_the_batch_that_used_up_all(s: Script) -> None:
    s.connect()
    s.consumer(permits=2)
    s.message(0, batch(0, 5))
    s.flow(3)
    s.message(1)


@breaks("GAP-27")
def messages_left_out_of_a_batch_cost_nothing(s: Script) -> None:
    s.connect()
    s.consumer(kind=c.SHARED, permits=3)
    s.message(0, batch(0, 5), ack_set=0b11)
    s.message(1, batch(5, 2))
    s.message(2)


# --- which consumer gets messages -----------------------------------------------------------------


@breaks("CHECK-66")
def a_message_for_no_consumer(s: Script) -> None:
    s.connect()
    s.message(0)


@breaks("CHECK-66")
def a_message_before_success(s: Script) -> None:
    s.connect()
    s.subscribe()
    s.message(0)


@breaks("INV-C14")
def a_message_after_the_close(s: Script) -> None:
    s.connect()
    s.consumer()
    s.close_consumer()
    s.message(0)


@breaks("INV-C14")
def a_message_after_the_brokers_close(s: Script) -> None:
    s.connect()
    s.consumer()
    s.broker(c.CLOSE_CONSUMER, consumer_id=0, request_id=c.NONE_ID)
    s.message(0)


@breaks("SUBT-03")
def a_message_for_the_inactive_one(s: Script) -> None:
    s.connect()
    s.consumer(kind=c.FAILOVER)
    s.broker(c.ACTIVE_CONSUMER_CHANGE, consumer_id=0, is_active=False)
    s.message(0)


@breaks("BROKER-43")
def a_message_after_the_end(s: Script) -> None:
    s.connect()
    s.consumer()
    s.message(0)
    s.ack(0)
    s.broker(c.REACHED_END_OF_TOPIC, consumer_id=0)
    s.message(1)


# --- positions and repetition ----------------------------------------------------------------------


@breaks("WIRE-11")
def the_partition_of_none(s: Script) -> None:
    s.connect()
    s.consumer()
    s.message(0, partition=0)


@breaks("WIRE-11")
def another_partition(s: Script) -> None:
    s.connect()
    s.consumer(topic=TOPIC + "-partition-3")
    s.message(0, partition=2)


@breaks("MSG-01")
def a_batch_index_from_the_broker(s: Script) -> None:
    s.connect()
    s.consumer()
    s.message(0, batch(0, 2), batch_index=0)


@breaks("INV-C3")
def a_step_back(s: Script) -> None:
    s.connect()
    s.consumer()
    s.message(0)
    s.message(1)
    s.redeliver()
    s.message(0)
    s.message(0)


@breaks("BROKER-31")
def a_count_on_exclusive(s: Script) -> None:
    s.connect()
    s.consumer()
    s.message(0, redelivery_count=1)


@breaks("CHECK-67")
def once_more_unasked(s: Script) -> None:
    s.connect()
    s.consumer(kind=c.SHARED)
    s.message(0)
    s.redeliver(0)
    s.message(0, redelivery_count=1)
    s.message(0, redelivery_count=2)


@breaks("CHECK-67")
def once_more_after_everything(s: Script) -> None:
    s.connect()
    s.consumer(kind=c.SHARED)
    s.message(0)
    s.redeliver()
    s.client(c.PING)
    s.message(1)  # on its way, perhaps, when the request was read
    s.broker(c.PONG)
    s.message(0, redelivery_count=1)
    s.message(1, redelivery_count=1)
    s.message(0, redelivery_count=2)


@breaks("NACK-03")
def a_count_that_stays(s: Script) -> None:
    s.connect()
    s.consumer(kind=c.SHARED)
    s.message(0)
    s.redeliver(0)
    s.message(0)


@breaks("INV-C5")
def once_more_after_the_confirmation(s: Script) -> None:
    s.connect()
    s.consumer()
    s.message(0)
    s.ack(0, request_id=7)
    s.broker(c.ACK_RESPONSE, consumer_id=0, request_id=7)
    s.redeliver()
    s.message(0)


@breaks("INV-C5")
def once_more_after_a_cumulative_confirmation(s: Script) -> None:
    s.connect()
    s.consumer()
    s.message(0)
    s.message(1)
    s.ack(1, ack_type=1, request_id=7)
    s.broker(c.ACK_RESPONSE, consumer_id=0, request_id=7)
    s.redeliver()
    s.message(0)


@breaks("CHECK-68")
def an_epoch_for_a_consumer_that_has_none(s: Script) -> None:
    s.connect()
    s.consumer()
    s.message(0, consumer_epoch=0)


@breaks("CHECK-68")
def an_epoch_of_the_future(s: Script) -> None:
    s.connect()
    s.consumer(consumer_epoch=0)
    s.message(0, consumer_epoch=1)


@breaks("CHECK-69")
def an_epoch_that_goes_back(s: Script) -> None:
    s.connect()
    s.consumer(consumer_epoch=0)
    s.message(0, consumer_epoch=0)
    s.redeliver(consumer_epoch=1)
    s.message(0, consumer_epoch=1)
    s.message(1, consumer_epoch=0)


# --- contents --------------------------------------------------------------------------------------


@breaks("CHECK-70")
def a_set_for_no_batch(s: Script) -> None:
    s.connect()
    s.consumer()
    s.message(0, ack_set=1)


@breaks("CHECK-70")
def a_set_larger_than_its_batch(s: Script) -> None:
    s.connect()
    s.consumer()
    s.message(0, batch(0, 3), ack_set=0b1001)


@breaks("CHECK-70")
def a_set_of_nothing(s: Script) -> None:
    s.connect()
    s.consumer()
    s.message(0, batch(0, 3), ack_set=0)


@breaks("CHECK-71")
def a_marker_delivered(s: Script) -> None:
    s.connect()
    s.consumer()
    s.message(0, stored(0, marker_type=21))


@breaks("INV-C2")
def other_bytes_than_sent(s: Script) -> None:
    s.connect()
    s.producer()
    s.consumer()
    s.stored_message(0, 0)
    s.message(0, stored(0, b"y"))


# --- ACK -------------------------------------------------------------------------------------------


def _two_messages(s: Script, kind: int = c.EXCLUSIVE) -> None:
    s.connect()
    s.consumer(kind=kind)
    s.message(0, batch(0, 3))
    s.message(1)


@breaks("WIRE-12")
def an_acknowledgement_of_nothing(s: Script) -> None:
    _two_messages(s)
    s.ack()


@breaks("WIRE-12")
def two_cumulative_ids(s: Script) -> None:
    _two_messages(s)
    s.ack(0, 1, ack_type=1)


@breaks("ACK-02")
def cumulative_on_shared(s: Script) -> None:
    _two_messages(s, c.SHARED)
    s.ack(1, ack_type=1)


@breaks("CONS-29")
def discarding_cumulatively(s: Script) -> None:
    _two_messages(s)
    s.ack(1, ack_type=1, validation_error=2)


@breaks("ACK-13")
def an_acknowledgement_of_what_is_not_stored(s: Script) -> None:
    s.connect()
    s.consumer(topic="non-persistent://public/default/t")
    s.message(0)
    s.ack(0)


@breaks("INV-C4")
def an_acknowledgement_of_what_never_came(s: Script) -> None:
    _two_messages(s)
    s.ack(1, 2)


@breaks("INV-C4")
def a_cumulative_one_beyond_what_came(s: Script) -> None:
    _two_messages(s)
    s.ack(2, ack_type=1)


@breaks("CHECK-72")
def an_ack_set_for_no_batch(s: Script) -> None:
    _two_messages(s)
    s.ack(1, sets=(1,))


@breaks("CHECK-72")
def an_ack_set_larger_than_its_batch(s: Script) -> None:
    _two_messages(s)
    s.ack(0, sets=(0b1101,))


@breaks("CHECK-73")
def an_ack_set_of_nothing(s: Script) -> None:
    _two_messages(s)
    s.ack(0, sets=(0b111,))


# --- REDELIVER -------------------------------------------------------------------------------------


@breaks("REDEL-05")
def too_many_ids(s: Script) -> None:
    s.connect()
    s.consumer(kind=c.SHARED, permits=2000)
    for entry in range(1001):
        s.message(entry)
    s.redeliver(*range(1001))


@breaks("REDEL-05")
def one_message_of_a_batch(s: Script) -> None:
    _two_messages(s, c.SHARED)
    s.client(c.REDELIVER, consumer_id=0, message_ids=[{"ledgerId": 1, "entryId": 0, "batch_index": 1}])


@breaks("REDEL-02")
def ids_on_exclusive(s: Script) -> None:
    _two_messages(s)
    s.redeliver(0)


@breaks("INV-C9")
def asking_for_what_never_came(s: Script) -> None:
    _two_messages(s, c.SHARED)
    s.redeliver(2)


@breaks("INV-C9")
def asking_for_what_is_acknowledged(s: Script) -> None:
    _two_messages(s, c.SHARED)
    s.ack(0)
    s.redeliver(1, 0)
