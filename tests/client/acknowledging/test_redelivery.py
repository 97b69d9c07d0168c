"""Asking for messages again."""

from typing import Any

import pytest

from pulsar_sansio.client.acknowledging.redelivery import NegativeAcknowledgements
from pulsar_sansio.client.outputs import Attached, Deliverable, Detached, Disconnect
from pulsar_sansio.model.config import ConsumerSpec, RedeliveryBackoff, SubscriptionType
from pulsar_sansio.model.message_id import MessageId
from pulsar_sansio.wire import proto
from tests.client.broker_script import MILLISECOND, SECOND, ConsumerScript

SHARED, EXCLUSIVE = SubscriptionType.SHARED, SubscriptionType.EXCLUSIVE


def started(kind: SubscriptionType, **spec: Any) -> ConsumerScript:
    spec.setdefault("negative_acknowledgement_delay", 1.0)
    script = ConsumerScript(subscription_type=kind, **spec)
    script.accept()
    script.frames()
    return script


def positions(command: Any) -> list[tuple[int, int]]:
    return [(id_.ledgerId, id_.entryId) for id_ in command.message_ids]


def negative_after_a_second() -> NegativeAcknowledgements:
    return NegativeAcknowledgements(ConsumerSpec("t", "s", negative_acknowledgement_delay=1.0))


class TestNegativeAcknowledgements:
    def test_never_early_and_not_much_late(self) -> None:
        negative = negative_after_a_second()
        negative.add_after_delay((1, 0), 0, 12_345)
        when = negative.next()
        assert when is not None
        assert 12_345 + SECOND <= when < 12_345 + SECOND + 100 * MILLISECOND
        assert negative.take(when - 1) == []
        assert negative.take(when) == [(1, 0)]
        assert negative.next() is None

    def test_an_entry_named_twice_keeps_its_first_moment(self) -> None:
        negative = negative_after_a_second()
        negative.add_after_delay((1, 0), 0, 0)
        negative.add_after_delay((1, 0), 0, 9 * SECOND)
        assert negative.take(SECOND) == [(1, 0)]

    def test_what_is_acknowledged_is_not_asked_for(self) -> None:
        negative = negative_after_a_second()
        for entry in range(4):
            negative.add_after_delay((1, entry), 0, 0)
        negative.discard((1, 3))
        negative.discard_through((1, 1))
        assert negative.take(10 * SECOND) == [(1, 2)]


