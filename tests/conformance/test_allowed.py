"""Frames that look wrong and are allowed: real peers send them, or frames have crossed on their way."""

from collections.abc import Callable

import pytest

from pulsar_sansio.conformance import Session, TopicMemory
from pulsar_sansio.conformance import commands as c
from pulsar_sansio.wire import SingleMessageMetadata, encode_single, proto
from tests.conformance.recordings.recorded import judge
from tests.conformance.script import TOPIC, Script, batch, stored

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


# --- handshake and keep-alive ----------------------------------------------------------------------


@allowed
def a_broker_that_is_full_says_so_before_connect(s: Script) -> None:
    s.error(c.NONE_ID, proto.NotAllowedError)


@allowed
def authentication_in_steps(s: Script) -> None:
    s.client(c.CONNECT, client_version="test", protocol_version=21)
    for _ in range(10):
        s.broker(c.AUTH_CHALLENGE, challenge={"auth_method_name": "m", "auth_data": b"?"})
        s.client(c.AUTH_RESPONSE, response={"auth_method_name": "m", "auth_data": b"!"})
    s.connected()


@allowed
def pings_while_the_handshake_lasts(s: Script) -> None:
    s.client(c.CONNECT, client_version="test", protocol_version=21)
    s.broker(c.PING)
    s.client(c.PONG)
    s.connected()


@allowed
def a_ping_that_has_not_been_read(s: Script) -> None:
    s.connect()
    s.producer()
    s.broker(c.PING)
    s.send(0)
    s.client(c.PONG)
    s.receipt(0)


@allowed
def a_second_ping_when_anything_has_come(s: Script) -> None:
    s.connect()
    s.producer()
    s.send(0)
    s.client(c.PING)
    s.receipt(0)
    s.client(c.PING)


# --- requests --------------------------------------------------------------------------------------


@allowed
def one_number_in_two_spaces(s: Script) -> None:
    s.connect()
    s.consumer()
    s.client(c.PARTITIONED_METADATA, topic=TOPIC, request_id=9)
    s.client(c.CLOSE_CONSUMER, consumer_id=0, request_id=9)
    s.success(9)
    s.broker(c.PARTITIONED_METADATA_RESPONSE, request_id=9, partitions=0, response=0)


@allowed
def a_creation_that_is_given_up(s: Script) -> None:
    """The close is answered, the creation is not, or late."""
    s.connect()
    first = s.open_producer()
    s.close_producer()
    second = s.open_producer(1)
    s.success(s.ask(c.CLOSE_PRODUCER, producer_id=1))
    s.error(second)
    assert first != second


@allowed
def a_pattern_looked_up_like_a_topic(s: Script) -> None:
    s.connect()
    s.ask(c.LOOKUP, topic="persistent://public/default/p-.*")


@allowed
def a_redirect_followed_on_another_connection(s: Script) -> None:
    s.connect()
    redirect = proto.CommandLookupTopicResponse.Redirect
    request_id = s.ask(c.LOOKUP, topic=TOPIC)
    url = "pulsar://other:6650"
    s.broker(
        c.LOOKUP_RESPONSE, request_id=request_id, response=redirect, authoritative=True, brokerServiceUrl=url
    )
    s.reconnect()
    s.ask(c.LOOKUP, topic=TOPIC, authoritative=True)


# --- producers -------------------------------------------------------------------------------------


@allowed
def waiting_for_exclusive_access(s: Script) -> None:
    s.connect()
    request_id = s.open_producer(producer_access_mode=c.WAIT_FOR_EXCLUSIVE)
    s.producer_success(request_id, producer_ready=False)
    s.producer_success(request_id, topic_epoch=1)
    s.send(0)
    s.receipt(0)


@allowed
def the_last_send_of_a_fenced_producer(s: Script) -> None:
    s.connect()
    s.producer(producer_access_mode=0)
    s.send(0)
    s.reconnect()
    s.error(s.open_producer(producer_name="p", epoch=1), proto.ProducerFenced)


@allowed
def sends_that_cross_the_brokers_close(s: Script) -> None:
    s.connect()
    s.producer()
    s.send(0)
    s.broker(c.CLOSE_PRODUCER, producer_id=0, request_id=c.NONE_ID)
    s.send(1)
    s.producer(producer_name="p", epoch=1)
    s.send(0)
    s.send(1)
    s.receipt(0, 0)
    s.receipt(1, 1)


