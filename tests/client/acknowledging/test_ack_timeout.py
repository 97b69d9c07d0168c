"""The acknowledgement timeout."""

from typing import Any

import pytest

from pulsar_sansio.model.config import RedeliveryBackoff, SubscriptionType
from tests.client.acknowledging.test_redelivery import EXCLUSIVE, SHARED, positions
from tests.client.broker_script import MILLISECOND, SECOND, ConsumerScript, entry_bytes

REDELIVER = "REDELIVER_UNACKNOWLEDGED_MESSAGES"


def started(kind: SubscriptionType = SHARED, **spec: Any) -> ConsumerScript:
    spec.setdefault("acknowledgement_timeout", 10.0)
    spec.setdefault("acknowledgement_timeout_tick", 1.0)
    spec.setdefault("receiver_queue_size", 100)
    script = ConsumerScript(subscription_type=kind, **spec)
    script.accept()
    script.frames()
    return script


def asked(script: ConsumerScript) -> list[tuple[int, int]]:
    (request,) = script.expect(REDELIVER)
    return sorted(positions(request))


class TestWhen:
    def test_at_the_tick_after_the_timeout(self) -> None:
        """11 ticks after it was delivered in the middle of one, so 10.6 s (UNACK-02, UNACK-05). Rules
        CONS-05, TIMER-10 and UNACK-04."""
        s = started()
        s.pass_time(400 * MILLISECOND)
        s.message(0)
        s.receive()
        s.pass_time(10 * SECOND + 599 * MILLISECOND)
        s.expect()
        s.pass_time(MILLISECOND)
        assert asked(s) == [(1, 0)]

    @pytest.mark.parametrize(
        ("timeout", "tick", "ticks"), [(11.0, 2.0, 7), (1.0, 1.0, 2), (1.0, 0.3, 5), (0.001, 0.001, 2)]
    )
    def test_the_number_of_ticks(self, timeout: float, tick: float, ticks: int) -> None:
        """UNACK-02: ceil(timeout / tick) + 1."""
        s = started(acknowledgement_timeout=timeout, acknowledgement_timeout_tick=tick)
        s.message(0)
        s.receive()
        expiry = ticks * round(tick * SECOND)
        s.pass_time(expiry - 1)
        s.expect()
        s.pass_time(1)
        assert asked(s) == [(1, 0)]

    def test_time_runs_from_delivery_not_from_arrival(self) -> None:
        """Rule CONS-21."""
        s = started()
        s.message(0)
        s.pass_time(25 * SECOND)
        s.expect()
        s.receive()
        s.pass_time(11 * SECOND - 1)
        s.expect()
        s.pass_time(1)
        assert asked(s) == [(1, 0)]

    def test_those_of_one_tick_come_in_one_request(self) -> None:
        s = started()
        for entry in range(5):
            s.message(entry)
        s.receive()
        s.pass_time(200 * MILLISECOND)
        s.take(2)
        s.pass_time(SECOND)
        s.take()
        s.pass_time(9 * SECOND + 800 * MILLISECOND)
        assert asked(s) == [(1, 0), (1, 1), (1, 2)]
        s.pass_time(SECOND)
        assert asked(s) == [(1, 3), (1, 4)]

    def test_no_timer_runs_where_nothing_waits(self) -> None:
        s = started(acknowledgement_group_time=0.0)
        s.message(0)
        s.acknowledge(s.receive())
        s.frames()
        s.pass_time(12 * SECOND)
        deadlines = s.client.next_deadline()
        assert deadlines is None or deadlines > s.now + 15 * SECOND  # the keepalive's

    def test_any_timeout_that_is_not_below_its_tick(self) -> None:
        """UNACK-08: there is no minimum beyond that. Rule UNACK-01."""
        s = started(acknowledgement_timeout=0.01, acknowledgement_timeout_tick=0.01)
        s.message(0)
        s.receive()
        s.pass_time(20 * MILLISECOND)
        assert asked(s) == [(1, 0)]

    def test_without_the_option_nothing_is_ever_asked_for(self) -> None:
        """Rules CONS-05 and UNACK-09."""
        s = started(acknowledgement_timeout=0.0)  # UNACK-09
        s.message(0)
        s.receive()
        s.pass_time(25 * SECOND)
        s.expect()

    def test_a_backoff_is_added_by_redelivery_count(self) -> None:
        backoff = RedeliveryBackoff(min_delay=2.0, max_delay=5.0, multiplier=2.0)
        s = started(acknowledgement_timeout_backoff=backoff)
        for count, delay in enumerate((2, 4, 5, 5)):
            s.message(count, redelivery_count=count)
            s.receive()
            s.pass_time((11 + delay) * SECOND - 1)
            s.expect()
            s.pass_time(1)
            assert asked(s) == [(1, count)]

    def test_a_long_timeout_holds_up_no_other_consumer(self) -> None:
        s = started(acknowledgement_timeout_backoff=RedeliveryBackoff(1.0, 100.0, 100.0))
        s.message(0, redelivery_count=10)
        s.receive()
        s.pass_time(20 * SECOND)
        s.message(1)
        s.receive()
        s.pass_time(12 * SECOND)
        assert asked(s) == [(1, 1)]

    def test_on_a_topic_without_memory_nothing_is_tracked(self) -> None:
        s = started(topic="non-persistent://public/default/t")
        s.message(0)
        s.receive()
        s.pass_time(25 * SECOND)
        s.expect()


