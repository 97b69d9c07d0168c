"""Chunked messages on Shared and Key_Shared: all chunks of one go to one consumer, in order."""

from random import Random
from typing import Any

import pytest

from pulsar_sansio.broker.topics.topic import Topic
from pulsar_sansio.wire import MessageCommand, unpack_payload
from tests.broker.peer import TOPIC, Peer, SubType, World

SHARED = [SubType.Shared, SubType.Key_Shared]
both = pytest.mark.parametrize("kind", SHARED, ids=["shared", "key-shared"])


class Scene:
    """A producer and two consumers, each on a connection of its own."""

    def __init__(self, kind: SubType, permits: int = 1000, **fields: Any) -> None:
        self.world = World()
        self.kind = kind
        self.producing = self.world.connect()
        self.producing.producer()
        self.peers: list[Peer] = [self.world.connect(), self.world.connect()]
        for number, peer in enumerate(self.peers):
            peer.subscribe(kind, permits=permits, consumer_name=f"c{number}", **fields)
        self._sequence = 0

    def chunk(self, message: str, number: int, of: int) -> None:
        self.producing.publish(
            f"{message}{number}".encode(),
            self._sequence,
            partition_key=message,
            uuid=message,
            chunk_id=number,
            num_chunks_from_msg=of,
            total_chunk_msg_size=of,
        )

    def single(self, payload: bytes) -> None:
        self._sequence += 1
        self.producing.publish(payload, self._sequence)

    def came(self) -> list[list[MessageCommand]]:
        return [peer.messages() for peer in self.peers]


def payloads(messages: list[MessageCommand]) -> list[bytes]:
    return [unpack_payload(message.payload).payload for message in messages]


def of_each_message(*heaps: list[MessageCommand]) -> dict[str, tuple[int, list[bytes]]]:
    """Message -> the consumer's heap, and the chunks in order of arrival; a message in two heaps fails."""
    found: dict[str, tuple[int, list[bytes]]] = {}
    for number, heap in enumerate(heaps):
        for payload in payloads(heap):
            place, chunks = found.setdefault(payload[:1].decode(), (number, []))
            assert place == number, f"{payload!r} went to another consumer than the chunks before it"
            chunks.append(payload)
    return found


@both
def test_to_one_consumer_in_order_among_other_messages(kind: SubType) -> None:
    scene = Scene(kind)
    for number in range(4):
        for message in "ABCDEF":
            scene.chunk(message, number, 4)
        scene.single(b"-")
    heaps = [[each for each in heap if payloads([each]) != [b"-"]] for heap in scene.came()]
    chunks = of_each_message(*heaps)
    assert {message: each for message, (_, each) in chunks.items()} == {
        message: [f"{message}{number}".encode() for number in range(4)] for message in "ABCDEF"
    }
    assert len({consumer for consumer, _ in chunks.values()}) == 2, "both have some"


@both
def test_when_its_consumer_closes_all_go_to_the_next_together(kind: SubType) -> None:
    scene = Scene(kind)
    for number in range(2):
        for message in "ABCDEF":
            scene.chunk(message, number, 3)
    first, second = scene.came()
    assert first
    assert second
    scene.peers[0].drop()
    for message in "ABCDEF":
        scene.chunk(message, 2, 3)
    after = scene.peers[1].messages()
    chunks = of_each_message(second + after)
    assert {message: each for message, (_, each) in chunks.items()} == {
        message: [f"{message}{number}".encode() for number in range(3)] for message in "ABCDEF"
    }


@both
def test_chunks_wait_for_their_consumer_and_block_no_other(kind: SubType) -> None:
    scene = Scene(kind, permits=0)
    for peer in scene.peers:
        peer.flow(1)
    scene.chunk("A", 0, 3)
    owner = next(number for number, heap in enumerate(scene.came()) if heap)
    other = 1 - owner
    scene.chunk("A", 1, 3)
    scene.chunk("A", 2, 3)
    scene.peers[other].flow(100)
    if kind == SubType.Shared:
        scene.single(b"x")
        assert payloads(scene.peers[other].messages()) == [b"x"]
    scene.peers[other].nothing()
    scene.peers[owner].flow(1)
    assert payloads(scene.peers[owner].messages()) == [b"A1"]
    scene.peers[owner].flow(1)
    assert payloads(scene.peers[owner].messages()) == [b"A2"]


@both
def test_chunks_that_wait_go_with_those_of_a_consumer_that_closes(kind: SubType) -> None:
    scene = Scene(kind, permits=0)
    for peer in scene.peers:
        peer.flow(1)
    scene.chunk("A", 0, 3)
    owner = next(number for number, heap in enumerate(scene.came()) if heap)
    scene.chunk("A", 1, 3)
    scene.chunk("A", 2, 3)
    scene.peers[1 - owner].flow(100)
    scene.peers[owner].drop()
    assert payloads(scene.peers[1 - owner].messages()) == [b"A0", b"A1", b"A2"]


