"""One producer, from `send` to the receipt. Tests of batches are in test_open_batch."""

import pytest

from pulsar_sansio.client.outputs import (
    Attached,
    Closed,
    Detached,
    Disconnect,
    Receipts,
    RequestDone,
    RequestFailed,
    SendFailed,
)
from pulsar_sansio.client.producing.producer import Producer
from pulsar_sansio.model.config import (
    BatchingPolicy,
    OutgoingMessage,
    ProducerSpec,
)
from pulsar_sansio.model.errors import (
    BrokerError,
    ChecksumMismatch,
    ClosedError,
    MessageTooLarge,
    NotAllowed,
    ProducerBlockedQuotaExceeded,
    ProducerFenced,
    TopicTerminated,
)
from pulsar_sansio.model.message_id import MessageId
from pulsar_sansio.wire import encode_command, proto, split_batch, unpack_payload
from tests.client.producing.sender import Sender, receipts, tickets
from tests.client.script import (
    WALL,
    Command,
    Script,
    frame_close_producer,
    frame_error,
    frame_lookup,
    frame_producer_success,
    frame_receipt,
    frame_send_error,
    frame_success,
)


def test_a_key_of_bytes_is_base64_text_with_a_flag() -> None:
    """In a message by itself, in a batch's members, and in the batch's own metadata."""
    sender = Sender()
    sender.send(OutgoingMessage(b"m", key=b"\x00\xff"))
    (send,) = sender.sent()
    metadata = unpack_payload(send.payload).metadata
    assert (metadata.partition_key, metadata.partition_key_b64_encoded) == ("AP8=", True)
    sender = Sender(spec=ProducerSpec(topic="demo", batching=BatchingPolicy(max_messages=2)))
    sender.send(OutgoingMessage(b"0", key=b"\x00\xff"))
    sender.send(OutgoingMessage(b"1", key="AP8="))
    (send,) = sender.sent()
    unpacked = unpack_payload(send.payload)
    assert (unpacked.metadata.partition_key, unpacked.metadata.partition_key_b64_encoded) == ("AP8=", True)
    batch = split_batch(unpacked.payload, 2)
    singles = [batch.single(index) for index in range(2)]
    assert [(single.partition_key, single.partition_key_b64_encoded) for single in singles] == [
        ("AP8=", True),
        ("AP8=", False),
    ]


# --- sending ---------------------------------------------------------------------------------------


def test_a_message_goes_out_and_its_receipt_comes_back() -> None:
    """java-produce-single: SEND with producer_id and sequence_id only; uncompressed_size in the metadata.
    Rules MSG-09, PROD-08 and PROD-40."""
    sender = Sender()
    assert sender.send(b"m0") == 0
    (send,) = sender.sent()
    assert (send.producer_id, send.sequence_id, send.num_messages, send.highest_sequence_id) == (
        0,
        0,
        1,
        None,
    )
    unpacked = unpack_payload(send.payload)
    assert unpacked.checksum_ok
    assert unpacked.payload == b"m0"
    assert unpacked.metadata.__dict__ == {
        "producer_name": "p-1",
        "sequence_id": 0,
        "publish_time": WALL,
        "uncompressed_size": 2,
    }
    sender.script.feed(sender.link, frame_receipt(0, 7, 5))
    assert receipts(*sender.script.said()) == [(0, [MessageId(7, 5)])]


def test_everything_that_goes_with_a_message() -> None:
    """java-produce-single, the message `full` and the null one. Rules MSG-06 and MSG-08."""
    sender = Sender()
    sender.send(
        OutgoingMessage(
            b"full", key="k", properties={"a": "1", "b": "2"}, ordering_key=b"o", event_time=1_700_000_000_000
        )
    )
    sender.send(OutgoingMessage(None))
    sender.send(OutgoingMessage(b"later", deliver_at=WALL + 1000, replicate_to=("east",)))
    full, null, later = (unpack_payload(send.payload).metadata.__dict__ for send in sender.sent())
    assert full == {
        "producer_name": "p-1",
        "sequence_id": 0,
        "publish_time": WALL,
        "properties": [("a", "1"), ("b", "2")],
        "partition_key": "k",
        "uncompressed_size": 4,
        "event_time": 1_700_000_000_000,
        "partition_key_b64_encoded": False,
        "ordering_key": b"o",
    }
    assert null["null_value"] is True
    assert null["uncompressed_size"] == 0
    assert (later["deliver_at_time"], later["replicate_to"]) == (WALL + 1000, ["east"])