class TestWhat:
    def test_only_what_is_not_judged(self) -> None:
        """Rule ACK-07."""
        s = started(acknowledgement_group_time=0.0, negative_acknowledgement_delay=60.0)
        for entry in range(4):
            s.message(entry)
        first, second, third, _ = s.take()
        s.acknowledge(first)
        s.acknowledge(second.message_id)
        s.negative_acknowledge(third)
        s.frames()
        s.pass_time(11 * SECOND)
        assert asked(s) == [(1, 3)]

    def test_acknowledged_together(self) -> None:
        s = started()
        for entry in range(3):
            s.message(entry)
        s.batch(3, 3)
        s.acknowledge(s.take_together())
        s.expect()
        s.pass_time(20 * SECOND)
        s.expect("ACK")

    def test_a_half_acknowledged_batch_is_redelivered_as_a_whole(self) -> None:
        s = started(acknowledgement_group_time=0.0)
        s.batch(0, 3)
        messages = s.take()
        s.acknowledge(messages[0])
        s.pass_time(5 * SECOND)
        s.acknowledge(messages[2])
        s.pass_time(6 * SECOND)
        assert asked(s) == [(1, 0)]  # UNACK-07, ACK-21

    def test_a_complete_batch_does_not(self) -> None:
        s = started(acknowledgement_group_time=0.0)
        s.batch(0, 3)
        for message in reversed(s.take()):
            s.acknowledge(message)
        s.expect("ACK")
        s.pass_time(20 * SECOND)
        s.expect()

    @pytest.mark.parametrize("index_acknowledgement", [False, True])
    @pytest.mark.parametrize("by_id", [False, True])
    def test_a_batch_that_came_twice_is_acknowledged_once(
        self, index_acknowledgement: bool, by_id: bool
    ) -> None:
        """Its second arrival waits in the queue meanwhile, and is not delivered."""
        s = started(batch_index_acknowledgement=index_acknowledgement)
        s.batch(0, 4)
        first = s.take()
        s.batch(0, 4)
        s.acknowledge([each.message_id for each in first] if by_id else first)
        assert s.take() == []
        assert s.machine.counters.duplicates == 4
        s.pass_time(20 * SECOND)
        s.expect("ACK")  # UNACK-07

    def test_of_one_that_came_twice_the_rest_is_delivered(self) -> None:
        s = started()
        s.batch(0, 4)
        first = s.take(2)
        s.batch(0, 4)
        s.acknowledge([first[0], first[1].message_id])
        assert [each.batch_index for each in s.take()] == [2, 3, 2, 3]

    def test_nor_is_one_asked_for_that_a_refusal_has_asked_for(self) -> None:
        """The message is redelivered, and its time begins anew when the application receives it."""
        s = started(negative_acknowledgement_delay=5.0)
        s.batch(0, 2)
        s.negative_acknowledge(s.receive())
        s.negative_acknowledge(s.receive())
        s.pass_time(6 * SECOND)
        assert asked(s) == [(1, 0)]
        s.batch(0, 2)
        s.pass_time(6 * SECOND)
        s.expect()
        assert len(s.take()) == 2

    def test_the_last_message_of_a_batch_that_is_delivered_counts(self) -> None:
        s = started()
        s.batch(0, 2)
        s.receive()
        s.pass_time(8 * SECOND)
        s.receive()
        s.pass_time(11 * SECOND - 1)
        s.expect()  # UNACK-03
        s.pass_time(1)
        assert asked(s) == [(1, 0)]

    def test_all_chunks_of_a_message(self) -> None:
        s = started()
        header: dict[str, Any] = {"uuid": "u", "num_chunks_from_msg": 2, "total_chunk_msg_size": 4}
        s.deliver(0, entry_bytes(b"ab", chunk_id=0, **header))
        s.deliver(1, entry_bytes(b"cd", chunk_id=1, **header))
        assert s.receive().data == b"abcd"
        s.pass_time(11 * SECOND)
        assert asked(s) == [(1, 0), (1, 1)]

    def test_not_of_one_that_was_acknowledged_of_an_earlier_delivery(self) -> None:
        """Its second arrival waits in the queue, and is not delivered."""
        s = started()
        header: dict[str, Any] = {"uuid": "u", "num_chunks_from_msg": 2, "total_chunk_msg_size": 4}
        chunks = [entry_bytes(b"ab", chunk_id=0, **header), entry_bytes(b"cd", chunk_id=1, **header)]
        for entry, chunk in enumerate(chunks):
            s.deliver(entry, chunk)
        message = s.receive()
        s.pass_time(11 * SECOND)
        assert asked(s) == [(1, 0), (1, 1)]
        for entry, chunk in enumerate(chunks):
            s.deliver(entry, chunk)
        s.acknowledge(message)
        s.frames()
        assert s.take() == []
        s.pass_time(22 * SECOND)
        assert [name for name, _ in s.frames() if name == REDELIVER] == []

    def test_what_is_left_of_it_in_the_queue_is_redelivered_too(self) -> None:
        s = started(receiver_queue_size=20)
        s.batch(0, 3)
        s.message(1)
        s.receive()
        s.pass_time(11 * SECOND)
        s.expect(REDELIVER)
        assert [message.data for message in s.take()] == [b"m"]
        permits = s.machine.permits
        assert permits.at_broker + permits.unreported == 20

    def test_what_was_refused_of_it_need_not_be_asked_for_once_more(self) -> None:
        s = started(negative_acknowledgement_delay=20.0)
        s.batch(0, 2)
        s.negative_acknowledge(s.receive())
        s.receive()
        s.pass_time(11 * SECOND)
        assert asked(s) == [(1, 0)]
        s.batch(0, 2)
        s.pass_time(12 * SECOND)
        s.expect()
        s.negative_acknowledge(s.receive())
        s.pass_time(9 * SECOND)
        s.negative_acknowledge(s.receive())
        s.pass_time(19 * SECOND)
        s.expect()
        s.pass_time(2 * SECOND)
        assert asked(s) == [(1, 0)]

    def test_redelivered_it_expires_again(self) -> None:
        s = started()
        for _ in range(3):
            s.message(0)
            s.receive()
            s.pass_time(11 * SECOND)
            assert asked(s) == [(1, 0)]
            s.pass_time(5 * SECOND)
            s.expect()

    @pytest.mark.parametrize("together", [True, False])
    def test_however_messages_are_taken(self, together: bool) -> None:
        s = started(receiver_queue_size=1000)
        for entry in range(3):
            s.message(entry)
        s.batch(3, 2)
        for entry in range(4, 7):
            s.message(entry)
        if together:
            s.take_together()
        else:
            while s.receive() is not None:
                pass
        s.pass_time(11 * SECOND)
        assert asked(s) == [(1, entry) for entry in range(7)]


