"""A batch is asked for again when its other messages are settled."""

from typing import Any

import pytest

from pulsar_sansio.client.acknowledging.held_back import LEAST_PATIENCE
from pulsar_sansio.model.config import SubscriptionType
from pulsar_sansio.wire import proto
from tests.client.broker_script import SECOND, ConsumerScript, entry_bytes

REDELIVER = "REDELIVER_UNACKNOWLEDGED_MESSAGES"
SHARED, KEY_SHARED = SubscriptionType.SHARED, SubscriptionType.KEY_SHARED


def started(**spec: Any) -> ConsumerScript:
    spec.setdefault("negative_acknowledgement_delay", 1.0)
    spec.setdefault("subscription_type", SHARED)
    script = ConsumerScript(**spec)
    script.accept()
    script.frames()
    return script


def wait(s: ConsumerScript, nanoseconds: int) -> None:
    """Longer than a connection lives on which nothing is said."""
    until = s.now + nanoseconds
    while s.now < until:
        s.pass_time(min(20 * SECOND, until - s.now))
        s.say("PONG", proto.CommandPong())


def asked(s: ConsumerScript) -> list[tuple[int, int]]:
    return [
        (each.ledgerId, each.entryId)
        for name, command in s.frames()
        if name == REDELIVER
        for each in command.message_ids
    ]


@pytest.mark.parametrize("kind", [SHARED, KEY_SHARED])
def test_until_the_last_neighbour_is_acknowledged(kind: SubscriptionType) -> None:
    s = started(subscription_type=kind)
    s.batch(0, 3)
    bad, one, two = s.take()
    s.negative_acknowledge(bad)
    s.acknowledge(one)
    s.pass_time(5 * SECOND)
    assert asked(s) == []
    s.acknowledge(two)
    assert asked(s) == [(1, 0)]
    s.batch(0, 3, redelivery_count=1)
    assert [message.batch_index for message in s.take()] == [0]
    assert s.machine.counters.duplicates == 2


def test_neighbours_in_the_queue_are_waited_for_too() -> None:
    s = started()
    s.batch(0, 3)
    s.negative_acknowledge(s.receive())
    s.pass_time(5 * SECOND)
    assert asked(s) == []
    assert s.client.available(s.consumer) == 2
    s.acknowledge(s.take())
    assert asked(s) == [(1, 0)]


def test_acknowledged_by_ids() -> None:
    s = started()
    s.batch(0, 2)
    bad, good = s.take()
    s.negative_acknowledge(bad.message_id)
    s.pass_time(5 * SECOND)
    assert asked(s) == []
    s.acknowledge(good.message_id)
    assert asked(s) == [(1, 0)]


def test_acknowledged_together() -> None:
    s = started()
    s.batch(0, 4)
    s.negative_acknowledge(s.receive())
    s.pass_time(5 * SECOND)
    s.acknowledge(s.take_together(2))
    assert asked(s) == []
    s.acknowledge(s.take_together())
    assert asked(s) == [(1, 0)]


def test_the_delay_of_each_message_counts() -> None:
    s = started(negative_acknowledgement_delay=10.0)
    s.batch(0, 2)
    one, two = s.take()
    s.negative_acknowledge(one)
    s.pass_time(9 * SECOND)
    s.negative_acknowledge(two)
    s.pass_time(10 * SECOND - 1)
    assert asked(s) == []
    s.pass_time(SECOND)
    assert asked(s) == [(1, 0)]


def test_saying_it_again_changes_nothing() -> None:
    s = started(negative_acknowledgement_delay=10.0)
    s.batch(0, 1)
    message = s.receive()
    s.negative_acknowledge(message)
    s.pass_time(9 * SECOND)
    s.negative_acknowledge(message)
    s.pass_time(2 * SECOND)
    assert asked(s) == [(1, 0)]


