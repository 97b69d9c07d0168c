"""Groups of acknowledgements: the moment when they are sent, and whether they arrived."""

from typing import Any

import pytest

from pulsar_sansio.client.outputs import RequestDone, RequestFailed
from pulsar_sansio.model.config import SubscriptionType
from pulsar_sansio.model.errors import BrokerError, ClosedError, ConnectionLost, TimedOut
from pulsar_sansio.model.message_id import EARLIEST
from pulsar_sansio.wire import proto
from tests.client.broker_script import MILLISECOND, SECOND, ConsumerScript

SHARED = SubscriptionType.SHARED


def started(**spec: Any) -> ConsumerScript:
    spec.setdefault("receiver_queue_size", 100_000)
    script = ConsumerScript(**spec)
    script.accept()
    script.frames()
    script.outputs()
    return script


def deliver(s: ConsumerScript, entries: int) -> list[Any]:
    for entry in range(entries):
        s.message(entry)
    return s.take()


def confirm(s: ConsumerScript, ack: Any, error: int | None = None) -> None:
    response = proto.CommandAckResponse(consumer_id=0, request_id=ack.request_id)
    if error is not None:
        response.error = error  # type: ignore[assignment]
        response.message = "no"
    s.say("ACK_RESPONSE", response)


def requests(s: ConsumerScript) -> list[Any]:
    return [output for output in s.outputs() if isinstance(output, RequestDone | RequestFailed)]


class TestGrouping:
    def test_by_time_from_the_first_on(self) -> None:
        """Rules ACK-12, ACK-15 and TIMER-09."""
        s = started(acknowledgement_group_time=0.1)
        messages = deliver(s, 3)
        s.acknowledge(messages[2])
        s.pass_time(60 * MILLISECOND)
        s.acknowledge(messages[0])
        s.pass_time(39 * MILLISECOND)
        s.expect()
        s.pass_time(MILLISECOND)
        (ack,) = s.expect("ACK")  # ACK-10, ACK-15
        assert (ack.ack_type, ack.message_ids) == (0, [(1, 0, None), (1, 2, None)])
        assert ack.request_id is None
        s.pass_time(SECOND)
        s.expect()

    def test_each_group_has_its_own_time(self) -> None:
        s = started(acknowledgement_group_time=0.1)
        for message in deliver(s, 3):
            s.acknowledge(message)
            s.pass_time(100 * MILLISECOND)
            s.expect("ACK")

    def test_by_number(self) -> None:
        """Rules ACK-12 and GAP-30."""
        s = started(acknowledgement_group_size=3, acknowledgement_group_time=3600.0)
        messages = deliver(s, 7)
        for message in messages:
            s.acknowledge(message)
        first, second = s.expect("ACK", "ACK")  # ACK-12
        assert (len(first.message_ids), len(second.message_ids)) == (3, 3)

    def test_by_number_over_both_kinds(self) -> None:
        """BUG: one ordinary and one index acknowledgement never reached the size of 2."""
        s = started(
            acknowledgement_group_size=2,
            acknowledgement_group_time=3600.0,
            batch_index_acknowledgement=True,
            subscription_type=SHARED,
        )
        s.message(0)
        s.batch(1, 3)
        single, first, *_ = s.take()
        s.acknowledge(single)
        s.acknowledge(first)
        (ack,) = s.expect("ACK")
        assert ack.message_ids == [(1, 0, None), (1, 1, 0b110)]

    def test_a_list_is_one_ack(self) -> None:
        s = started(acknowledgement_group_time=0.0)
        s.acknowledge(deliver(s, 1500))
        first, second = s.expect("ACK", "ACK")
        assert (len(first.message_ids), len(second.message_ids)) == (1000, 500)

    def test_at_once(self) -> None:
        """Rule ACK-11."""
        s = started(acknowledgement_group_time=0.0)
        for message in deliver(s, 2):
            s.acknowledge(message)
        s.expect("ACK", "ACK")  # ACK-11

    def test_a_cumulative_one_waits_for_the_timer_and_only_the_greatest_goes(self) -> None:
        s = started()
        for message in deliver(s, 3):
            s.acknowledge_cumulative(message)
        s.expect()
        s.pass_time(SECOND)
        (ack,) = s.expect("ACK")  # ACK-14
        assert (ack.ack_type, ack.message_ids) == (1, [(1, 2, None)])

    def test_to_an_old_broker_one_by_one(self) -> None:
        """Rule ACK-10."""
        s = ConsumerScript(protocol_version=11)
        s.accept()
        s.frames()
        s.acknowledge(deliver(s, 3))
        s.pass_time(SECOND)
        acks = s.expect("ACK", "ACK", "ACK")
        assert [ack.message_ids for ack in acks] == [[(1, entry, None)] for entry in range(3)]

    def test_a_topic_without_memory_takes_none(self) -> None:
        """Rules CONS-06 and ACK-13."""
        s = started(topic="non-persistent://a/b/c", acknowledgement_group_time=0.0)
        s.acknowledge(deliver(s, 2))
        s.flush()
        assert requests(s) == [RequestDone(2, None)]
        s.pass_time(SECOND)
        s.expect()  # ACK-13

    def test_closing_sends_what_waits(self) -> None:
        """Rules ACK-14 and ACK-19."""
        s = started(acknowledgement_group_time=3600.0)
        s.acknowledge(deliver(s, 1))
        s.close()
        s.expect("ACK", "CLOSE_CONSUMER")  # ACK-19