@pytest.mark.parametrize("kind", [SHARED, SubscriptionType.KEY_SHARED])
class TestSingleEntries:
    def test_after_the_delay_in_one_request(self, kind: SubscriptionType) -> None:
        """Rule TIMER-13. Rule NACK-01."""
        s = started(kind)
        for entry in range(3):
            s.message(entry)
        messages = s.take()
        s.negative_acknowledge(messages[0])
        s.negative_acknowledge([messages[2], messages[1].message_id])
        s.pass_time(990 * MILLISECOND)
        s.expect()
        s.pass_time(110 * MILLISECOND)
        (request,) = s.expect("REDELIVER_UNACKNOWLEDGED_MESSAGES")
        assert sorted(positions(request)) == [(1, 0), (1, 1), (1, 2)]  # seen: java-negative-ack
        assert not request.HasField("consumer_epoch")
        s.pass_time(10 * SECOND)
        s.expect()

    def test_a_message_of_a_batch_brings_its_entry(self, kind: SubscriptionType) -> None:
        s = started(kind)
        s.batch(0, 3)
        messages = s.take()
        s.negative_acknowledge(messages[:2])
        s.acknowledge(messages[2])
        s.pass_time(2 * SECOND)
        (request,) = s.expect("REDELIVER_UNACKNOWLEDGED_MESSAGES")
        assert positions(request) == [(1, 0)]
        assert request.message_ids[0].batch_index == -1

    def test_at_most_a_thousand_in_a_request(self, kind: SubscriptionType) -> None:
        """Rule WIRE-13."""
        s = started(kind, receiver_queue_size=10_000)
        for entry in range(2500):
            s.message(entry)
        s.negative_acknowledge(s.take())
        s.pass_time(2 * SECOND)
        requests = s.expect(*["REDELIVER_UNACKNOWLEDGED_MESSAGES"] * 3)  # REDEL-05
        assert [len(request.message_ids) for request in requests] == [1000, 1000, 500]

    def test_acknowledged_meanwhile(self, kind: SubscriptionType) -> None:
        s = started(kind)
        s.message(0)
        s.batch(1, 2)
        messages = s.take()
        s.negative_acknowledge(messages)
        s.acknowledge(messages)
        s.pass_time(5 * SECOND)
        s.expect("ACK")

    def test_acknowledged_meanwhile_while_others_wait_to_be_sent(self, kind: SubscriptionType) -> None:
        s = started(kind, acknowledgement_group_time=10.0)
        s.message(0)
        s.message(1)
        first, second = s.take()
        s.acknowledge(first)
        s.negative_acknowledge(second)
        s.acknowledge(second)
        s.pass_time(5 * SECOND)
        s.expect()

    def test_an_empty_request_would_mean_everything_and_is_never_sent(self, kind: SubscriptionType) -> None:
        s = started(kind)
        s.message(0)
        message = s.receive()
        s.acknowledge(message)
        s.negative_acknowledge(message)
        s.negative_acknowledge([])
        s.pass_time(5 * SECOND)
        s.expect("ACK")  # INV-C9

    def test_what_is_acknowledged_of_the_batch_is_told_first(self, kind: SubscriptionType) -> None:
        s = started(kind, batch_index_acknowledgement=True, acknowledgement_group_time=10.0)
        s.batch(0, 3)
        messages = s.take()
        s.acknowledge(messages[1])
        s.negative_acknowledge([messages[0], messages[2]])
        s.pass_time(2 * SECOND)
        ack, _ = s.expect("ACK", "REDELIVER_UNACKNOWLEDGED_MESSAGES")
        assert ack.message_ids == [(1, 0, 0b101)]

    def test_the_delay_of_nothing(self, kind: SubscriptionType) -> None:
        s = started(kind, negative_acknowledgement_delay=0.0)
        s.message(0)
        s.negative_acknowledge(s.receive())
        (request,) = s.expect("REDELIVER_UNACKNOWLEDGED_MESSAGES")
        assert positions(request) == [(1, 0)]

    def test_a_delay_for_each_redelivery_count(self, kind: SubscriptionType) -> None:
        backoff = RedeliveryBackoff(min_delay=1.0, max_delay=6.0, multiplier=2.0)
        s = started(kind, negative_acknowledgement_backoff=backoff)
        for count, delay in ((3, 6), (2, 4), (0, 1), (1, 2), (7, 6)):
            s.message(count, redelivery_count=count)
            s.negative_acknowledge(s.receive())
            s.pass_time(delay * SECOND - 1)
            s.expect()
            s.pass_time(100 * MILLISECOND)
            (request,) = s.expect("REDELIVER_UNACKNOWLEDGED_MESSAGES")
            assert positions(request) == [(1, count)]

    def test_the_shorter_delays_come_first(self, kind: SubscriptionType) -> None:
        """Rule NACK-02."""
        s = started(kind, negative_acknowledgement_backoff=RedeliveryBackoff(1.0, 4.0, 2.0))
        s.message(0, redelivery_count=2)
        s.message(1, redelivery_count=0)
        slow, fast = s.take()
        s.negative_acknowledge([slow, fast])
        s.negative_acknowledge(slow.message_id)  # by itself it counts as delivered once
        s.pass_time(1100 * MILLISECOND)
        (request,) = s.expect("REDELIVER_UNACKNOWLEDGED_MESSAGES")
        assert sorted(positions(request)) == [(1, 0), (1, 1)]

    def test_a_reconnect_brings_them_by_itself(self, kind: SubscriptionType) -> None:
        s = started(kind)
        s.message(0)
        s.negative_acknowledge(s.receive())
        s.reconnect()
        s.frames()
        s.pass_time(5 * SECOND)
        s.expect()

    def test_while_detached_there_is_nothing_to_ask_for(self, kind: SubscriptionType) -> None:
        s = started(kind)
        s.message(0)
        message = s.receive()
        s.lose()
        s.negative_acknowledge(message)
        s.pass_time(SECOND)
        s.accept()
        s.frames()
        s.pass_time(5 * SECOND)
        s.expect()

    def test_everything(self, kind: SubscriptionType) -> None:
        """Rule GAP-14."""
        s = started(kind, receiver_queue_size=10)
        for entry in range(7):
            s.message(entry)
        s.receive()
        s.redeliver()
        request, flow = s.expect("REDELIVER_UNACKNOWLEDGED_MESSAGES", "FLOW")
        assert (positions(request), request.HasField("consumer_epoch")) == ([], False)
        assert flow.message_permits == 7  # REDEL-06: what was dropped, and the one delivered
        assert s.receive() is None