def test_a_message_that_is_acknowledged_is_not_asked_for() -> None:
    s = started()
    s.batch(0, 2)
    one, two = s.take()
    s.acknowledge(one)
    s.negative_acknowledge(one)
    s.pass_time(5 * SECOND)
    assert asked(s) == []
    s.negative_acknowledge(two)
    s.pass_time(5 * SECOND)
    assert asked(s) == [(1, 0)]


def test_an_id_without_index_gives_the_whole_batch_back() -> None:
    s = started()
    s.batch(0, 3)
    first = s.take()[0]
    s.negative_acknowledge(first.message_id._replace(batch_index=-1, batch_size=0))
    s.pass_time(5 * SECOND)
    assert asked(s) == [(1, 0)]


@pytest.mark.breaks("INV-C9")  # the id was never delivered
def test_of_a_batch_that_is_not_known_nothing_is_waited_for() -> None:
    s = started()
    s.batch(0, 2)
    one = s.take()[0].message_id
    s.negative_acknowledge(one._replace(entry_id=7))
    s.pass_time(5 * SECOND)
    assert asked(s) == [(1, 7)]


def test_wholly_acknowledged_meanwhile() -> None:
    s = started()
    s.batch(0, 2)
    bad, good = s.take()
    s.negative_acknowledge(bad)
    s.pass_time(5 * SECOND)
    s.acknowledge(bad)
    s.acknowledge(good)
    wait(s, 3 * LEAST_PATIENCE)
    assert asked(s) == []


class TestPatience:
    def test_a_neighbour_that_is_never_settled(self) -> None:
        s = started()
        s.batch(0, 2)
        s.negative_acknowledge(s.take()[0])
        wait(s, LEAST_PATIENCE)
        assert asked(s) == []
        wait(s, 2 * SECOND)
        assert asked(s) == [(1, 0)]

    def test_ten_delays_where_that_is_more(self) -> None:
        s = started(negative_acknowledgement_delay=60.0)
        s.batch(0, 2)
        s.negative_acknowledge(s.take()[0])
        wait(s, 659 * SECOND)
        assert asked(s) == []
        wait(s, 3 * SECOND)
        assert asked(s) == [(1, 0)]

    def test_it_begins_anew_when_something_is_received_or_settled(self) -> None:
        s = started()
        s.batch(0, 4)
        s.negative_acknowledge(s.receive())
        wait(s, 30 * SECOND)
        one = s.receive()
        wait(s, 40 * SECOND)
        s.acknowledge(one)
        wait(s, 2 * LEAST_PATIENCE - 60 * SECOND)
        assert asked(s) == []
        wait(s, LEAST_PATIENCE)
        assert asked(s) == [(1, 0)]
        assert s.take() == []  # what was left in the queue is taken back

    def test_all_that_is_waited_for_together(self) -> None:
        s = started()
        for entry in range(3):
            s.batch(entry, 2)
        messages = s.take()
        s.negative_acknowledge(messages[::2])
        wait(s, 30 * SECOND)
        s.acknowledge(messages[1])
        assert asked(s) == [(1, 0)]
        wait(s, 33 * SECOND)
        assert asked(s) == [(1, 1), (1, 2)]

    def test_a_lost_connection_ends_it(self) -> None:
        s = started()
        s.batch(0, 2)
        bad, good = s.take()
        s.negative_acknowledge(bad)
        s.pass_time(5 * SECOND)
        s.reconnect()
        s.acknowledge(good)
        s.frames()
        wait(s, 3 * LEAST_PATIENCE)
        assert asked(s) == []