@pytest.mark.parametrize("group_time", [0.0, 0.1, 3600.0])
class TestWhileDetached:
    def test_what_is_acknowledged_goes_first_on_the_next_connection(self, group_time: float) -> None:
        """Rules ACK-03, ACK-16 and ACK-17."""
        s = started(acknowledgement_group_time=group_time)
        messages = deliver(s, 3)
        s.lose()
        s.acknowledge(messages[0])
        s.acknowledge(messages[1:])
        s.pass_time(SECOND)
        s.accept()
        ack, _ = s.expect("ACK", "FLOW")  # ACK-16, ACK-17: before any permit
        assert ack.message_ids == [(1, 0, None), (1, 1, None), (1, 2, None)]

    def test_so_does_what_waited_when_the_connection_died(self, group_time: float) -> None:
        s = started(acknowledgement_group_time=group_time or 0.1)
        s.batch(0, 2)
        first, second = s.take()
        s.acknowledge(first)
        s.acknowledge_cumulative(second)
        s.reconnect()
        ack, _ = s.expect("ACK", "FLOW")
        assert (ack.ack_type, ack.message_ids) == (1, [(1, 0, None)])

    def test_a_subscription_that_is_not_durable_has_no_use_for_it(self, group_time: float) -> None:
        s = started(durable=False, acknowledgement_group_time=group_time)
        messages = deliver(s, 2)
        s.frames()
        s.lose()
        s.acknowledge(messages)
        s.pass_time(SECOND)
        s.accept()
        s.expect("FLOW")


def test_a_cumulative_one_that_may_be_lost_can_be_given_again() -> None:
    s = started(acknowledgement_group_time=0.0)
    messages = deliver(s, 2)
    s.acknowledge_cumulative(messages[1])
    s.expect("ACK")
    s.close_by_broker()
    s.acknowledge_cumulative(messages[1])
    s.pass_time(SECOND)
    s.accept()
    assert [name for name, _ in s.frames()] == ["ACK", "FLOW"]