def test_receipts_that_come_together_are_one_output() -> None:
    sender = Sender()
    for _ in range(5):
        sender.send()
    sender.script.feed(sender.link, *(frame_receipt(n, 7, n) for n in range(3)))
    (output,) = sender.script.said()
    assert isinstance(output, Receipts)
    assert (output.first, len(output.message_ids)) == (0, 3)
    assert output.message_ids[-1] == MessageId(7, 2)
    sender.script.feed(sender.link, frame_receipt(3, 7, 3), frame_receipt(4, 8, 0))
    assert receipts(*sender.script.said()) == [(3, [MessageId(7, 3), MessageId(8, 0)])]


def test_an_output_that_was_taken_does_not_grow() -> None:
    sender = Sender()
    sender.send()
    sender.send()
    sender.script.feed(sender.link, frame_receipt(0))
    (first,) = sender.script.said()
    sender.script.feed(sender.link, frame_receipt(1))
    assert isinstance(first, Receipts)
    assert len(first.message_ids) == 1


def test_a_receipt_without_an_id_is_a_success_with_an_invalid_id() -> None:
    """Rule CONN-08: -1:-1 from deduplication and from non-persistent topics."""
    sender = Sender()
    sender.send()
    sender.send()
    no_id = proto.CommandSendReceipt(producer_id=0, sequence_id=1)
    sender.script.feed(sender.link, frame_receipt(0, -1, -1), encode_command(Command.SEND_RECEIPT, no_id))
    assert receipts(*sender.script.said()) == [(0, [MessageId(-1, -1), MessageId(-1, -1)])]


def test_the_partition_in_a_topics_name_is_in_its_ids() -> None:
    sender = Sender(spec=ProducerSpec(topic="demo-partition-3", batching=None))
    sender.send()
    sender.script.feed(sender.link, frame_receipt(0, 7, 5))
    assert receipts(*sender.script.said()) == [(0, [MessageId(7, 5, 3)])]


# --- errors of single messages (CONN-09) ---------------------------------------------------------


def test_not_allowed_fails_that_message_and_no_other() -> None:
    sender = Sender()
    for _ in range(3):
        sender.send()
    sender.sent()
    sender.script.feed(sender.link, frame_send_error(1, proto.NotAllowedError, "too big for the topic"))
    failed = sender.script.expect_one(SendFailed)
    assert (failed.first, failed.count) == (1, 1)
    assert isinstance(failed.error, NotAllowed)
    sender.script.feed(sender.link, frame_receipt(0), frame_receipt(2))
    assert [ticket for output in sender.script.said() for ticket in tickets(output)] == [0, 2]
    sender.script.feed(sender.link, frame_send_error(77, proto.NotAllowedError))
    assert sender.script.said() == []


def test_topic_terminated_fails_everything_for_good() -> None:
    """Rules PROD-45, PROD-26 and ERR-09."""
    sender = Sender()
    sender.send()
    sender.send()
    sender.script.feed(sender.link, frame_send_error(0, proto.TopicTerminatedError, "over"))
    failed, closed = sender.script.said()
    assert isinstance(failed, SendFailed)
    assert (failed.first, failed.count) == (0, 2)
    assert isinstance(closed, Closed)
    assert isinstance(closed.error, TopicTerminated)
    with pytest.raises(ClosedError, match="over"):
        sender.send()
    sender.script.lose(sender.link)
    sender.script.advance(60)
    assert sender.script.said() == []


def test_termination_is_learnt_on_the_way_back() -> None:
    """java-terminate: CLOSE_PRODUCER, then PRODUCER refused with TopicTerminatedError (rule PROD-22)."""
    sender = Sender()
    sender.send()
    sender.sent()
    script, link = sender.script, sender.link
    script.feed(link, frame_close_producer())
    script.advance(0.2)
    script.find_topic(link)
    asked = script.sent(link, Command.PRODUCER)
    script.feed(link, frame_error(asked.request_id, proto.TopicTerminatedError, "already terminated"))
    assert [type(output) for output in script.said()] == [Detached, SendFailed, Closed]


