"""The queue between arrival and application."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsar_sansio.client.delivery.permits import Permits
from pulsar_sansio.client.delivery.received_entries import ReceivedBatch
from pulsar_sansio.client.delivery.receiver_queue import ReceiverQueue
from pulsar_sansio.model.message import Entry, Message, Source
from pulsar_sansio.model.message_id import MessageId
from pulsar_sansio.wire import MessageMetadata

HEADER = MessageMetadata("p", 0, 0)
SOURCE = Source("persistent://public/default/t", -1)


class Queue:
    """A queue with its ledger of permits and everything granted."""

    def __init__(self, queue_size: int) -> None:
        self.permits = Permits(queue_size)
        self.granted: list[int] = []
        self.permits.attach(self.granted.append)
        self.queue = ReceiverQueue(self.permits)

    def add(self, entry: int, size: int = 0, skip: int = 0) -> None:
        """An entry of one message (`size` 0) or a batch without its first `skip` messages."""
        self.permits.charge(max(size - skip, 1), 1)
        facts = Entry(SOURCE, (1, entry), HEADER, 0, None, None, size)
        if size:
            indexes = range(skip, size)
            self.queue.add_batch(ReceivedBatch(facts, [f"{entry}.{i}".encode() for i in indexes], indexes))
        else:
            self.queue.add(Message.of(str(entry).encode(), facts, -1))

    def receive_all(self) -> list[str]:
        received = []
        while (message := self.queue.receive()) is not None:
            received.append(message.data.decode())
        return received


def test_messages_leave_in_the_order_of_arrival() -> None:
    q = Queue(100)
    q.add(0)
    q.add(1, 3)
    q.add(2)
    assert q.queue.available == 5
    assert q.receive_all() == ["0", "1.0", "1.1", "1.2", "2"]
    assert q.queue.available == 0
    assert q.queue.receive() is None


def test_a_batch_larger_than_the_queue_is_accepted_whole() -> None:
    """Rule CONS-02."""
    q = Queue(1)  # CONS-37
    q.add(0, 5)
    assert q.receive_all() == ["0.0", "0.1", "0.2", "0.3", "0.4"]
    assert q.granted == [1, 1, 1, 1, 1, 1]


def test_permits_go_back_with_the_message_that_makes_half_a_queue() -> None:
    """Rules CONS-22, FLOW-04 and FLOW-15."""
    q = Queue(4)
    q.add(0, 6)
    grants = []
    for _ in range(6):
        q.queue.receive()
        grants.append(sum(q.granted))
    assert grants == [4, 6, 6, 8, 8, 10]  # FLOW-04


def test_permits_that_come_back_by_other_ways_count_too() -> None:
    q = Queue(10)
    q.add(0, 3)
    q.add(1)
    q.permits.charge(4, 1)
    q.permits.give_back(4)
    assert q.granted == [10]
    q.queue.receive()
    assert q.granted == [10, 5]


@pytest.mark.parametrize("limit", [0, 1, 2, 3, 5, 7, 100])
def test_take_gives_what_receive_would(limit: int) -> None:
    one, other = Queue(3), Queue(3)
    for q in (one, other):
        for entry, size in enumerate([2, 0, 4, 0, 0, 1]):
            q.add(entry, size)
    received = one.receive_all()
    assert [message.data.decode() for message in other.queue.take(limit)] == received[:limit]
    assert other.queue.available == len(received[limit:])
    assert other.receive_all() == received[limit:]
    assert sum(other.granted) == sum(one.granted)


def test_clear_drops_everything_and_the_permits_go_back_once() -> None:
    q = Queue(10)
    q.add(0, 4)
    q.add(1)
    q.queue.receive()
    q.queue.clear()
    assert q.queue.available == 0
    assert q.queue.receive() is None
    assert q.permits.at_broker + q.permits.unreported == 10
    q.queue.clear()
    assert q.permits.at_broker + q.permits.unreported == 10


def test_remove_takes_these_entries_and_no_others() -> None:
    """Rules REDEL-04, REDEL-06 and REDEL-08."""
    q = Queue(10)
    for entry, size in enumerate([3, 0, 2, 0]):
        q.add(entry, size)
    q.queue.receive()
    q.queue.remove({(1, 0), (1, 3)})
    assert q.receive_all() == ["1", "2.0", "2.1"]
    assert q.permits.at_broker + q.permits.unreported == 10


def test_remove_in_the_middle_of_entries_of_one_message() -> None:
    q = Queue(10)
    for entry in range(4):
        q.add(entry)
    q.queue.receive()
    q.queue.remove({(1, 0), (1, 2)})
    assert q.receive_all() == ["1", "3"]
    assert q.permits.at_broker + q.permits.unreported == 10


def test_remove_everything_that_was_announced() -> None:
    q = Queue(10)
    q.add(0)
    q.queue.announced = True
    q.queue.remove({(1, 0)})
    assert not q.queue.announced


@pytest.mark.parametrize("left", [1, 2])
def test_a_message_is_withdrawn_and_the_rest_of_an_earlier_delivery_stays(left: int) -> None:
    """A batch waits twice, as where the broker was asked for everything two times in one epoch."""
    q = Queue(100)
    q.add(0, 4)
    q.add(0, 4)
    for _ in range(4 - left):
        q.queue.receive()
    assert q.queue.withdraw((1, 0), 3 - left) == 1
    assert q.receive_all() == [
        *(f"0.{index}" for index in range(4 - left, 4)),
        *(f"0.{index}" for index in range(4) if index != 3 - left),
    ]
    assert q.queue.delivered == 7
    assert q.permits.at_broker + q.permits.unreported == 100


@pytest.mark.parametrize("size", [0, 6])
def test_what_is_ready_ends_when_its_messages_are_taken_back(size: int) -> None:
    """A held `ready` iterator yields no message that will be redelivered (rules CONS-09, REDEL-02)."""
    ways: list[Callable[[Queue], object]] = [
        lambda q: q.queue.clear(),
        lambda q: q.queue.remove({(1, number) for number in range(6)}),
        lambda q: q.queue.close("closed"),
    ]
    for take_back in ways:
        q = Queue(100)
        for number in range(1 if size else 6):
            q.add(number, size)
        q.queue.receive()
        ready = q.queue.ready
        assert next(ready).data
        take_back(q)
        assert next(ready, None) is None
        assert q.permits.at_broker + q.permits.unreported == 100


def test_ready_and_receive_give_everything_once_and_in_order() -> None:
    q = Queue(7)
    for number, size in enumerate([3, 0, 0, 200, 1]):
        q.add(number, size)
    received = []
    while (message := q.queue.receive()) is not None:
        received.append(message.data)
        received += [each.data for each in q.queue.ready]
    expected = Queue(7)
    for number, size in enumerate([3, 0, 0, 200, 1]):
        expected.add(number, size)
    assert [each.decode() for each in received] == expected.receive_all()
    assert q.granted == expected.granted


class TestResuming:
    """CONS-16: the id after which a subscription that is not durable goes on."""

    def test_nothing_ever_arrived(self) -> None:
        assert Queue(10).queue.resume_after() is None

    def test_before_the_first_waiting_entry(self) -> None:
        q = Queue(10)
        q.add(5)
        assert q.queue.resume_after() == MessageId(1, 4)

    def test_before_the_first_message_of_a_waiting_batch(self) -> None:
        q = Queue(10)
        q.add(5, 3)
        assert q.queue.resume_after() == MessageId(1, 4)

    def test_before_the_first_message_left_of_a_batch(self) -> None:
        q = Queue(10)
        q.add(5, 3)
        q.queue.receive()
        assert q.queue.resume_after() == MessageId(1, 5, -1, 0, 3)

    def test_before_the_first_message_of_a_batch_whose_beginning_was_skipped(self) -> None:
        q = Queue(10)
        q.add(5, 4, skip=2)
        assert q.queue.resume_after() == MessageId(1, 5, -1, 1, 4)

    def test_the_last_message_delivered(self) -> None:
        q = Queue(10)
        q.add(5, 3)
        q.add(6)
        q.receive_all()
        assert q.queue.resume_after() == MessageId(1, 6)
        q.add(7, 2)
        q.queue.take(10)
        assert q.queue.resume_after() == MessageId(1, 7, -1, 1, 2)

    def test_the_last_message_delivered_before_the_queue_was_cleared(self) -> None:
        q = Queue(10)
        q.add(5, 3)
        q.queue.take(2)
        q.queue.clear()
        assert q.queue.resume_after() == MessageId(1, 5, -1, 1, 3)


moves = st.lists(
    st.tuples(st.sampled_from(["add", "receive", "take", "clear", "remove", "release"]), st.integers(0, 7)),
    max_size=60,
)


@given(st.integers(1, 12), moves)
def test_every_permit_comes_back_once_whatever_becomes_of_the_message(
    queue_size: int, moves: list[tuple[str, int]]
) -> None:
    """INV-C6, against a plain list of what waits."""
    q = Queue(queue_size)
    waiting: list[tuple[int, str]] = []
    entry = 0
    for move, number in moves:
        if move == "add":
            q.add(entry, number)
            names = [f"{entry}.{i}" for i in range(number)] if number else [str(entry)]
            waiting += [(entry, name) for name in names]
            entry += 1
        elif move == "receive":
            message = q.queue.receive()
            assert (message.data.decode() if message else None) == (waiting[0][1] if waiting else None)
            del waiting[:1]
        elif move == "take":
            assert [m.data.decode() for m in q.queue.take(number)] == [name for _, name in waiting[:number]]
            del waiting[:number]
        elif move == "clear":
            q.queue.clear()
            waiting.clear()
        elif move == "remove":
            q.queue.remove({(1, entry - 1 - number), (1, entry - 3)})
            waiting = [item for item in waiting if item[0] not in (entry - 1 - number, entry - 3)]
        else:
            q.permits.charge(number, 1)
            q.permits.give_back(number)
        assert q.queue.available == len(waiting)
        # A run's permits go back when it ends, which is while its messages are still waiting.
        if not waiting:
            assert q.permits.at_broker + q.permits.unreported == queue_size
            assert q.permits.unreported < q.permits.threshold
        assert q.permits.at_broker + len(waiting) <= queue_size