class TestFlush:
    def test_is_done_when_the_broker_has_confirmed(self) -> None:
        """Rules ACK-09 and GAP-31."""
        s = started(acknowledgement_group_time=3600.0)
        s.acknowledge(deliver(s, 2))
        request = s.flush()
        (ack,) = s.expect("ACK")
        assert ack.request_id is not None
        assert requests(s) == []
        confirm(s, ack)
        assert requests(s) == [RequestDone(request, None)]
        confirm(s, ack)
        assert requests(s) == []

    def test_with_nothing_to_confirm(self) -> None:
        s = started()
        request = s.flush()
        s.expect()
        assert requests(s) == [RequestDone(request, None)]

    def test_covers_what_was_sent_before_without_asking(self) -> None:
        s = started(acknowledgement_group_time=0.0)
        for message in deliver(s, 2):
            s.acknowledge(message)
        s.expect("ACK", "ACK")
        request = s.flush()
        (again,) = s.expect("ACK")  # the last one once more, to have an answer
        assert again.message_ids == [(1, 1, None)]
        confirm(s, again)
        assert requests(s) == [RequestDone(request, None)]
        s.flush()
        s.expect()
        assert len(requests(s)) == 1

    def test_an_answer_covers_only_what_was_sent_before_its_ack(self) -> None:
        s = started(acknowledgement_group_time=0.0)
        earlier, later = deliver(s, 2)
        s.acknowledge(earlier)
        s.expect("ACK")
        first = s.flush()
        (asked,) = s.expect("ACK")
        s.acknowledge(later)
        s.expect("ACK")
        second = s.flush()
        (again,) = s.expect("ACK")
        assert again.message_ids == [(1, 1, None)]
        confirm(s, asked)
        assert requests(s) == [RequestDone(first, None)]
        confirm(s, again)
        assert requests(s) == [RequestDone(second, None)]

    def test_while_detached_it_waits_for_the_next_connection(self) -> None:
        s = started(acknowledgement_group_time=3600.0)
        messages = deliver(s, 2)
        s.lose()
        s.acknowledge(messages)
        request = s.flush()
        assert requests(s) == []
        s.pass_time(SECOND)
        s.accept()
        ack, _ = s.expect("ACK", "FLOW")
        confirm(s, ack)
        assert requests(s) == [RequestDone(request, None)]

    def test_a_lost_answer_sends_it_again(self) -> None:
        s = started(acknowledgement_group_time=3600.0)
        s.acknowledge(deliver(s, 2))
        request = s.flush()
        s.expect("ACK")
        s.reconnect()
        ack, _ = s.expect("ACK", "FLOW")
        assert ack.message_ids == [(1, 0, None), (1, 1, None)]
        confirm(s, ack)
        assert requests(s) == [RequestDone(request, None)]

    def test_where_the_last_of_an_ack_was_repeated_and_lost_all_of_it_is_sent_again(self) -> None:
        """The ACK itself may be lost as well. BUG: its last id alone was sent again; where that was the last
        chunk of a message, the others stayed, and made the message again with another copy of the last."""
        s = started(acknowledgement_group_time=1.0)
        s.acknowledge(deliver(s, 2))
        s.pass_time(SECOND)
        s.expect("ACK")
        request = s.flush()
        (repeated,) = s.expect("ACK")
        assert repeated.message_ids == [(1, 1, None)]
        s.reconnect()
        ack, _ = s.expect("ACK", "FLOW")
        assert ack.message_ids == [(1, 0, None), (1, 1, None)]
        confirm(s, ack)
        assert requests(s) == [RequestDone(request, None)]

    def test_unloading_the_topic_sends_it_again(self) -> None:
        """The connection lives on, but the broker never answers for a consumer it has closed."""
        s = started(acknowledgement_group_time=3600.0)
        s.acknowledge(deliver(s, 1))
        request = s.flush()
        s.expect("ACK")
        s.close_by_broker()
        s.pass_time(SECOND)
        s.accept()
        ack, _ = s.expect("ACK", "FLOW")
        confirm(s, ack)
        assert requests(s) == [RequestDone(request, None)]

    def test_not_durable(self) -> None:
        s = started(durable=False, acknowledgement_group_time=3600.0)
        s.acknowledge(deliver(s, 1))
        request = s.flush()
        s.lose()
        (failed,) = requests(s)
        assert failed.request == request
        assert isinstance(failed.error, ConnectionLost)

    def test_refused(self) -> None:
        s = started()
        s.acknowledge(deliver(s, 1))
        request = s.flush()
        (ack,) = s.expect("ACK")
        confirm(s, ack, error=22)
        (failed,) = requests(s)
        assert failed.request == request
        assert isinstance(failed.error, BrokerError)

    def test_never_answered(self) -> None:
        s = started()
        s.acknowledge(deliver(s, 1))
        s.flush()
        s.pass_time(25 * SECOND)
        s.say("PONG", proto.CommandPong())
        s.pass_time(6 * SECOND)
        (failed,) = requests(s)
        assert isinstance(failed.error, TimedOut)

    def test_an_old_broker_never_answers_so_it_is_not_asked(self) -> None:
        s = ConsumerScript(protocol_version=16)
        s.accept()
        s.acknowledge(deliver(s, 1))
        s.flush()
        assert s.frames()[-1][1].request_id is None
        assert len(requests(s)) == 1

    def test_the_oldest_broker_that_answers_is_asked(self) -> None:
        """From protocol version 17 on the broker answers an ACK."""
        s = ConsumerScript(protocol_version=17, acknowledgement_group_time=0.0)
        s.accept()
        s.acknowledge(deliver(s, 1))
        s.frames()
        request = s.flush()
        (again,) = s.expect("ACK")
        assert requests(s) == []
        confirm(s, again)
        assert requests(s) == [RequestDone(request, None)]

    def test_two_flushes_wait_for_the_same_answer(self) -> None:
        s = started()
        s.acknowledge(deliver(s, 1))
        first, second = s.flush(), s.flush()
        (ack,) = s.expect("ACK")
        confirm(s, ack)
        assert requests(s) == [RequestDone(first, None), RequestDone(second, None)]

    def test_closed_before_it_was_confirmed(self) -> None:
        s = started()
        s.acknowledge(deliver(s, 1))
        request = s.flush()
        s.close()
        _, close = s.expect("ACK", "CLOSE_CONSUMER")
        s.say("SUCCESS", proto.CommandSuccess(request_id=close.request_id))
        failed = requests(s)[0]
        assert failed.request == request
        assert isinstance(failed.error, ClosedError)

    def test_confirmed_while_closing(self) -> None:
        s = started()
        s.acknowledge(deliver(s, 1))
        request = s.flush()
        s.close()
        ack, _ = s.expect("ACK", "CLOSE_CONSUMER")
        confirm(s, ack)
        assert requests(s) == [RequestDone(request, None)]

    def test_abandoned(self) -> None:
        s = started()
        s.acknowledge(deliver(s, 1))
        request = s.flush()
        s.client.abandon(s.now, request)
        (ack,) = s.expect("ACK")
        confirm(s, ack)
        assert requests(s) == []