def test_a_fenced_producer_is_closed_for_good() -> None:
    """java-access-fencing (rule PROD-55): the connection is closed, and the reconnect ends in
    ProducerFenced. Rule ERR-14."""
    sender = Sender()
    script = sender.script
    sender.send()
    sender.sent()
    script.lose(sender.link)
    script.said()
    script.advance(0.2)
    link = script.ready_link()
    script.find_topic(link)
    asked = script.sent(link, Command.PRODUCER)
    script.feed(link, frame_error(asked.request_id, proto.ProducerFenced, "fenced"))
    failed, closed = script.said()
    assert isinstance(failed, SendFailed)
    assert isinstance(closed, Closed)
    assert isinstance(closed.error, ProducerFenced)


@pytest.mark.parametrize("code", [proto.PersistenceError, proto.MetadataError, proto.UnknownError])
def test_any_other_error_closes_the_link_and_everything_goes_again(code: int) -> None:
    """Rules CONN-09 and PROD-57."""
    sender = Sender()
    sender.send()
    sender.sent()
    sender.script.feed(sender.link, frame_send_error(0, code))
    gone, detached = sender.script.said()
    assert isinstance(gone, Disconnect)
    assert isinstance(detached, Detached)
    sender.reattach()
    assert [send.sequence_id for send in sender.sent()] == [0]


def test_a_checksum_error_of_an_intact_message_sends_everything_again() -> None:
    """Rule PROD-44: the message was damaged on the way."""
    sender = Sender()
    sender.send()
    sender.send()
    sender.sent()
    sender.script.feed(sender.link, frame_send_error(0, proto.ChecksumError))
    ended, detached = sender.script.said()
    assert isinstance(ended, Disconnect)
    assert isinstance(detached, Detached)
    assert isinstance(detached.cause.__cause__, BrokerError)
    sender.reattach()
    assert [send.sequence_id for send in sender.sent()] == [0, 1]


def test_a_checksum_error_of_a_message_damaged_in_memory_fails_it() -> None:
    """Rule ERR-13."""
    sender = Sender()
    sender.send(b"first")
    sender.send(b"second")
    sender.sent()
    producer = sender.script.client._handles.producers[sender.handle]
    assert isinstance(producer, Producer)
    head = producer._window.entries[0]
    assert isinstance(head.frame, bytes)
    head.frame = head.frame.replace(b"first", b"fir5t")
    sender.script.feed(sender.link, frame_send_error(0, proto.ChecksumError))
    failed = sender.script.expect_one(SendFailed)
    assert (failed.first, failed.count) == (0, 1)
    assert isinstance(failed.error, ChecksumMismatch)
    sender.script.feed(sender.link, frame_receipt(1))
    assert isinstance(sender.script.said()[0], Receipts)


def test_a_checksum_error_for_nothing_is_ignored() -> None:
    sender = Sender()
    sender.script.feed(sender.link, frame_send_error(0, proto.ChecksumError))
    assert sender.script.said() == []


# --- reconnect (rule PROD-46) ------------------------------------------------------------------------


def test_what_is_unconfirmed_goes_again_in_order_byte_for_byte_before_anything_new() -> None:
    """Rules PROD-14, PROD-19 and GAP-29."""
    sender = Sender()
    for number in range(4):
        sender.send(b"m%d" % number)
    before = sender.sent()
    sender.script.feed(sender.link, frame_receipt(0))
    sender.script.said()
    sender.script.lose(sender.link)
    sender.script.said()
    assert sender.send(b"while away") == 4
    sender.script.advance(0.2)
    sender.link = sender.script.ready_link()
    sender.script.find_topic(sender.link)
    asked = sender.script.sent(sender.link, Command.PRODUCER)
    sender.script.feed(sender.link, frame_producer_success(asked.request_id, last_sequence_id=2))
    attached = sender.script.expect_one(Attached)
    assert (attached.id, attached.last_sequence_id) == (sender.handle, 2)
    sender.send(b"new")
    again = sender.sent()
    assert [send.sequence_id for send in again] == [1, 2, 3, 4, 5]
    assert again[:3] == before[1:]
    sender.script.feed(sender.link, *(frame_receipt(n, 8, n) for n in range(1, 6)))
    (output,) = sender.script.said()
    assert isinstance(output, Receipts)
    assert (output.first, len(output.message_ids)) == (1, 5)


