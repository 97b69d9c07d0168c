"""`MeteredQueue` knows the bytes that wait in it, whatever way they come and go."""

from collections.abc import Callable

import pytest

from pulsar_sansio.client.delivery.metered_queue import MeteredQueue
from pulsar_sansio.client.delivery.permits import Permits
from pulsar_sansio.client.delivery.received_entries import ReceivedBatch
from pulsar_sansio.model.message import Entry, Message, Source
from pulsar_sansio.wire import MessageMetadata

SOURCE = Source("persistent://public/default/t", -1)
HEADER = MessageMetadata("p", 0, 0)


class Queue:
    """A queue of messages with given sizes."""

    def __init__(self) -> None:
        self.permits = Permits(100)
        self.permits.attach(lambda permits: None)
        self.queue = MeteredQueue(self.permits)

    def add(self, entry: int, *sizes: int) -> None:
        """Add a batch of messages of these sizes, or one message by itself."""
        self.permits.charge(len(sizes), 1)
        facts = Entry(SOURCE, (1, entry), HEADER, 0, None, None, len(sizes))
        payloads = [bytes(size) for size in sizes]
        if len(sizes) == 1:
            self.queue.add(Message.of(payloads[0], facts, -1))
        else:
            self.queue.add_batch(ReceivedBatch(facts, payloads, range(len(sizes))))


@pytest.fixture
def filled() -> Queue:
    made = Queue()
    made.add(0, 10)
    made.add(1, 1, 2, 3)
    made.add(2, 100)
    return made


def test_the_bytes_of_an_item_leave_with_its_last_message(filled: Queue) -> None:
    waiting = [filled.queue.bytes_waiting]
    while filled.queue.receive() is not None:
        waiting.append(filled.queue.bytes_waiting)
    assert waiting == [116, 106, 106, 106, 100, 0]


@pytest.mark.parametrize("received", [0, 1, 2, 3])
def test_a_cleared_queue_has_none(filled: Queue, received: int) -> None:
    for _ in range(received):
        filled.queue.receive()
    filled.queue.clear()
    assert filled.queue.bytes_waiting == 0
    filled.add(3, 5)
    assert filled.queue.bytes_waiting == 5


def test_taking_counts_as_receiving(filled: Queue) -> None:
    filled.queue.take(5)
    assert filled.queue.bytes_waiting == 0


@pytest.mark.parametrize(
    ("limit", "most", "count"),
    [(10, 1000, 5), (3, 1000, 3), (10, 10, 1), (10, 12, 2), (10, 13, 3), (10, 16, 4), (10, 0, 1), (1, 0, 1)],
)
def test_as_many_fit_as_have_the_bytes_together_and_at_least_one(
    filled: Queue, limit: int, most: int, count: int
) -> None:
    assert filled.queue.fitting(limit, most) == count
    assert filled.queue.size_of_next(count) == sum([10, 1, 2, 3, 100][:count])


def test_what_was_received_of_a_batch_is_not_next(filled: Queue) -> None:
    filled.queue.receive()
    filled.queue.receive()
    assert filled.queue.size_of_next(2) == 5
    assert filled.queue.fitting(10, 5) == 2


def test_an_empty_queue_has_nothing_that_fits() -> None:
    assert Queue().queue.fitting(10, 10) == 0


def test_a_subclass_sees_each_change() -> None:
    """A scaled queue tells the memory limit of every change."""
    changes: list[int] = []

    def weigh(self: MeteredQueue, size: int, original: Callable[..., None] = MeteredQueue.weigh) -> None:
        changes.append(size)
        original(self, size)

    made = Queue()
    made.queue = type("Weighed", (MeteredQueue,), {"weigh": weigh})(made.permits)
    made.add(0, 4)
    made.add(1, 1, 2)
    made.queue.receive()
    made.queue.clear()
    assert changes == [4, 3, -4, -3]
    assert made.queue.bytes_waiting == 0