class TestReceipts:
    def test_every_ack_asks(self) -> None:
        s = started(acknowledgement_receipts=True, acknowledgement_group_time=0.0)
        for message in deliver(s, 2):
            s.acknowledge(message)
        acks = s.expect("ACK", "ACK")  # seen: java-consume-ack-receipt
        assert len({ack.request_id for ack in acks} - {None}) == 2

    def test_a_flush_waits_for_all_of_them(self) -> None:
        s = started(acknowledgement_receipts=True, acknowledgement_group_time=0.0)
        for message in deliver(s, 2):
            s.acknowledge(message)
        request = s.flush()
        first, second = s.expect("ACK", "ACK")
        confirm(s, second)
        assert requests(s) == []
        confirm(s, first)
        assert requests(s) == [RequestDone(request, None)]

    def test_what_was_lost_without_an_answer_is_sent_again(self) -> None:
        s = started(
            acknowledgement_receipts=True,
            acknowledgement_group_time=0.0,
            batch_index_acknowledgement=True,
            subscription_type=SHARED,
        )
        s.message(0)
        s.batch(1, 3)
        messages = s.take()
        for message in messages[:2]:
            s.acknowledge(message)
        first, _ = s.expect("ACK", "ACK")
        confirm(s, first)
        s.reconnect()
        ack, _ = s.expect("ACK", "FLOW")
        assert ack.message_ids == [(1, 1, 0b110)]

    def test_a_lost_cumulative_one_too(self) -> None:
        s = started(acknowledgement_receipts=True, acknowledgement_group_time=0.0)
        s.acknowledge_cumulative(deliver(s, 3)[2])
        s.expect("ACK")
        s.reconnect()
        ack, _ = s.expect("ACK", "FLOW")
        assert (ack.ack_type, ack.message_ids) == (1, [(1, 2, None)])

    def test_a_refusal_without_a_waiting_flush_is_told_by_the_next_flush(self) -> None:
        s = started(acknowledgement_receipts=True, acknowledgement_group_time=0.0)
        s.acknowledge(deliver(s, 1))
        (ack,) = s.expect("ACK")
        confirm(s, ack, error=0)
        assert requests(s) == []
        s.flush()
        (failed,) = requests(s)
        assert isinstance(failed.error, BrokerError)
        s.flush()
        assert isinstance(requests(s)[0], RequestDone)

    def test_a_refusal_of_what_came_after_the_flush_is_told_by_the_next_one(self) -> None:
        """Both go in one ACK over the next connection: the flush that failed said nothing of the second."""
        s = started(acknowledgement_receipts=True)
        first, second = deliver(s, 2)
        s.acknowledge(first)
        s.lose()
        s.flush()
        s.acknowledge(second)
        s.pass_time(SECOND)
        s.accept()
        ack, _ = s.expect("ACK", "FLOW")
        assert len(ack.message_ids) == 2
        confirm(s, ack, error=0)
        assert isinstance(requests(s)[0], RequestFailed)
        s.flush()
        assert isinstance(requests(s)[0], RequestFailed)
        s.flush()
        assert isinstance(requests(s)[0], RequestDone)