@allowed
def a_receipt_that_was_lost_with_the_connection(s: Script) -> None:
    s.connect()
    s.producer()
    s.stored_message(0, 0)
    s.send(1)
    s.reconnect()
    s.producer(producer_name="p", epoch=1)
    s.send(0)
    s.send(1)
    s.receipt(0, 1)
    s.receipt(1, 2)


@allowed
def messages_that_timed_out_before_others_were_sent(s: Script) -> None:
    s.connect()
    s.producer()
    for sequence_id in range(3):
        s.send(sequence_id)
    s.reconnect()
    s.producer(producer_name="p", epoch=1)
    s.send(1)
    s.send(2)


@allowed
def pending_messages_that_timed_out(s: Script) -> None:
    s.connect()
    s.producer()
    s.send(0)
    s.send(1)
    s.reconnect()
    s.producer(producer_name="p", epoch=1)
    s.send(2)
    s.receipt(2)


@allowed
def a_queue_sent_again_after_a_checksum_error(s: Script) -> None:
    s.connect()
    s.producer()
    s.send(0)
    s.send(1)
    s.broker(c.SEND_ERROR, producer_id=0, sequence_id=0, error=proto.ChecksumError, message="")
    s.receipt(1, 0)
    s.send(0)
    s.send(1)
    s.receipt(0, 1)
    s.receipt(1, 2)


@allowed
def an_application_that_repeats_its_ids(s: Script) -> None:
    """The broker drops duplicates; what it has to say about them overtakes nothing."""
    s.connect()
    s.producer()
    s.stored_message(5, 0)
    s.send(5, stored(5, b"again"))
    s.receipt(5, ledger_id=-1, entry_id=-1)


@allowed
def a_batch_named_by_its_highest_id(s: Script) -> None:
    s.connect()
    s.producer()
    for first in (0, 1):
        singles = [encode_single(SingleMessageMetadata(sequence_id=first + n), b"x") for n in (0, 2, 4)]
        highest = first + 4
        entry = stored(highest, b"".join(singles), num_messages_in_batch=3, highest_sequence_id=highest)
        s.send(highest, entry, num_messages=3, highest_sequence_id=highest)


@allowed
def chunks_sent_again_from_the_middle(s: Script) -> None:
    s.connect()
    s.producer()
    chunks = [
        stored(0, b"xx", uuid="u", chunk_id=chunk, num_chunks_from_msg=3, total_chunk_msg_size=6)
        for chunk in range(3)
    ]
    for chunk in chunks[:2]:
        s.send(0, chunk, is_chunk=True)
    s.receipt(0, 0)
    s.reconnect()
    s.producer(producer_name="p", epoch=1)
    for chunk in chunks[1:]:
        s.send(0, chunk, is_chunk=True)


@allowed
def a_last_id_below_a_confirmed_chunk_that_was_not_the_last(s: Script) -> None:
    """BROKER-40; and the message before it was given up, so nothing has its id."""
    s.connect()
    s.producer()
    s.send(0)
    s.receipt(0)
    chunk = stored(2, b"xx", uuid="u", chunk_id=0, num_chunks_from_msg=2, total_chunk_msg_size=4)
    s.send(2, chunk, is_chunk=True)
    s.receipt(2, 1)
    s.reconnect()
    s.producer_success(s.open_producer(producer_name="p", epoch=1), last_sequence_id=0)


@allowed
def a_refused_chunk_sent_again_without_those_before_it(s: Script) -> None:
    """The earlier chunks were confirmed; a later message, sent behind them, comes once more."""
    s.connect()
    s.producer()
    first, second = (
        [
            stored(
                message,
                b"xx",
                uuid=f"u{message}",
                chunk_id=chunk,
                num_chunks_from_msg=2,
                total_chunk_msg_size=4,
            )
            for chunk in range(2)
        ]
        for message in range(2)
    )
    for message, chunks in enumerate((first, second)):
        for chunk in chunks:
            s.send(message, chunk, is_chunk=True)
    s.receipt(0, 0)
    s.broker(c.SEND_ERROR, producer_id=0, sequence_id=0, error=proto.PersistenceError, message="")
    s.reconnect()
    s.producer(producer_name="p", epoch=1)
    s.send(0, first[1], is_chunk=True)
    for chunk in second:
        s.send(1, chunk, is_chunk=True)