class TestTimeout:
    """With the acknowledgement timeout a neighbour is waited for so long and no longer."""

    def test_a_silent_neighbour(self) -> None:
        s = started(acknowledgement_timeout=10.0)
        s.batch(0, 2)
        s.negative_acknowledge(s.take()[0])
        s.pass_time(9 * SECOND)
        assert asked(s) == []
        s.pass_time(3 * SECOND)
        assert asked(s) == [(1, 0)]

    def test_what_only_waits_in_the_queue_does_not_time_out(self) -> None:
        s = started(acknowledgement_timeout=10.0)
        s.batch(0, 3)
        s.acknowledge(s.receive())
        wait(s, 40 * SECOND)
        assert asked(s) == []
        assert len(s.take()) == 2
        s.pass_time(12 * SECOND)
        assert asked(s) == [(1, 0)]

    def test_nor_after_a_neighbour_was_negatively_acknowledged(self) -> None:
        s = started(acknowledgement_timeout=10.0)
        s.batch(0, 3)
        s.negative_acknowledge(s.receive())
        wait(s, 40 * SECOND)
        assert asked(s) == []

    def test_acknowledged_late_it_is_not_delivered_again(self) -> None:
        s = started(acknowledgement_timeout=10.0)
        s.message(0)
        s.batch(1, 2)
        single, one, two = s.take()
        s.pass_time(12 * SECOND)
        assert asked(s) == [(1, 0), (1, 1)]
        s.message(0, redelivery_count=1)
        s.batch(1, 2, redelivery_count=1)
        s.acknowledge(single)
        s.acknowledge(one)
        (left,) = s.take()
        assert left.message_id == two.message_id
        assert s.machine.counters.duplicates == 2

    def test_acknowledged_between_the_request_and_the_delivery(self) -> None:
        s = started(acknowledgement_timeout=10.0, acknowledgement_group_time=0.0)
        s.batch(0, 2)
        messages = s.take()
        s.pass_time(12 * SECOND)
        s.acknowledge(messages)
        s.frames()
        s.batch(0, 2, redelivery_count=1)
        assert s.take() == []
        (ack,) = s.expect("ACK")  # the one before may be lost
        assert ack.message_ids == [(1, 0, None)]


class TestNewConnection:
    """Messages that the application had before are delivered again, and acknowledged while they wait."""

    def test_messages_of_a_batch(self) -> None:
        s = started()
        s.batch(0, 3)
        one, two, _ = s.take()
        s.acknowledge(one)
        s.reconnect()
        s.batch(0, 3, redelivery_count=1)
        s.acknowledge(two)
        assert [message.batch_index for message in s.take()] == [2]
        assert s.machine.counters.duplicates == 2

    def test_those_that_were_taken_together(self) -> None:
        s = started()
        s.batch(0, 4)
        both = s.take_together(2)
        s.reconnect()
        s.batch(0, 4, redelivery_count=1)
        s.acknowledge(both)
        assert [message.batch_index for message in s.take()] == [2, 3]

    @pytest.mark.parametrize("at_once", [False, True])
    def test_entries_of_one_message(self, at_once: bool) -> None:
        s = started()
        for entry in range(3):
            s.message(entry)
        messages = s.take()
        s.reconnect()
        for entry in range(3):
            s.message(entry, redelivery_count=1)
        s.frames()
        if at_once:
            s.acknowledge(messages[:2])
        else:
            s.acknowledge(messages[0])
            s.acknowledge(messages[1])
        (left,) = s.take()
        assert left.message_id == messages[2].message_id
        s.acknowledge(left)
        s.pass_time(SECOND)
        (ack,) = s.expect("ACK")
        assert len(ack.message_ids) == 3

    def test_a_message_in_chunks(self) -> None:
        s = started()
        header: dict[str, Any] = {"uuid": "u", "num_chunks_from_msg": 2, "total_chunk_msg_size": 4}
        chunks = [entry_bytes(b"ab", chunk_id=0, **header), entry_bytes(b"cd", chunk_id=1, **header)]
        for entry, chunk in enumerate(chunks):
            s.deliver(entry, chunk)
        message = s.receive()
        s.reconnect()
        for entry, chunk in enumerate(chunks):
            s.deliver(entry, chunk, redelivery_count=1)
        assert s.client.available(s.consumer) == 1
        s.acknowledge(message)
        assert s.take() == []

    @pytest.mark.parametrize("last", [1, 3])
    def test_all_up_to_a_message(self, last: int) -> None:
        s = started(subscription_type=SubscriptionType.EXCLUSIVE)
        s.message(0)
        s.batch(1, 4)
        s.message(2)
        old = s.take()
        s.reconnect()
        s.message(0)
        s.batch(1, 4)
        s.message(2)
        s.acknowledge_cumulative(old[1 + last])
        left = [message.batch_index for message in s.take()]
        assert left == [*range(last + 1, 4), -1]
        assert s.machine.counters.duplicates == 2 + last

    def test_all_up_to_an_entry_of_one_message(self) -> None:
        s = started(subscription_type=SubscriptionType.EXCLUSIVE)
        for entry in range(3):
            s.message(entry)
        old = s.take()
        s.reconnect()
        for entry in range(3):
            s.message(entry)
        s.acknowledge_cumulative(old[1])
        assert [message.message_id.entry_id for message in s.take()] == [2]

    def test_what_is_left_in_the_run_at_hand(self) -> None:
        """Taking one by one, in the middle of a batch."""
        s = started()
        s.batch(0, 5)
        s.batch(1, 1)
        old = s.take()
        s.reconnect()
        s.batch(0, 5, redelivery_count=1)
        s.batch(1, 1, redelivery_count=1)
        assert s.receive().batch_index == 0
        s.acknowledge(old[2])
        s.acknowledge(old[5])
        assert [message.batch_index for message in s.take()] == [1, 3, 4]