def test_an_acknowledged_message_that_was_confirmed_never_waits_again() -> None:
    """INV-C5: an ACK put back after its answer would acknowledge what a rewound cursor delivers again."""
    s = started(acknowledgement_receipts=True)
    s.acknowledge(deliver(s, 1))
    s.pass_time(SECOND)
    (ack,) = s.expect("ACK")
    confirm(s, ack)
    s.reconnect()
    s.expect("FLOW")


def test_after_a_seek_an_earlier_position_is_acknowledged_though_a_later_one_was_before() -> None:
    """The broker leaves the consumer open: the cursor is at the beginning, and moves on from there."""
    s = started(acknowledgement_group_time=0.0)
    s.acknowledge_cumulative(deliver(s, 6)[5])
    s.expect("ACK")
    s.client.seek(s.now, s.consumer, EARLIEST)
    (seek,) = s.expect("SEEK")
    s.say("SUCCESS", proto.CommandSuccess(request_id=seek.request_id))
    s.frames()
    s.acknowledge_cumulative(deliver(s, 3)[2])
    (ack,) = s.expect("ACK")
    assert (ack.ack_type, ack.message_ids) == (1, [(1, 2, None)])


def test_a_consumer_that_is_closed_waits_for_no_answer_to_an_ack() -> None:
    """The operation timeout of the ACK does not wake the client, which still has its connection."""
    s = started(acknowledgement_receipts=True, acknowledgement_group_time=0.0)
    keepalive = s.client.next_deadline()
    assert keepalive is not None
    s.pass_time(SECOND)
    s.acknowledge(deliver(s, 1))
    s.expect("ACK")
    s.close()
    (close,) = s.expect("CLOSE_CONSUMER")
    s.say("SUCCESS", proto.CommandSuccess(request_id=close.request_id))
    s.pass_time(keepalive - s.now)
    assert s.client.next_deadline() == keepalive + 30 * SECOND
