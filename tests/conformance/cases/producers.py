"""Breaking the rules of producers, of what they send when, and of its answers."""

from pulsar_sansio.conformance import Side
from pulsar_sansio.conformance import commands as c
from pulsar_sansio.wire import proto
from tests.conformance.cases.case import breaks
from tests.conformance.script import TOPIC, Script, stored

EXCLUSIVE, WAITING = 1, 2
"""ProducerAccessModes."""

# --- PRODUCER and its answer -----------------------------------------------------------------------


@breaks("CHECK-23")
def an_id_that_is_open(s: Script) -> None:
    s.connect()
    s.producer()
    s.open_producer(producer_name="p", epoch=1)


@breaks("CLIENT-04")
def an_id_for_another_topic(s: Script) -> None:
    s.connect()
    s.producer()
    s.reconnect()
    s.open_producer(topic=TOPIC + "2")


@breaks("CLIENT-04")
def a_consumer_id_for_another_subscription(s: Script) -> None:
    s.connect()
    s.consumer()
    s.reconnect()
    s.subscribe(subscription="other")


@breaks("CHECK-24")
def the_same_epoch_again(s: Script) -> None:
    s.connect()
    s.producer()
    s.reconnect()
    s.open_producer(producer_name="p", epoch=0)


@breaks("PROD-17")
def a_name_forgotten(s: Script) -> None:
    s.connect()
    s.producer()
    s.stored_message(0, 0)
    s.reconnect()
    s.open_producer(epoch=1)


@breaks("PROD-17")
def a_brokers_name_called_the_users(s: Script) -> None:
    s.connect()
    s.producer()
    s.reconnect()
    s.open_producer(producer_name="p", epoch=1, user_provided_producer_name=True)


@breaks("CHECK-25")
def the_users_name_is_missing(s: Script) -> None:
    s.connect()
    s.open_producer(user_provided_producer_name=True)


@breaks("CHECK-26")
def a_topic_epoch_that_was_not_granted(s: Script) -> None:
    s.connect()
    s.open_producer(producer_access_mode=EXCLUSIVE, topic_epoch=3)


@breaks("CHECK-26")
def a_topic_epoch_not_returned(s: Script) -> None:
    s.connect()
    s.producer_success(s.open_producer(producer_access_mode=EXCLUSIVE), topic_epoch=0)
    s.stored_message(0, 0)
    s.reconnect()
    s.open_producer(producer_name="p", epoch=1, producer_access_mode=EXCLUSIVE)


@breaks("BROKER-37")
def no_name(s: Script) -> None:
    s.connect()
    s.producer_success(s.open_producer(), name="")


@breaks("CHECK-27")
def another_name(s: Script) -> None:
    s.connect()
    s.producer_success(s.open_producer(producer_name="mine", user_provided_producer_name=True), name="p")


@breaks("CHECK-28")
def no_schema_version(s: Script) -> None:
    s.connect()
    s.broker(c.PRODUCER_SUCCESS, request_id=s.open_producer(), producer_name="p")


@breaks("CHECK-28")
def a_last_sequence_id_below_none(s: Script) -> None:
    s.connect()
    s.producer_success(s.open_producer(), last_sequence_id=-2)


@breaks("BROKER-36")
def waiting_without_having_asked(s: Script) -> None:
    s.connect()
    s.producer_success(s.open_producer(), producer_ready=False)


@breaks("BROKER-35")
def exclusive_without_epoch(s: Script) -> None:
    s.connect()
    s.producer_success(s.open_producer(producer_access_mode=EXCLUSIVE))


@breaks("BROKER-42")
def two_of_one_name(s: Script) -> None:
    s.connect()
    s.producer(0)
    s.producer_success(s.open_producer(1, producer_name="p", user_provided_producer_name=True))


@breaks("CHECK-79")
def a_last_id_below_what_was_confirmed(s: Script) -> None:
    s.connect()
    s.producer()
    s.send_batch(0, 4)
    s.receipt(0, highest_sequence_id=3)
    s.reconnect()
    s.producer_success(s.open_producer(producer_name="p", epoch=1), last_sequence_id=2)


# --- when SEND is allowed --------------------------------------------------------------------------


@breaks("INV-P10")
def a_send_before_success(s: Script) -> None:
    s.connect()
    s.open_producer()
    s.send(0)


@breaks("INV-P10")
def a_send_of_no_producer(s: Script) -> None:
    s.connect()
    s.send(0)


@breaks("INV-P10")
def a_send_of_a_refused_producer(s: Script) -> None:
    s.connect()
    s.error(s.open_producer())
    s.send(0)