@allowed
def a_producer_that_is_opened_again_while_it_is_being_closed(s: Script) -> None:
    """The broker refuses until the close is done, and finishes the old registration first."""
    s.connect()
    s.producer()
    s.send(0)
    closing = s.ask(c.CLOSE_PRODUCER, producer_id=0)
    refused = s.open_producer(producer_name="p", epoch=1)
    s.error(refused)
    s.receipt(0)
    s.success(closing)
    s.producer(producer_name="p", epoch=2)


@allowed
def receipts_that_come_after_the_brokers_close(s: Script) -> None:
    s.connect()
    s.producer()
    s.send(0)
    s.broker(c.CLOSE_PRODUCER, producer_id=0, request_id=c.NONE_ID)
    again = s.open_producer(producer_name="p", epoch=1)
    s.receipt(0)
    s.producer_success(again)
    s.send(0)
    s.receipt(0, 1)


# --- consumers -------------------------------------------------------------------------------------


@allowed
def a_batch_that_takes_permits_below_zero(s: Script) -> None:
    s.connect()
    s.consumer(permits=1)
    s.message(0, batch(0, 5))
    s.flow(5)
    s.message(1)


@allowed
def messages_that_cross_the_clients_close(s: Script) -> None:
    s.connect()
    s.consumer()
    request_id = s.ask(c.CLOSE_CONSUMER, consumer_id=0)
    s.message(0)
    s.success(request_id)


@allowed
def a_consumer_that_is_subscribed_again_while_it_is_being_closed(s: Script) -> None:
    s.connect()
    s.consumer()
    closing = s.ask(c.CLOSE_CONSUMER, consumer_id=0)
    again = s.subscribe()
    s.message(0)
    s.success(closing)
    s.success(again)
    s.flow(10)
    s.message(0)


@allowed
def closing_while_unsubscribing(s: Script) -> None:
    s.connect()
    s.consumer()
    leaving = s.ask(c.UNSUBSCRIBE, consumer_id=0)
    closing = s.ask(c.CLOSE_CONSUMER, consumer_id=0)
    s.success(leaving)
    s.success(closing)


@allowed
def a_checksum_that_the_broker_adds(s: Script) -> None:
    s.connect()
    s.producer()
    s.consumer()
    s.send(0, stored(0, checksum=False))
    s.receipt(0)
    s.message(0, stored(0))


@allowed
def acknowledgements_that_cross_the_brokers_close(s: Script) -> None:
    s.connect()
    s.consumer()
    s.message(0)
    s.broker(c.CLOSE_CONSUMER, consumer_id=0, request_id=c.NONE_ID)
    s.ack(0)
    s.consumer()
    s.message(0)


@allowed
def acknowledging_what_an_earlier_connection_brought(s: Script) -> None:
    s.connect()
    s.consumer(kind=c.SHARED)
    s.message(0)
    s.reconnect()
    s.consumer(kind=c.SHARED)
    s.ack(0)


@allowed
def a_client_that_gave_up_waiting_for_unsubscribe(s: Script) -> None:
    s.connect()
    s.consumer()
    leaving = s.ask(c.UNSUBSCRIBE, consumer_id=0)
    s.message(0)
    s.ack(0)
    s.success(leaving)
    s.flow(1)


@allowed
def a_client_that_gave_up_waiting_for_a_seek(s: Script) -> None:
    s.connect()
    s.consumer()
    s.ask(c.SEEK, consumer_id=0, message_publish_time=0)
    s.client(c.PING)
    s.broker(c.PONG)
    s.ask(c.SEEK, consumer_id=0, message_publish_time=0)


@allowed
def acknowledging_what_came_before_an_attempt_that_was_given_up(s: Script) -> None:
    s.connect()
    s.consumer(kind=c.SHARED)
    s.message(0)
    s.reconnect()
    s.subscribe(kind=c.SHARED)
    s.close_consumer()
    s.consumer(kind=c.SHARED)
    s.ack(0)


@allowed
def the_position_before_the_first_entry(s: Script) -> None:
    s.connect()
    s.consumer()
    s.message(0, batch(0, 3))
    s.ack(-1, ack_type=1)


@allowed
def the_entry_before_a_batch_that_was_begun(s: Script) -> None:
    s.connect()
    s.consumer()
    s.message(7, batch(0, 3))
    s.ack(6, ack_type=1)


@allowed
def sets_that_begin_anew_after_a_redelivery(s: Script) -> None:
    s.connect()
    s.consumer(kind=c.SHARED)
    s.message(0, batch(0, 8), ack_set=213)
    for bits in (254, 250, 234, 170, 42):
        s.ack(0, sets=(bits,))