def test_what_the_new_broker_would_not_accept_fails_instead_of_ending_every_connection() -> None:
    sender = Sender()
    sender.send(bytes(30_000))
    sender.send(b"small")
    sender.reattach(max_message_size=4096)
    outputs = sender.script.said()
    assert [type(output) for output in outputs] == [SendFailed, Attached]
    assert isinstance(outputs[0], SendFailed)
    assert outputs[0].first == 0
    assert isinstance(outputs[0].error, MessageTooLarge)
    assert [send.sequence_id for send in sender.sent()] == [1]
    with pytest.raises(MessageTooLarge, match="4096"):
        sender.send(bytes(4097))


def test_the_quota_exception_fails_what_is_pending_and_tries_on() -> None:
    """Rule PROD-21: the other quota code only waits. Rule ERR-10."""
    for code, fails in (
        (proto.ProducerBlockedQuotaExceededException, True),
        (proto.ProducerBlockedQuotaExceededError, False),
    ):
        sender = Sender()
        script = sender.script
        sender.send()
        sender.sent()
        script.feed(sender.link, frame_close_producer())
        script.advance(0.2)
        script.find_topic(sender.link)
        asked = script.sent(sender.link, Command.PRODUCER)
        script.said()
        script.feed(sender.link, frame_error(asked.request_id, code))
        outputs = script.said()
        assert bool(outputs) is fails
        if fails:
            assert isinstance(outputs[0], SendFailed)
            assert isinstance(outputs[0].error, ProducerBlockedQuotaExceeded)
        script.advance(0.3)
        script.sent(sender.link, Command.LOOKUP)


# --- flush and close -------------------------------------------------------------------------------


def test_flush_waits_for_what_was_sent_before_it() -> None:
    """Rule PROD-49."""
    sender = Sender()
    client, now = sender.script.client, sender.script.now
    idle = client.flush(now, sender.handle)
    sender.script.expect(RequestDone(idle, None))
    sender.send()
    sender.send()
    first = client.flush(now, sender.handle)
    sender.send()
    second = client.flush(now, sender.handle)
    sender.script.feed(sender.link, frame_receipt(0), frame_receipt(1))
    assert sender.script.said()[-1] == RequestDone(first, None)
    sender.script.feed(sender.link, frame_receipt(2))
    assert sender.script.said()[-1] == RequestDone(second, None)


def test_flush_does_not_wait_for_what_comes_after_it() -> None:
    sender = Sender(batching=BatchingPolicy(max_delay=60.0))
    client, now = sender.script.client, sender.script.now
    sender.send()
    request = client.flush(now, sender.handle)
    sender.send()
    sender.script.feed(sender.link, frame_receipt(0))
    assert sender.script.said()[-1] == RequestDone(request, None)


def test_a_refused_message_lets_a_flush_that_waited_for_it_fail() -> None:
    sender = Sender()
    client, now = sender.script.client, sender.script.now
    sender.send()
    request = client.flush(now, sender.handle)
    sender.script.feed(sender.link, frame_send_error(0, proto.NotAllowedError))
    failed, flushed = sender.script.said()
    assert isinstance(failed, SendFailed)
    assert flushed == RequestFailed(request, failed.error)


def test_flush_fails_with_what_it_waited_for() -> None:
    sender = Sender(send_timeout=1.0)
    client, now = sender.script.client, sender.script.now
    sender.send()
    request = client.flush(now, sender.handle)
    abandoned = client.flush(now, sender.handle)
    client.abandon(now, abandoned)
    sender.script.advance(1)
    failed, flushed = sender.script.said()
    assert isinstance(failed, SendFailed)
    assert isinstance(flushed, RequestFailed)
    assert flushed.request == request
    assert flushed.error is failed.error