@breaks("CHECK-29")
def a_send_while_waiting(s: Script) -> None:
    s.connect()
    s.producer_success(s.open_producer(producer_access_mode=WAITING), producer_ready=False)
    s.send(0)


@breaks("CHECK-30")
def a_send_after_the_close(s: Script) -> None:
    s.connect()
    s.producer()
    s.ask(c.CLOSE_PRODUCER, producer_id=0)
    s.send(0)


@breaks("CHECK-30")
def a_send_after_the_closes_answer(s: Script) -> None:
    s.connect()
    s.producer()
    s.close_producer()
    s.send(0)


@breaks("CHECK-31")
def a_send_after_the_brokers_close(s: Script) -> None:
    s.connect()
    s.producer()
    s.broker(c.CLOSE_PRODUCER, producer_id=0, request_id=c.NONE_ID)
    s.send(0)  # on its way, perhaps
    s.broker(c.PING)
    s.client(c.PONG)
    s.send(1)


# --- sending again ---------------------------------------------------------------------------------


def _come_back(s: Script) -> None:
    """Three messages are sent, one is confirmed, and the connection is lost."""
    s.connect()
    s.producer()
    s.stored_message(0, 0)
    s.send(1)
    s.send(2)
    s.reconnect()
    s.producer(producer_name="p", epoch=1)


@breaks("PROD-46")
def one_left_out(s: Script) -> None:
    s.connect()
    s.producer()
    for sequence_id in range(3):
        s.send(sequence_id)
    s.reconnect()
    s.producer(producer_name="p", epoch=1)
    s.send(0)
    s.send(2)


@breaks("PROD-46")
def new_ones_first(s: Script) -> None:
    _come_back(s)
    s.send(3)
    s.send(1)


@breaks("CHECK-32")
def other_bytes_the_second_time(s: Script) -> None:
    _come_back(s)
    s.send(1)
    s.send(2, stored(2, b"y"))


# --- answers to SEND -------------------------------------------------------------------------------


@breaks("CHECK-33")
def a_receipt_for_no_producer(s: Script) -> None:
    s.connect()
    s.receipt(0)


@breaks("CHECK-33")
def a_receipt_after_the_close(s: Script) -> None:
    s.connect()
    s.producer()
    s.close_producer()
    s.receipt(0)


@breaks("CHECK-34")
def a_receipt_for_nothing(s: Script) -> None:
    s.connect()
    s.producer()
    s.stored_message(0, 0)
    s.receipt(0, 1)


@breaks("BROKER-41")
def receipts_out_of_order(s: Script) -> None:
    s.connect()
    s.producer()
    s.send(0)
    s.send(1)
    s.receipt(1, 0)


@breaks("CHECK-35")
def a_receipt_of_half_a_batch(s: Script) -> None:
    s.connect()
    s.producer()
    s.send_batch(0, 3)
    s.receipt(0, 0, highest_sequence_id=1)


@breaks("CONN-08")
def half_a_position(s: Script) -> None:
    s.connect()
    s.producer()
    s.send(0)
    s.receipt(0, ledger_id=3, entry_id=-1)


@breaks("INV-P9")
def a_position_that_goes_back(s: Script) -> None:
    s.connect()
    s.producer()
    s.stored_message(0, 5)
    s.stored_message(1, 4)


@breaks("CHECK-36")
def the_position_of_another_message(s: Script) -> None:
    s.connect()
    s.producer(0, "p")
    s.producer(1, "q")
    s.stored_message(0, 0)
    s.send(0, stored(0, name="q"), producer_id=1)
    s.receipt(0, 0, producer_id=1)


@breaks("BROKER-40")
def a_duplicate_stored(s: Script) -> None:
    s.connect()
    s.producer_success(s.open_producer(), last_sequence_id=3)
    s.send(3)
    s.receipt(3, ledger_id=-1, entry_id=-1)
    s.send(4)
    s.receipt(4, 0)
    s.reconnect()
    s.producer_success(s.open_producer(producer_name="p", epoch=1), last_sequence_id=4)
    s.send(4)
    s.receipt(4, 1)


@breaks("INV-P6", blamed=(Side.CLIENT, 6))
def a_sequence_id_that_goes_back(s: Script) -> None:
    s.connect()
    s.producer()
    s.stored_message(5, 0)
    s.send(4)
    s.receipt(4, 1)


@breaks("CHECK-37")
def an_error_for_nothing(s: Script) -> None:
    s.connect()
    s.producer()
    s.send_batch(0, 3)
    s.broker(c.SEND_ERROR, producer_id=0, sequence_id=0, error=proto.PersistenceError, message="no")