class TestQueues:
    def test_of_size_0(self) -> None:
        s = started(receiver_queue_size=0)
        s.receive()
        s.expect("FLOW")
        s.message(0)
        s.pass_time(30 * SECOND)
        assert s.receive() is not None
        s.pass_time(11 * SECOND)
        assert asked(s) == [(1, 0)]

    def test_that_scales_by_itself(self) -> None:
        s = started(auto_scaled_receiver_queue_size=True)
        s.message(0)
        s.receive()
        s.pass_time(11 * SECOND)
        assert (1, 0) in [
            position for name, command in s.frames() if name == REDELIVER for position in positions(command)
        ]


class TestOnOneConsumersSubscriptions:
    def test_everything_is_redelivered(self) -> None:
        """REDEL-02: there is only one way back."""
        s = started(EXCLUSIVE, receiver_queue_size=6)
        for entry in range(3):
            s.message(entry, consumer_epoch=0)
        s.receive()
        s.pass_time(11 * SECOND)
        request, flow = s.expect(REDELIVER, "FLOW")
        assert (positions(request), request.consumer_epoch, flow.message_permits) == ([], 1, 3)
        s.pass_time(20 * SECOND)
        s.expect()

    def test_a_cumulative_acknowledgement_judges_everything_up_to_it(self) -> None:
        s = started(EXCLUSIVE)
        for entry in range(3):
            s.message(entry)
        s.batch(3, 2)
        s.acknowledge_cumulative(s.take()[-1])
        s.expect()
        s.pass_time(30 * SECOND)
        s.expect("ACK")  # ACK-08

    @pytest.mark.parametrize("by_id", [False, True])
    def test_also_a_batch_that_is_redelivered_although_the_broker_was_told(self, by_id: bool) -> None:
        """The redelivery was under way. There is nothing new to tell (ACK-14), and nothing to ask for
        (UNACK-07)."""
        s = started(EXCLUSIVE, acknowledgement_group_time=0.0)
        for _ in range(2):
            s.batch(0, 2)
            for message in s.take():
                s.acknowledge_cumulative(message.message_id if by_id else message)
        s.pass_time(30 * SECOND)
        assert REDELIVER not in [name for name, _ in s.frames()]

    def test_but_not_what_is_left_of_its_batch(self) -> None:
        s = started(EXCLUSIVE)
        s.message(0)
        s.batch(1, 2)
        s.acknowledge_cumulative(s.take()[-2])
        s.pass_time(11 * SECOND)
        s.expect("ACK", REDELIVER)


class TestConnections:
    @pytest.mark.parametrize("kind", [SHARED, EXCLUSIVE])
    def test_a_reconnect_brings_it_by_itself(self, kind: SubscriptionType) -> None:
        s = started(kind)
        s.message(0, consumer_epoch=0)
        s.receive()
        s.reconnect()
        s.frames()
        s.pass_time(25 * SECOND)
        s.expect()

    def test_what_is_delivered_while_detached_is_redelivered_too(self) -> None:
        s = started()
        s.message(0)
        s.lose()
        assert s.receive() is not None
        s.pass_time(SECOND)
        s.accept()
        s.frames()
        s.pass_time(25 * SECOND)
        s.expect()

    def test_a_closed_consumer_asks_for_nothing(self) -> None:
        s = started()
        s.message(0)
        s.receive()
        s.close()
        s.expect("CLOSE_CONSUMER")
        s.pass_time(25 * SECOND)
        s.expect()

    def test_redeliver_all_starts_anew(self) -> None:
        s = started()
        s.message(0)
        s.receive()
        s.redeliver()
        s.frames()
        s.pass_time(25 * SECOND)
        s.expect()
