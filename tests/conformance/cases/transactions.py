"""Breaking the rules of transactions."""

from typing import Any

from pulsar_sansio.conformance import commands as c
from pulsar_sansio.wire import proto
from tests.conformance.cases.case import breaks
from tests.conformance.script import TOPIC, TRANSACTION, Script, stored

ASSIGN_TOPIC = "persistent://pulsar/system/transaction_coordinator_assign"


def _producing(s: Script) -> None:
    """A producer with a transaction that has its topic."""
    s.connect()
    s.producer()
    s.begin_transaction()
    s.add_partition()


def _consuming(s: Script) -> None:
    """A consumer with one message and a transaction that has its subscription."""
    s.connect()
    s.consumer()
    s.message(0)
    s.begin_transaction()
    s.add_subscription()


# --- coordinators ----------------------------------------------------------------------------------


@breaks("CHECK-90")
def a_coordinator_that_the_cluster_does_not_have(s: Script) -> None:
    s.connect()
    request_id = s.ask(c.PARTITIONED_METADATA, topic=ASSIGN_TOPIC)
    s.broker(c.PARTITIONED_METADATA_RESPONSE, request_id=request_id, response=0, partitions=2)
    s.introduce(1)
    s.ask(c.TC_CLIENT_CONNECT, tc_id=2)


@breaks("CHECK-91")
def a_coordinator_that_does_not_know_the_connection(s: Script) -> None:
    s.connect()
    s.introduce(0)
    s.begin_transaction()
    s.reconnect()
    s.ask(c.END_TXN, txn_action=proto.COMMIT, **TRANSACTION)


@breaks("CHECK-91")
def another_coordinator_knows_the_connection(s: Script) -> None:
    s.connect()
    s.introduce(1)
    s.ask(c.NEW_TXN, tc_id=0, txn_ttl_millis=1000)


@breaks("CHECK-91")
def a_coordinator_that_has_refused_the_connection(s: Script) -> None:
    s.connect()
    request_id = s.ask(c.TC_CLIENT_CONNECT, tc_id=0)
    code = proto.TransactionCoordinatorNotFound
    s.broker(c.TC_CLIENT_CONNECT_RESPONSE, request_id=request_id, error=code, message="no")
    s.ask(c.NEW_TXN, tc_id=0, txn_ttl_millis=1000)


@breaks("CHECK-92")
def a_transaction_without_timeout(s: Script) -> None:
    s.connect()
    s.introduce(0)
    s.ask(c.NEW_TXN, tc_id=0)


@breaks("CHECK-93")
def a_transaction_without_number(s: Script) -> None:
    s.connect()
    s.introduce(0)
    request_id = s.ask(c.NEW_TXN, tc_id=0, txn_ttl_millis=1000)
    s.broker(c.NEW_TXN_RESPONSE, request_id=request_id, txnid_most_bits=0)


@breaks("CHECK-94")
def an_id_for_two_transactions(s: Script) -> None:
    s.connect()
    s.begin_transaction(5)
    s.begin_transaction(5)


@breaks("CHECK-16")
def a_topic_that_joined_another_transaction(s: Script) -> None:
    s.connect()
    s.begin_transaction()
    request_id = s.ask(c.ADD_PARTITION_TO_TXN, partitions=[TOPIC], **TRANSACTION)
    s.broker(c.ADD_PARTITION_TO_TXN_RESPONSE, request_id=request_id, txnid_most_bits=0, txnid_least_bits=6)


@breaks("CHECK-16")
def the_end_of_another_transaction_on_a_topic(s: Script) -> None:
    """A broker asks another one."""
    s.connect()
    request_id = s.ask(c.END_TXN_ON_PARTITION, topic=TOPIC, txn_action=proto.COMMIT, **TRANSACTION)
    s.broker(c.END_TXN_ON_PARTITION_RESPONSE, request_id=request_id, txnid_most_bits=1, txnid_least_bits=5)


@breaks("CONN-18")
def an_end_that_is_answered_twice(s: Script) -> None:
    s.connect()
    s.begin_transaction()
    request_id = s.end_transaction(proto.ABORT)
    for _ in range(2):
        s.broker(c.END_TXN_RESPONSE, request_id=request_id, **TRANSACTION)


@breaks("CHECK-15")
def an_end_that_is_answered_as_a_beginning(s: Script) -> None:
    s.connect()
    s.begin_transaction()
    s.broker(
        c.NEW_TXN_RESPONSE, request_id=s.end_transaction(proto.ABORT), txnid_most_bits=0, txnid_least_bits=6
    )


# --- participants ----------------------------------------------------------------------------------


@breaks("CHECK-74")
def half_a_transaction(s: Script) -> None:
    _producing(s)
    s.send(0, txnid_least_bits=5)


@breaks("CHECK-74")
def another_transaction_in_the_metadata(s: Script) -> None:
    _producing(s)
    s.send(0, stored(0, txnid_least_bits=6, txnid_most_bits=0), **TRANSACTION)