@both
def test_negatively_acknowledged_they_are_redelivered_in_order_to_one_consumer(kind: SubType) -> None:
    scene = Scene(kind)
    for number in range(3):
        scene.chunk("A", number, 3)
    heaps = scene.came()
    owner = next(number for number, heap in enumerate(heaps) if heap)
    scene.peers[owner].redeliver(*heaps[owner])
    again = of_each_message(*scene.came())
    assert [chunks for _, chunks in again.values()] == [[b"A0", b"A1", b"A2"]]


def test_a_negatively_acknowledged_chunk_goes_to_the_consumer_of_the_others() -> None:
    scene = Scene(SubType.Shared)
    for number in range(3):
        scene.chunk("A", number, 3)
    heaps = scene.came()
    owner = next(number for number, heap in enumerate(heaps) if heap)
    for _ in range(3):
        scene.peers[owner].redeliver(heaps[owner][1])
        assert payloads(scene.peers[owner].messages()) == [b"A1"]
    scene.peers[1 - owner].nothing()


def test_a_limit_on_unacknowledged_messages_counts_chunks() -> None:
    scene = Scene(SubType.Shared)
    scene.world.broker.administration.set_policy(
        scene.world.now, "public/default", "max_unacked_messages_per_subscription", 2
    )
    for number in range(4):
        scene.chunk("A", number, 4)
    scene.single(b"x")
    heaps = scene.came()
    owner = next(number for number, heap in enumerate(heaps) if heap)
    assert payloads(heaps[owner]) == [b"A0", b"A1"]
    assert not heaps[1 - owner]
    scene.peers[owner].ack(*heaps[owner])
    first, second = scene.came()
    assert len(first) + len(second) == 2


@both
def test_a_message_that_was_never_finished_is_like_any_other(kind: SubType) -> None:
    """Its producer died. Once its chunks are acknowledged, the broker keeps nothing of the message."""
    scene = Scene(kind)
    scene.chunk("A", 0, 3)
    heaps = scene.came()
    owner = next(number for number, heap in enumerate(heaps) if heap)
    scene.peers[owner].ack(*heaps[owner])
    for number in range(3):
        scene.chunk("A", number, 3)
    assert [chunks for _, chunks in of_each_message(*scene.came()).values()] == [[b"A0", b"A1", b"A2"]]


def test_a_uuid_of_unreasonable_length_is_not_kept() -> None:
    """The uuid of a chunk needs no memory beside its entry."""
    scene = Scene(SubType.Shared)
    scene.producing.publish(b"x", 0, uuid="u" * 100_000, chunk_id=0, num_chunks_from_msg=2)
    topic = scene.world.broker.topics.by_name[TOPIC]
    assert isinstance(topic, Topic)
    assert topic.log.delayed_or_chunked == {}
    assert sum(map(len, scene.came())) == 1


@pytest.mark.parametrize("seed", range(20))
def test_whatever_happens_a_consumer_gets_messages_whole_and_in_order(seed: int) -> None:
    """Permits come one by one, consumers disconnect and reconnect; whole messages are acknowledged."""
    random = Random(seed)
    scene = Scene(SubType.Shared, permits=0)
    unsent = dict.fromkeys("ABCDEFGH", 0)
    held: list[dict[str, list[MessageCommand]]] = [{}, {}]
    acknowledged = []

    def look(which: int) -> None:
        for message in scene.peers[which].messages():
            chunk = payloads([message])[0].decode()
            name, number = chunk[0], chunk[1]
            chunks = held[which].setdefault(name, [])
            assert len(chunks) == int(number), f"{name}{number} after {len(chunks)} chunks"
            chunks.append(message)
        for name in [name for name, chunks in held[which].items() if len(chunks) == 3]:
            if random.random() < 0.5 or not unsent:
                scene.peers[which].ack(*held[which].pop(name))
                acknowledged.append(name)

    while unsent:
        which = random.randrange(2)
        action = random.random()
        if action < 0.4:
            name = random.choice(sorted(unsent))
            scene.chunk(name, unsent[name], 3)
            unsent[name] += 1
            if unsent[name] == 3:
                del unsent[name]
        elif action < 0.85:
            scene.peers[which].flow(1)
        else:
            scene.peers[which].drop()
            held[which] = {}
            scene.peers[which] = scene.world.connect()
            scene.peers[which].subscribe(SubType.Shared, permits=0, consumer_name=f"c{which}")
        look(0)
        look(1)
    for _ in range(8):
        for which in (0, 1):
            scene.peers[which].flow(10)
            look(0)
            look(1)
    assert sorted(acknowledged) == sorted("ABCDEFGH")
    assert scene.world.broker.topic_administration.stats(TOPIC)["subscriptions"]["s"]["msgBacklog"] == 0