class TestSeek:
    """After a seek the application wants everything again."""

    def sought(self, s: ConsumerScript) -> None:
        request = s.client.seek(s.now, s.consumer, 1)
        s.pump()
        ((_, command),) = [frame for frame in s.frames() if frame[0] == "SEEK"]
        s.say("SUCCESS", proto.CommandSuccess(request_id=command.request_id))
        assert request
        s.frames()

    def test_what_was_acknowledged_of_a_batch_is_redelivered(self) -> None:
        s = started()
        s.batch(0, 3)
        old = s.take()
        s.acknowledge(old[:2])
        self.sought(s)
        s.batch(0, 3)
        assert len(s.take()) == 3

    def test_what_the_application_has_is_not_taken_out_of_the_queue(self) -> None:
        s = started()
        s.batch(0, 3)
        s.message(1)
        s.take()
        s.reconnect()
        s.batch(0, 3)
        s.message(1)
        old = s.take()
        self.sought(s)
        s.reconnect()
        s.batch(0, 3)
        s.message(1)
        s.acknowledge(old[:2])
        s.acknowledge(old[3])
        assert len(s.take()) == 4


def test_asking_for_everything_brings_what_is_not_acknowledged() -> None:
    s = started()
    s.batch(0, 3)
    s.acknowledge(s.take()[1])
    s.redeliver()
    s.expect(REDELIVER)
    s.batch(0, 3, redelivery_count=1)
    assert [message.batch_index for message in s.take()] == [0, 2]


def test_on_exclusive_nothing_is_held_back() -> None:
    """There the broker goes back to the first message that is not acknowledged, whatever is asked for."""
    s = started(subscription_type=SubscriptionType.EXCLUSIVE)
    s.batch(0, 3)
    one, two, _ = s.take()
    s.acknowledge(one)
    s.negative_acknowledge(two)
    s.pass_time(2 * SECOND)
    s.expect(REDELIVER)
    s.batch(0, 3, consumer_epoch=1)
    assert [message.batch_index for message in s.take()] == [1, 2]


def test_the_last_message_of_a_batch_that_came_twice_keeps_its_turn() -> None:
    """A Failover consumer that gets its turn asks again in the same epoch, and everything may come twice. The
    message would be lost where the application acknowledges cumulatively what is behind it."""
    s = started(subscription_type=SubscriptionType.FAILOVER)
    for _ in range(2):
        s.batch(0, 3)
        s.batch(1, 3)
    for message in s.take(2):
        s.acknowledge(message)
    rest = s.take()
    assert [(message.entry.position[1], message.batch_index) for message in rest[:4]] == [
        (0, 2),
        (1, 0),
        (1, 1),
        (1, 2),
    ]
