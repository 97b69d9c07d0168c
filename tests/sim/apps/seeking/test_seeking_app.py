"""Readers, seeks and table views over a network that is cut, with topics that are unloaded and compacted.

The test runs both cores with bytes in between that arrive in random pieces. The model is the list of
published messages; a reader has one position in it, which determines its next message.
"""

from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from pulsar_sansio.broker import Broker, BrokerConfig, MemoryStore
from pulsar_sansio.broker import outputs as broker_outputs
from pulsar_sansio.client import outputs
from pulsar_sansio.client.client import Client
from pulsar_sansio.model.config import (
    BatchingPolicy,
    ClientConfig,
    OutgoingMessage,
    ProducerSpec,
    ReaderSpec,
    TableViewSpec,
)
from pulsar_sansio.model.message_id import EARLIEST, LATEST, MessageId

MILLISECOND = 1_000_000
WALL = 1_700_000_000_000
TOPIC = "persistent://public/default/t"


class World:
    """A client, a broker, and links whose bytes wait to be delivered."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.now = 1_000 * MILLISECOND
        self.store = MemoryStore()
        self.broker = Broker(
            self.now,
            BrokerConfig(service_url="pulsar://b:6650", ledger_max_entries=7),
            self.store.load(),
            seed=seed,
            wall_time=self.wall,
        )
        config = ClientConfig("pulsar://b:6650", max_backoff=0.2, operation_timeout=3600.0)
        self.client = Client(self.now, config, seed=seed)
        self.waiting: dict[int, tuple[list[bytes], list[bytes]]] = {}
        """The waiting bytes of each link: to the broker, and to the client."""
        self.answers: dict[int, Any] = {}
        self.ready: set[int] = set()
        self.published: list[bytes] = []
        self.ids: list[MessageId] = []

    @property
    def wall(self) -> int:
        return WALL + self.now // MILLISECOND

    # --- the world ---

    def drain(self) -> None:
        while self._client_said() or self._broker_said():
            pass

    def _client_said(self) -> bool:
        output = self.client.next_output()
        match output:
            case outputs.Connect(link):
                self.waiting[link] = ([], [])
                self.broker.accepted(self.now, link, "c")
                self.client.connected(self.now, link)
            case outputs.Transmit(link) if link in self.waiting:
                self.waiting[link][0].append(b"".join(self.client.data_to_send(link)))
            case outputs.Disconnect(link):
                self.waiting.pop(link, None)
                self.broker.disconnected(self.now, link, "closed")
            case outputs.RequestDone(request, result):
                self.answers[request] = result
            case outputs.RequestFailed(_, error):
                raise error
            case (
                outputs.ProducerReady(handle) | outputs.ConsumerReady(handle) | outputs.TableViewReady(handle)
            ):
                self.ready.add(handle)
            case outputs.Receipts(_, _, message_ids):
                self.ids += message_ids
        return output is not None

    def _broker_said(self) -> bool:
        output = self.broker.next_output()
        match output:
            case broker_outputs.Transmit(link) if link in self.waiting:
                self.waiting[link][1].append(b"".join(self.broker.data_to_send(link)))
            case broker_outputs.Disconnect(link):
                if self.waiting.pop(link, None) is not None:
                    self.client.disconnected(self.now, link, "closed")
            case broker_outputs.Persist(write, records):
                self.store.write(records)
                self.broker.persisted(self.now, write)
        return output is not None

    def deliver(self, link: int, to_client: int) -> None:
        """Deliver some of the bytes that wait on a link."""
        waiting = self.waiting[link][to_client]
        data = b"".join(waiting)
        cut = self.random.choice([len(data), self.random.randrange(len(data) + 1)])
        waiting[:] = [data[cut:]] if data[cut:] else []
        side: Any = self.client if to_client else self.broker
        side.receive_data(self.now, link, data[:cut])
        self.drain()

    def pass_time(self) -> None:
        """Advance the time to the next timer, by at most a tenth of a second."""
        moments = [each for each in (self.client.next_deadline(), self.broker.next_deadline()) if each]
        limit = self.now + 100 * MILLISECOND
        self.now = max(self.now, min([limit, *moments]))
        self.client.handle_deadline(self.now)
        self.broker.handle_deadline(self.now)
        self.drain()

    def step(self) -> None:
        """Do one random step."""
        self.drain()
        busy = [(link, way) for link, ways in self.waiting.items() for way in (0, 1) if ways[way]]
        if busy and self.random.random() < 0.8:
            self.deliver(*self.random.choice(busy))
        else:
            self.pass_time()

    def cut(self) -> None:
        """Lose a connection with all bytes in flight."""
        if self.waiting:
            link = self.random.choice(list(self.waiting))
            del self.waiting[link]
            self.client.disconnected(self.now, link, "cut")
            self.broker.disconnected(self.now, link, "cut")
            self.drain()

    def unload(self) -> None:
        self.broker.topic_administration.unload(self.now, TOPIC)
        self.drain()

    def until(self, condition: Callable[[], bool], trouble: float = 0.0) -> None:
        for _ in range(20_000):
            self.drain()
            if condition():
                return
            if self.random.random() < trouble:
                self.random.choice([self.cut, self.unload])()
            self.step()
        raise AssertionError("it never came to that")

    # --- the application ---

    def ask(self, request: int, trouble: float = 0.0) -> Any:
        self.until(lambda: request in self.answers, trouble)
        return self.answers.pop(request)

    def publish(self, producer: int, count: int) -> None:
        """Send each message a moment after the one before, in batches or not."""
        for _ in range(count):
            payload = b"%d" % len(self.published)
            self.published.append(payload)
            self.client.send(self.now, producer, OutgoingMessage(payload), WALL + len(self.published))
            if self.random.random() < 0.3:
                self.client.push(self.now, producer)
        self.client.push(self.now, producer)
        self.until(lambda: len(self.ids) == len(self.published))


class Reading:
    """A reader of the world, and the index of the message that it must deliver next."""

    def __init__(self, world: World, start: MessageId, inclusive: bool, place: int) -> None:
        self.world = world
        self.place = place
        spec = ReaderSpec(
            "t", start, start_inclusive=inclusive, receiver_queue_size=world.random.choice([1, 5, 50])
        )
        self.handle = world.client.open_reader(world.now, spec)
        world.until(lambda: self.handle in world.ready)

    def read(self, count: int, trouble: float) -> None:
        world = self.world
        found: list[bytes] = []

        def receive() -> bool:
            limit = world.random.randint(1, count - len(found))
            found.extend(message.data for message in world.client.take(world.now, self.handle, limit))
            return len(found) == count

        world.until(receive, trouble)
        assert found == world.published[self.place : self.place + count]
        self.place += count

    def seek(self, trouble: float) -> None:
        world = self.world
        total = len(world.published)
        index = world.random.randrange(total)
        inclusive = world.random.random() < 0.5
        kind = world.random.choice(["id", "id", "earliest", "latest", "time"])
        places: dict[str, tuple[MessageId | int, int]] = {
            "id": (world.ids[index], index + (not inclusive)),
            "earliest": (EARLIEST, 0),
            "latest": (LATEST, total),
            # A batch has the time of its first message.
            "time": (WALL + 1, 0),
        }
        target, place = places[kind]
        request = world.client.seek(world.now, self.handle, target, inclusive)
        world.ask(request, trouble)
        self.place = place

    def check_more(self) -> None:
        world = self.world
        more = world.ask(world.client.has_message_available(world.now, self.handle))
        assert more is (self.place < len(world.published))


@pytest.mark.parametrize("seed", range(12))
def test_every_message_once_and_in_order(seed: int) -> None:
    world = World(seed)
    random = world.random
    batching = random.choice([None, BatchingPolicy(max_messages=6, max_delay=0.02)])
    producer = world.client.open_producer(world.now, ProducerSpec("t", batching=batching, send_timeout=0))
    world.until(lambda: producer in world.ready)
    world.broker.subscription_administration.create_subscription(
        world.now, TOPIC, "keeps everything", EARLIEST
    )
    world.publish(producer, 20)
    index = random.randrange(20)
    start, inclusive, place = random.choice(
        [
            (EARLIEST, False, 0),
            (LATEST, False, 20),
            (LATEST, True, 19),
            (world.ids[index], False, index + 1),
            (world.ids[index], True, index),
        ]
    )
    reading = Reading(world, start, inclusive, place)
    for _ in range(12):
        trouble = random.choice([0.0, 0.05])
        for _ in range(random.choice([0, 0, 1, 2])):
            random.choice([world.cut, world.unload])()
        match random.randrange(4):
            case 0:
                world.publish(producer, random.randint(1, 10))
            case 1:
                reading.seek(trouble)
            case 2:
                reading.check_more()
            case _:
                left = len(world.published) - reading.place
                if left:
                    reading.read(random.randint(1, left), trouble)
    left = len(world.published) - reading.place
    if left:
        reading.read(left, 0.02)
    reading.check_more()


@pytest.mark.parametrize("seed", range(12))
def test_a_table_view_has_the_last_value_of_every_key(seed: int) -> None:
    world = World(seed)
    random = world.random
    batching = random.choice([None, BatchingPolicy(max_messages=6, max_delay=0.02)])
    producer = world.client.open_producer(world.now, ProducerSpec("t", batching=batching, send_timeout=0))
    world.until(lambda: producer in world.ready)
    world.broker.subscription_administration.create_subscription(
        world.now, TOPIC, "keeps everything", EARLIEST
    )
    table: dict[str, bytes] = {}

    def put(count: int) -> None:
        for _ in range(count):
            key, value = f"k{random.randrange(8)}", b"%d" % len(world.published)
            if random.random() < 0.3:
                table.pop(key, None)
                message = OutgoingMessage(None, key=key)
            else:
                table[key] = value
                message = OutgoingMessage(value, key=key)
            world.published.append(value)
            world.client.send(world.now, producer, message, WALL + len(world.published))
        world.client.push(world.now, producer)
        world.until(lambda: len(world.ids) == len(world.published))

    def compact() -> None:
        """Compact once every view has read everything: a view that is behind may miss that a key was
        deleted."""
        world.broker.topic_administration.compact(world.now, TOPIC)
        world.until(lambda: world.broker.topic_administration.compaction_status(TOPIC)[0] != "RUNNING")

    put(random.randrange(30))
    if random.random() < 0.5:
        compact()
    trouble = random.choice([0.0, 0.05])
    spec = TableViewSpec("t", receiver_queue_size=random.choice([1, 5, 50]))
    view = world.client.open_table_view(world.now, spec)
    world.until(lambda: view in world.ready, trouble)
    assert world.client.table(view) == table
    for _ in range(8):
        match random.randrange(4):
            case 0:
                compact()
            case 1:
                random.choice([world.cut, world.unload])()
            case _:
                put(random.randint(1, 10))
        world.ask(world.client.refresh(world.now, view), trouble)
        assert world.client.table(view) == table
    late = world.client.open_table_view(world.now, spec)
    world.until(lambda: late in world.ready, trouble)
    assert world.client.table(late) == table
