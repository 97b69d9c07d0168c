"""Transactions that look wrong and are allowed: answers were lost, or another client is at work.

The Go client does not say in PRODUCER that it may send in transactions; no script here does."""

from collections.abc import Callable

import pytest

from pulsar_sansio.conformance import commands as c
from pulsar_sansio.wire import proto
from tests.conformance.recordings.recorded import judge
from tests.conformance.script import TOPIC, TRANSACTION, Script, stored

Tell = Callable[[Script], None]
ALLOWED: list[Tell] = []


def allowed(tell: Tell) -> Tell:
    ALLOWED.append(tell)
    return tell


@pytest.mark.parametrize("tell", ALLOWED, ids=lambda tell: tell.__name__)
def test_nothing_is_found(tell: Tell) -> None:
    script = Script()
    tell(script)
    assert judge(script.frames) == []


@allowed
def the_abort_of_an_acknowledgement(s: Script) -> None:
    s.connect()
    s.consumer(kind=c.SHARED)
    s.message(0)
    s.begin_transaction()
    s.add_subscription()
    s.ack(0, request_id=7, **TRANSACTION)
    s.broker(c.ACK_RESPONSE, consumer_id=0, request_id=7)
    s.end_transaction(proto.ABORT)
    s.message(0, redelivery_count=1)


@allowed
def the_abort_of_an_acknowledgement_of_another_consumer(s: Script) -> None:
    """The first consumer had the message before, and gets it again."""
    s.connect()
    for number in range(2):
        s.consumer(number, kind=c.SHARED, consumer_name=str(number))
    s.message(0)
    s.redeliver(0)
    s.message(0, consumer_id=1, redelivery_count=1)
    s.message(0, redelivery_count=2)
    s.begin_transaction()
    s.add_subscription()
    s.ack(0, consumer_id=1, request_id=7, **TRANSACTION)
    s.broker(c.ACK_RESPONSE, consumer_id=1, request_id=7)
    s.end_transaction(proto.ABORT)
    s.message(0, redelivery_count=3)


@allowed
def an_abort_after_a_consumer_has_come_back(s: Script) -> None:
    s.connect()
    s.consumer()
    s.message(0)
    s.begin_transaction()
    s.add_subscription()
    s.ack(0, request_id=7, **TRANSACTION)
    s.broker(c.ACK_RESPONSE, consumer_id=0, request_id=7)
    s.reconnect()
    s.consumer()
    s.message(1)
    s.message(0)


@allowed
def a_transaction_that_is_not_in_the_metadata(s: Script) -> None:
    """The Go client names it in SEND alone."""
    s.connect()
    s.producer()
    s.begin_transaction()
    s.add_partition()
    s.send(0, **TRANSACTION)


@allowed
def an_abort_of_what_was_not_confirmed(s: Script) -> None:
    s.connect()
    s.producer()
    s.begin_transaction()
    s.add_partition()
    s.send_in_transaction()
    s.end_transaction(proto.ABORT)


@allowed
def a_commit_of_a_message_that_was_sent_again(s: Script) -> None:
    """The receipt came on another connection, and the message reaches a consumer of the client."""
    s.connect()
    s.producer(producer_name="p", user_provided_producer_name=True)
    s.begin_transaction()
    s.add_partition()
    s.send_in_transaction()
    s.reconnect()
    s.producer(producer_name="p", user_provided_producer_name=True, epoch=1)
    s.send_in_transaction()
    s.receipt(0)
    s.introduce(0)
    s.consumer()
    s.end_transaction(proto.COMMIT)
    s.message(0, stored(0, **TRANSACTION))


@allowed
def a_commit_that_is_asked_for_again(s: Script) -> None:
    s.connect()
    s.begin_transaction()
    s.end_transaction(proto.COMMIT)
    s.reconnect()
    s.introduce(0)
    s.end_transaction(proto.COMMIT)


@allowed
def a_coordinator_of_an_old_broker(s: Script) -> None:
    s.connect(version=18)
    request_id = s.ask(c.NEW_TXN, tc_id=0, txn_ttl_millis=1000)
    s.broker(c.NEW_TXN_RESPONSE, request_id=request_id, **TRANSACTION)


@allowed
def a_coordinator_that_refuses(s: Script) -> None:
    """A refusal names no transaction."""
    s.connect()
    s.introduce(0)
    request_id = s.ask(c.NEW_TXN, tc_id=0, txn_ttl_millis=1000)
    code = proto.TransactionCoordinatorNotFound
    s.broker(c.NEW_TXN_RESPONSE, request_id=request_id, error=code, message="no")


@allowed
def a_message_in_the_transaction_of_another_client(s: Script) -> None:
    s.connect()
    s.consumer()
    s.message(0, stored(0, **TRANSACTION))


@allowed
def a_replicated_message_in_a_transaction_of_its_own_cluster(s: Script) -> None:
    """Its id is by chance that of an open transaction here."""
    s.connect()
    s.consumer()
    s.begin_transaction()
    s.message(0, stored(0, replicated_from="elsewhere", **TRANSACTION))


@allowed
def the_end_of_a_transaction_on_topics_of_another_broker(s: Script) -> None:
    """A broker asks another one, and has opened no transaction there."""
    s.connect()
    request_id = s.ask(c.END_TXN_ON_PARTITION, topic=TOPIC, txn_action=proto.COMMIT, **TRANSACTION)
    s.broker(c.END_TXN_ON_PARTITION_RESPONSE, request_id=request_id, **TRANSACTION)


@allowed
def redeliveries_after_the_abort_of_a_transaction_from_before(s: Script) -> None:
    """A broker that was restarted keeps open transactions, with their acknowledgements."""
    s.connect()
    s.consumer()
    s.message(0)
    s.message(2)
    s.introduce(0)
    s.ask(c.END_TXN, txn_action=proto.ABORT, **TRANSACTION)
    s.message(1)


@allowed
def messages_of_a_transaction_that_timed_out_between_others(s: Script) -> None:
    s.connect()
    s.producer()
    s.begin_transaction()
    s.add_partition()
    s.send(0)
    s.send_in_transaction(1)
    s.send(2)
    s.reconnect()
    s.producer(producer_name="p", epoch=1)
    s.send(0)
    s.send(2)