@breaks("CHECK-74")
def a_transaction_in_the_metadata_alone(s: Script) -> None:
    _producing(s)
    s.send(0, stored(0, **TRANSACTION))


@breaks("CHECK-75")
def a_transaction_that_was_not_begun(s: Script) -> None:
    s.connect()
    s.producer()
    s.send_in_transaction()


@breaks("CHECK-95")
def a_topic_without_its_full_name(s: Script) -> None:
    s.connect()
    s.begin_transaction()
    s.ask(c.ADD_PARTITION_TO_TXN, partitions=[TOPIC, "t"], **TRANSACTION)


@breaks("CHECK-95")
def nothing_that_joins(s: Script) -> None:
    s.connect()
    s.begin_transaction()
    s.ask(c.ADD_SUBSCRIPTION_TO_TXN, **TRANSACTION)


@breaks("GAP-40")
def a_partition_that_is_not_registered(s: Script) -> None:
    s.connect()
    s.producer()
    s.begin_transaction()
    s.send_in_transaction()


@breaks("GAP-40")
def a_subscription_that_is_not_registered(s: Script) -> None:
    s.connect()
    s.consumer()
    s.message(0)
    s.begin_transaction()
    s.ack(0, request_id=7, **TRANSACTION)


@breaks("CHECK-76")
def an_unconfirmed_acknowledgement(s: Script) -> None:
    _consuming(s)
    s.ack(0, **TRANSACTION)


# --- the end ---------------------------------------------------------------------------------------


@breaks("CHECK-96")
def an_end_that_is_neither(s: Script) -> None:
    s.connect()
    s.begin_transaction()
    s.ask(c.END_TXN, **TRANSACTION)


@breaks("CHECK-96")
def an_end_on_a_subscription_that_is_neither(s: Script) -> None:
    s.connect()
    subscription = {"topic": TOPIC, "subscription": "sub"}
    s.ask(c.END_TXN_ON_SUBSCRIPTION, subscription=subscription, **TRANSACTION)


@breaks("CHECK-97")
def an_abort_after_a_commit(s: Script) -> None:
    s.connect()
    s.begin_transaction()
    s.end_transaction(proto.COMMIT)
    s.reconnect()
    s.introduce(0)
    s.end_transaction(proto.ABORT)


@breaks("INV-T1")
def a_commit_before_a_receipt(s: Script) -> None:
    _producing(s)
    s.send_in_transaction()
    s.end_transaction(proto.COMMIT)


@breaks("INV-T1")
def a_commit_although_a_message_was_refused(s: Script) -> None:
    _producing(s)
    s.send_in_transaction()
    s.broker(c.SEND_ERROR, producer_id=0, sequence_id=0, error=proto.PersistenceError, message="no")
    s.end_transaction(proto.COMMIT)


@breaks("INV-T1")
def a_commit_although_an_acknowledgement_was_refused(s: Script) -> None:
    _consuming(s)
    s.ack(0, request_id=7, **TRANSACTION)
    refusal: dict[str, Any] = {"error": proto.TransactionConflict, "message": "no"}
    s.broker(c.ACK_RESPONSE, consumer_id=0, request_id=7, **refusal)
    s.end_transaction(proto.COMMIT)


@breaks("INV-T1")
def a_commit_although_the_answer_of_an_acknowledgement_was_lost(s: Script) -> None:
    _consuming(s)
    s.ack(0, request_id=7, **TRANSACTION)
    s.reconnect()
    s.introduce(0)
    s.end_transaction(proto.COMMIT)


@breaks("CHECK-98")
def a_send_after_the_end(s: Script) -> None:
    _producing(s)
    s.end_transaction(proto.COMMIT)
    s.send_in_transaction()


@breaks("CHECK-98")
def a_participant_after_the_end(s: Script) -> None:
    s.connect()
    s.begin_transaction()
    s.end_transaction(proto.ABORT)
    s.ask(c.ADD_PARTITION_TO_TXN, partitions=[TOPIC], **TRANSACTION)


def _delivered(s: Script) -> None:
    """The message of the transaction reaches a consumer of the same client."""
    s.message(0, stored(0, **TRANSACTION))


@breaks("TXN-01")
def a_message_of_an_open_transaction(s: Script) -> None:
    _producing(s)
    s.send_in_transaction()
    s.receipt(0)
    s.consumer()
    _delivered(s)


@breaks("TXN-01")
def a_message_of_an_aborted_transaction(s: Script) -> None:
    _producing(s)
    s.send_in_transaction()
    s.receipt(0)
    s.consumer()
    s.broker(c.END_TXN_RESPONSE, request_id=s.end_transaction(proto.ABORT), **TRANSACTION)
    _delivered(s)


@breaks("PROD-46")
def one_of_a_transaction_left_out(s: Script) -> None:
    _producing(s)
    for sequence_id in range(3):
        s.send_in_transaction(sequence_id)
    s.reconnect()
    s.producer(producer_name="p", epoch=1)
    s.send_in_transaction(0)
    s.send_in_transaction(2)
