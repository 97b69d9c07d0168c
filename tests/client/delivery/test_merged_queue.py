"""Queues whose messages are delivered in turn."""

from collections.abc import Iterator
from random import Random
from typing import Any

import pytest

from pulsar_sansio.client.acknowledging.ack_tracker import AckTracker
from pulsar_sansio.client.delivery.merged_queue import MergedQueue
from pulsar_sansio.client.delivery.permits import Permits
from pulsar_sansio.client.delivery.received_entries import ReceivedBatch
from pulsar_sansio.client.delivery.receiver_queue import LONGEST_RUN, ReceiverQueue
from pulsar_sansio.model.errors import ClosedError
from pulsar_sansio.model.message import Entry, Message, Source

HEADER: Any = None
"""The tests do not look at the header."""


class Topic:
    """A queue of one topic, filled as a consumer fills it."""

    def __init__(self, name: str, merged: MergedQueue, queue_size: int = 1000) -> None:
        self.name = name
        self.permits = Permits(queue_size)
        self.permits.attach(lambda granted: None)
        self.queue = ReceiverQueue(self.permits)
        self._merged = merged
        self._single = AckTracker(False).single
        self._source = Source(name, -1)
        self._entry = 0
        self.sent: list[bytes] = []

    def _entry_of(self, size: int) -> Entry:
        self._entry += 1
        return Entry(self._source, (1, self._entry), HEADER, 0, self._single, HEADER if size else None, size)

    def add(self, count: int = 1) -> bool:
        """Entries of one message; whether the application would be told."""
        for _ in range(count):
            self.queue.add(Message.of(self._payload(), self._entry_of(0), -1))
        return self._arrived()

    def add_batch(self, count: int) -> bool:
        payloads = [self._payload() for _ in range(count)]
        self.queue.add_batch(ReceivedBatch(self._entry_of(count), payloads, range(count)))
        return self._arrived()

    def _payload(self) -> bytes:
        payload = f"{self.name}{len(self.sent)}".encode()
        self.sent.append(payload)
        return payload

    def _arrived(self) -> bool:
        if self.queue.announced:
            return False
        self.queue.announced = True
        told = self._merged.add(self.queue)
        if told:
            self._merged.announced = True
        return told


def drained(merged: MergedQueue) -> list[bytes]:
    messages = []
    while (message := merged.receive()) is not None:
        messages.append(message.data)
    return messages


def test_each_queue_gives_a_run_and_then_it_is_the_next_ones_turn() -> None:
    """One that has a thousand times more than another does not hold the other up. Rules MULTI-04 and
    MULTI-19."""
    merged = MergedQueue()
    busy, quiet = Topic("a", merged), Topic("b", merged)
    busy.add(200)
    quiet.add(2)
    names = [message[:1] for message in drained(merged)]
    assert names.index(b"b") <= LONGEST_RUN
    assert (names.count(b"a"), names.count(b"b")) == (200, 2)


def test_a_queue_that_is_filled_again_and_again_takes_turns() -> None:
    merged = MergedQueue()
    busy, quiet = Topic("a", merged), Topic("b", merged)
    busy.add_batch(10)
    quiet.add(1)
    received: list[bytes] = []
    while b"b0" not in received:
        message = merged.receive()
        assert message is not None
        received.append(message.data)
        busy.add_batch(10)
    assert len(received) <= 20


def test_whose_messages_are_taken_back_again_and_again_takes_turns() -> None:
    """INV-C16: what is asked for again comes in place of what was left of its run."""
    merged = MergedQueue()
    busy, quiet = Topic("a", merged), Topic("b", merged)
    busy.add_batch(10)
    quiet.add(2)
    received: list[bytes] = []
    for _ in range(4):
        message = merged.receive()
        assert message is not None
        received.append(message.data[:1])
        busy.queue.clear()
        busy.add_batch(10)
    assert received == [b"a", b"b", b"b", b"a"]


def test_taking_many_gives_each_queue_its_share() -> None:
    merged = MergedQueue()
    topics = [Topic(name, merged) for name in "abc"]
    for topic in topics:
        topic.add(500)
    taken = [message.data[:1] for message in merged.take(300)]
    assert [taken.count(name) for name in (b"a", b"b", b"c")] == [100, 100, 100]
    assert len(merged.take(10_000)) == 1200
    assert len(merged.take(10)) == 0