class TestOnOneConsumersSubscriptions:
    def test_what_is_redelivered_is_announced_again(self) -> None:
        s = started(EXCLUSIVE)
        s.message(0, consumer_epoch=0)
        s.redeliver()
        s.outputs()
        s.message(0, consumer_epoch=1)
        assert [type(output) for output in s.outputs()] == [Deliverable]

    def test_a_negative_acknowledgement_brings_everything(self) -> None:
        s = started(EXCLUSIVE)
        for entry in range(3):
            s.message(entry, consumer_epoch=0)
        s.negative_acknowledge(s.receive())
        s.pass_time(2 * SECOND)
        (request,) = s.expect("REDELIVER_UNACKNOWLEDGED_MESSAGES")  # REDEL-02
        assert (positions(request), request.consumer_epoch) == ([], 1)
        assert s.receive() is None

    def test_a_cumulative_acknowledgement_takes_it_back(self) -> None:
        s = started(EXCLUSIVE)
        s.message(0)
        s.batch(1, 2)
        messages = s.take()
        s.negative_acknowledge(messages[0])
        s.acknowledge_cumulative(messages[1])
        s.pass_time(5 * SECOND)
        s.expect("ACK")

    def test_the_epoch_goes_up_with_each_and_into_the_next_subscribe(self) -> None:
        s = started(EXCLUSIVE)
        s.redeliver()
        s.redeliver()
        first, second = s.expect(*["REDELIVER_UNACKNOWLEDGED_MESSAGES"] * 2)
        assert (first.consumer_epoch, second.consumer_epoch) == (1, 2)  # seen: java-redeliver-exclusive
        assert s.reconnect().consumer_epoch == 2

    def test_what_was_on_its_way_is_dropped_and_its_permits_come_back(self) -> None:
        s = started(EXCLUSIVE, receiver_queue_size=10)
        s.redeliver()
        s.message(0, consumer_epoch=0)
        s.batch(1, 4, consumer_epoch=0)
        assert s.receive() is None
        assert [frame[0] for frame in s.frames()] == ["REDELIVER_UNACKNOWLEDGED_MESSAGES", "FLOW"]
        s.message(0, consumer_epoch=1)
        s.message(1)  # a broker that tells no epoch
        assert len(s.take()) == 2  # INV-C8
        assert s.client._handles.consumers[s.consumer].counters.outdated == 5

    def test_while_detached_the_epoch_stays_and_the_queue_is_dropped(self) -> None:
        s = started(EXCLUSIVE)
        s.message(0)
        s.lose()
        s.redeliver()
        assert s.receive() is None
        s.pass_time(SECOND)
        assert s.accept().consumer_epoch == 0
        s.frames()
        s.message(0, consumer_epoch=0)
        assert s.receive() is not None

    def test_in_the_middle_of_subscribing(self) -> None:
        """A client ahead of its broker drops every message for ever (INV-C8)."""
        s = started(EXCLUSIVE)
        s.lose()
        s.pass_time(SECOND)
        s.redeliver()
        s.accept()
        s.frames()
        s.message(0, consumer_epoch=0)
        assert s.receive() is not None