@allowed
def one_entry_several_times_in_one_acknowledgement(s: Script) -> None:
    s.connect()
    s.consumer(kind=c.SHARED)
    s.message(0, batch(0, 8))
    s.ack(0, 0, 0, sets=(122, 122, 122))


@allowed
def a_request_for_everything_on_shared_with_epoch_zero(s: Script) -> None:
    s.connect()
    s.consumer(kind=c.SHARED, consumer_epoch=0)
    s.message(0)
    s.redeliver(consumer_epoch=0)
    s.message(0, redelivery_count=1)


@allowed
def a_failover_consumer_that_asks_once_more(s: Script) -> None:
    s.connect()
    s.consumer(kind=c.FAILOVER, consumer_epoch=0)
    s.redeliver(consumer_epoch=1)
    s.broker(c.ACTIVE_CONSUMER_CHANGE, consumer_id=0, is_active=True)
    s.redeliver(consumer_epoch=1)


@allowed
def a_failover_consumer_that_asked_before_it_reads_that_it_is_active(s: Script) -> None:
    s.connect()
    s.consumer(kind=c.FAILOVER, consumer_epoch=0)
    for is_active in (True, False, True):
        s.broker(c.ACTIVE_CONSUMER_CHANGE, consumer_id=0, is_active=is_active)
    s.redeliver(consumer_epoch=1)
    s.redeliver(consumer_epoch=1)
    s.redeliver(consumer_epoch=2)
    s.redeliver(consumer_epoch=2)


@allowed
def a_rewind(s: Script) -> None:
    s.connect()
    s.consumer(consumer_epoch=0)
    s.message(0, consumer_epoch=0)
    s.message(1, consumer_epoch=0)
    s.redeliver(consumer_epoch=1)
    s.message(2, consumer_epoch=0)  # on its way
    s.message(0, consumer_epoch=1)
    s.message(1, consumer_epoch=1)
    s.message(2, consumer_epoch=1)


@allowed
def a_seek(s: Script) -> None:
    s.connect()
    s.consumer()
    s.message(0)
    s.message(1)
    request_id = s.ask(c.SEEK, consumer_id=0, message_publish_time=0)
    s.message(2)
    s.broker(c.CLOSE_CONSUMER, consumer_id=0, request_id=c.NONE_ID)
    s.success(request_id)
    s.consumer()
    s.message(0)


# --- several connections, several clients ----------------------------------------------------------


def test_a_client_that_is_gone_leaves_its_numbers_to_others() -> None:
    script = Script()
    script.connect()
    script.producer()
    session = Session()
    assert judge(script.frames, session) == []
    session.end(0)
    again = Script()
    again.connect()
    again.producer(producer_name="p", epoch=1)
    assert judge(again.frames, session) == []


def test_clients_that_share_a_memory_of_topics_are_compared() -> None:
    topics = TopicMemory()
    sender = Script()
    sender.connect()
    sender.producer()
    sender.stored_message(0, 0)
    assert judge(sender.frames, Session(topics=topics)) == []
    receiver = Script()
    receiver.connect()
    receiver.consumer()
    receiver.message(0, stored(0, b"y"))
    assert judge(receiver.frames) == []
    assert [violation.rule_id for violation in judge(receiver.frames, Session(topics=topics))] == ["INV-C2"]


# --- schemas ---------------------------------------------------------------------------------------


@allowed
def answers_about_schemas(s: Script) -> None:
    """No schema is a schema of NONE, whose version a broker may give, and old clients write null."""
    s.connect()
    none = {"name": "", "schema_data": b"", "type": 0}
    old = {"name": "", "schema_data": b"null", "type": proto.Schema.Int32}
    for schema, version in ((none, b""), (none, bytes(8)), (old, bytes(8))):
        asked = s.ask(c.GET_OR_CREATE_SCHEMA, topic=TOPIC, schema=schema)
        s.broker(c.GET_OR_CREATE_SCHEMA_RESPONSE, request_id=asked, schema_version=version)
    asked = s.ask(c.GET_OR_CREATE_SCHEMA, topic=TOPIC, schema={**old, "schema_data": b"x"})
    fields = {"error_code": proto.IncompatibleSchema, "error_message": "no"}
    s.broker(c.GET_OR_CREATE_SCHEMA_RESPONSE, request_id=asked, **fields)
    s.error(s.subscribe(schema=old), proto.IncompatibleSchema)