def test_the_application_is_told_when_something_comes_to_an_empty_queue() -> None:
    """Rule MULTI-20."""
    merged = MergedQueue()
    first, second = Topic("a", merged), Topic("b", merged)
    assert first.add() is True
    assert second.add() is False
    drained(merged)
    assert merged.announced is False
    assert second.add() is True


def test_a_queue_that_was_cleared_gives_nothing_and_is_no_reason_to_be_silent() -> None:
    merged = MergedQueue()
    first, second = Topic("a", merged), Topic("b", merged)
    first.add(3)
    first.queue.clear()
    assert second.add() is True
    assert drained(merged) == [b"b0"]
    assert first.add() is True
    assert drained(merged) == [b"a3"]


def test_a_queue_that_is_removed_gives_nothing_more() -> None:
    merged = MergedQueue()
    first, second = Topic("a", merged), Topic("b", merged)
    first.add(3)
    second.add(1)
    assert merged.receive() is not None
    merged.remove(first.queue)
    merged.remove(first.queue)
    assert merged.available == 1
    assert drained(merged) == [b"b0"]


def test_a_closed_one_says_so() -> None:
    merged = MergedQueue()
    topic = Topic("a", merged)
    topic.add(3)
    merged.close("it is closed")
    for call in (merged.receive, lambda: merged.take(1)):
        with pytest.raises(ClosedError, match="it is closed"):
            call()
    assert merged.available == 0


def test_what_was_left_of_a_run_is_not_delivered_once_it_is_closed() -> None:
    merged = MergedQueue()
    topic = Topic("a", merged)
    topic.add(3)
    assert merged.receive() is not None
    merged.close("it is closed")
    assert list(merged.ready) == []
    with pytest.raises(ClosedError, match="it is closed"):
        merged.receive()


@pytest.mark.parametrize("seed", range(30))
def test_whatever_happens_every_message_comes_once_in_the_order_of_its_topic(seed: int) -> None:
    """Received one by one, out of the iterator at hand, in lists; cleared and filled in between. Permits come
    back for all. Rules MULTI-23 and MULTI-34."""
    draw = Random(seed)
    merged = MergedQueue()
    sizes = [draw.choice([1, 2, 5, 100]) for _ in range(4)]
    topics = [Topic(name, merged, size) for name, size in zip("abcd", sizes, strict=True)]
    received: dict[str, list[bytes]] = {topic.name: [] for topic in topics}
    gone: dict[str, set[bytes]] = {topic.name: set() for topic in topics}
    at_hand: Iterator[Message] = iter(())

    def got(message: Message) -> None:
        received[message.topic].append(message.data)

    for _ in range(300):
        topic = draw.choice(topics)
        match draw.randrange(8):
            case 0:
                topic.add(draw.randrange(1, 5))
            case 1:
                topic.add_batch(draw.randrange(1, 90))
            case 2 if draw.random() < 0.2:
                queued = len(topic.sent) - len(received[topic.name]) - len(gone[topic.name])
                lost = [m for m in topic.sent if m not in received[topic.name] and m not in gone[topic.name]]
                assert len(lost) == queued
                gone[topic.name].update(lost)
                topic.queue.clear()
            case 3:
                for message in merged.take(draw.randrange(1, 120)):
                    got(message)
            case 4 | 5:
                for message in at_hand:
                    got(message)
                    if draw.random() < 0.3:
                        break
            case _:
                if (one := merged.receive()) is not None:
                    got(one)
                at_hand = merged.ready
        total = sum(len(t.sent) - len(received[t.name]) - len(gone[t.name]) for t in topics)
        assert merged.available == total
    for message in at_hand:
        got(message)
    while (one := merged.receive()) is not None:
        got(one)
    for topic in topics:
        assert received[topic.name] == [each for each in topic.sent if each not in gone[topic.name]]
        assert topic.permits.at_broker + topic.permits.unreported == topic.permits.queue_size + len(
            topic.sent
        )