@pytest.mark.parametrize("kind", list(SubscriptionType))
@pytest.mark.breaks("WIRE-21", why="no broker is so old; it is asked what all are asked")
def test_from_a_broker_too_old_for_the_command_the_client_detaches_to_be_redelivered(
    kind: SubscriptionType,
) -> None:
    """REDEL-03."""
    s = ConsumerScript(protocol_version=1, subscription_type=kind, negative_acknowledgement_delay=1.0)
    s.accept()
    s.message(0)
    s.message(1)
    s.frames()
    s.negative_acknowledge(s.receive())
    s.outputs()
    s.pass_time(1_100 * MILLISECOND)
    assert "REDELIVER_UNACKNOWLEDGED_MESSAGES" not in [name for name, _ in s.frames()]
    assert [type(output) for output in s.outputs()] == [Disconnect, Detached]
    s.pass_time(SECOND)
    s.accept()
    s.frames()
    s.redeliver()
    assert [type(output) for output in s.outputs()] == [Attached, Disconnect, Detached]
    s.expect()


@pytest.mark.parametrize("kind", list(SubscriptionType))
def test_a_topic_without_memory_has_nothing_to_deliver_again(kind: SubscriptionType) -> None:
    s = started(kind, topic="non-persistent://a/b/c", negative_acknowledgement_delay=0.0)
    s.message(0)
    s.message(0)
    s.negative_acknowledge(s.receive())
    s.redeliver()
    assert s.receive() is not None  # what is queued would never be redelivered
    s.expect()


class TestFailover:
    def active(self, s: ConsumerScript, active: bool) -> None:
        s.say("ACTIVE_CONSUMER_CHANGE", proto.CommandActiveConsumerChange(consumer_id=0, is_active=active))

    def test_a_consumer_that_is_not_active_asks_for_nothing(self) -> None:
        s = started(SubscriptionType.FAILOVER)
        self.active(s, False)
        s.redeliver()
        s.expect()  # REDEL-01: the broker would ignore it, and never take over the epoch
        self.active(s, True)
        s.message(0, consumer_epoch=0)
        assert s.receive() is not None

    def test_a_request_that_the_broker_may_have_ignored_is_made_again_when_active(self) -> None:
        s = started(SubscriptionType.FAILOVER)
        s.redeliver()  # on its way, the broker made another consumer active
        s.frames()
        self.active(s, False)
        self.active(s, True)
        (request,) = s.expect("REDELIVER_UNACKNOWLEDGED_MESSAGES")
        assert request.consumer_epoch == 1


def test_what_is_redelivered_over_a_new_connection_is_not_asked_for_when_something_else_is() -> None:
    s = started(SHARED)
    s.message(0)
    s.negative_acknowledge(s.receive())
    s.reconnect()
    s.frames()
    for entry in range(2):
        s.message(entry)
    s.negative_acknowledge(s.take()[1])
    s.pass_time(2 * SECOND)
    (redeliver,) = s.expect("REDELIVER_UNACKNOWLEDGED_MESSAGES")
    assert positions(redeliver) == [(1, 1)]


def test_after_a_seek_nothing_from_before_is_asked_for_though_the_consumer_stayed_open() -> None:
    s = started(SHARED)
    s.message(0)
    s.negative_acknowledge(s.receive())
    s.client.seek(s.now, s.consumer, MessageId(1, 5))
    (seek,) = s.expect("SEEK")
    s.say("SUCCESS", proto.CommandSuccess(request_id=seek.request_id))
    s.pass_time(2 * SECOND)
    s.expect()