def test_close_fails_what_is_not_confirmed_when_the_broker_answers() -> None:
    """Rule PROD-52 (section 41.4): every ticket and request is settled."""
    sender = Sender()
    script, client = sender.script, sender.script.client
    sender.send()
    sender.send()
    flush = client.flush(script.now, sender.handle)
    request = client.close(script.now, sender.handle)
    with pytest.raises(ClosedError):
        sender.send()
    with pytest.raises(ClosedError):
        client.flush(script.now, sender.handle)
    *_, (_, close) = script.commands(sender.link)
    script.feed(sender.link, frame_receipt(0), frame_success(close.request_id))
    receipt, failed, flushed, closed, done = script.said()
    assert isinstance(receipt, Receipts)
    assert isinstance(failed, SendFailed)
    assert (failed.first, failed.count) == (1, 1)
    assert isinstance(failed.error, ClosedError)
    assert isinstance(flushed, RequestFailed)
    assert flushed.request == flush
    assert closed == Closed(sender.handle, None)
    assert done == RequestDone(request, None)
    with pytest.raises(ClosedError):
        sender.send()


def test_close_while_detached_is_complete_at_once() -> None:
    """Rule PROD-51 (section 41.4): the open batch and the pending messages too. Rules PROD-26 and PROD-27."""
    sender = Sender(batching=BatchingPolicy(max_delay=60.0))
    script, client = sender.script, sender.script.client
    sender.send(b"pending")
    client.push(script.now, sender.handle)
    script.lose(sender.link)
    script.said()
    sender.send(b"in the batch")
    request = client.close(script.now, sender.handle)
    outputs = script.said()
    assert sorted(ticket for output in outputs for ticket in tickets(output)) == [0, 1]
    assert outputs[-2:] == [Closed(sender.handle, None), RequestDone(request, None)]
    assert client.next_deadline() is None


def test_a_second_close_while_closing_is_done_with_the_first_and_a_third_at_once() -> None:
    """Rule PROD-50."""
    sender = Sender()
    script, client = sender.script, sender.script.client
    first = client.close(script.now, sender.handle)
    second = client.close(script.now, sender.handle)
    close = script.sent(sender.link, Command.CLOSE_PRODUCER)
    script.feed(sender.link, frame_success(close.request_id))
    script.expect(Closed(sender.handle, None), RequestDone(first, None), RequestDone(second, None))
    third = client.close(script.now, sender.handle)
    script.expect(RequestDone(third, None))


def test_every_ticket_is_settled_once_whatever_happens() -> None:
    sender = Sender(send_timeout=5.0, batching=BatchingPolicy(max_messages=3))
    script = sender.script
    script.history.clear()
    for number in range(20):
        sender.send(b"%d" % number)
        if number == 7:
            script.feed(sender.link, frame_receipt(0, 1, 0, 2))
        if number == 12:
            sender.reattach()
            script.said()
    script.advance(6)
    settled = [ticket for output in script.history for ticket in tickets(output)]
    assert sorted(settled) == list(range(20))
    assert len(settled) == 20


@pytest.mark.parametrize("chop", [False, True])
def test_a_whole_conversation_fed_byte_by_byte_gives_the_same_outputs(chop: bool) -> None:
    """Rule INV-D2."""
    script = Script(chop=chop)
    sender = Sender(script)
    for number in range(5):
        sender.send(b"m%d" % number)
    script.feed(sender.link, frame_receipt(0), frame_receipt(1), frame_close_producer())
    script.advance(0.2)
    lookup = script.commands(sender.link)[-1][1]
    script.feed(sender.link, frame_lookup(lookup.request_id, "pulsar://next:1"))
    script.outputs = [output for output in script.said() if type(output).__name__ == "Connect"]
    link = script.ready_link("next")
    asked = script.sent(link, Command.PRODUCER)
    script.feed(link, frame_producer_success(asked.request_id))
    assert [command.sequence_id for _, command in script.commands(link)] == [2, 3, 4]
    script.feed(link, *(frame_receipt(n) for n in (2, 3, 4)))
    settled = [ticket for output in script.history for ticket in tickets(output)]
    assert settled == [0, 1, 2, 3, 4]
