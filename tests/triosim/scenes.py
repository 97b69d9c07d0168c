"""Short conversations in good weather, each about one thing that the adapter promises.

`world` draws what applications do; a scene says it step by step, so that it can say exactly what has to come
of it. Time is virtual here, too, so a scene may wait, and may say how long something takes. A scene is a
world: all that a world checks of sockets, drivers and bytes is checked here as well.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from itertools import pairwise
from typing import Any

import trio

from pulsar_sansio import (
    Address,
    BatchingPolicy,
    BatchReceivePolicy,
    BrokerConfig,
    ClosedError,
    ConsumerBusy,
    DeadLetterPolicy,
    Message,
    MetadataError,
    TimedOut,
)
from pulsar_sansio.conformance import Side
from pulsar_sansio.wire import encode_command, encode_ping, encode_pong, proto
from pulsar_sim.engine.clock import MILLISECOND, SECOND
from pulsar_trio import Client, Receipt, open_client
from pulsar_trio.client.endpoint import TURN
from tests.triosim.engine.sockets import MemorySocket
from tests.triosim.engine.watch import CLIENT
from tests.triosim.profile import HOST, URL, Profile
from tests.triosim.world import World

CONNECTIONS = 8

CALM = Profile(
    clients=1,
    producers=0,
    messages=0,
    largest=0,
    topics=(),
    subscriptions=(),
    broker=BrokerConfig(
        service_url=URL, keepalive_interval=30.0, failover_delay=0.05, max_connections=CONNECTIONS
    ),
    latency=MILLISECOND,
    jitter=0,
    cut_permille=0,
    capacity=4096,
    cancel_permille=0,
    session_permille=0,
    fault_gap=0,
    slow_permille=0,
)


class Stage(World):
    """A world in which one scene is played."""

    def __init__(self, scene: Callable[[Any], Awaitable[None]], keep: bool = False) -> None:
        super().__init__(0, keep, CALM)
        self._scene = scene

    async def _phases(self) -> None:
        await self._scene(self)

    @asynccontextmanager
    async def client(self, **options: Any) -> AsyncIterator[Client]:
        CLIENT.set("client")
        given = {"initial_backoff": 0.01, "max_backoff": 0.1, **options}
        async with open_client(URL, seed=1, **given) as client:
            self.clients.append((client, trio.CancelScope()))
            try:
                yield client
            finally:
                self.clients.clear()
        self._quiet(client)

    async def peer(self) -> MemorySocket:
        """A connection on which the scene itself says what is said."""
        return await self.net.connect("peer", Address(HOST, 6650), 5.0)

    async def say(self, sock: MemorySocket, data: bytes) -> None:
        """Write these bytes on a connection of `peer`."""
        assert sock.wire is not None
        self.watch.writes(Side.CLIENT, sock.wire.number, data)
        while data:
            with suppress(BlockingIOError):
                data = data[sock.send(data) :]
            await sock.wait_writable()


async def _read(sock: MemorySocket) -> bytes:
    """Everything that comes until the other side ends."""
    read = b""
    buffer = memoryview(bytearray(4096))
    while True:
        await sock.wait_readable()
        with suppress(BlockingIOError):
            size = sock.recv_into(buffer)
            if not size:
                return read
            read += buffer[:size]


HANDSHAKE = encode_command(
    proto.BaseCommand.CONNECT, proto.CommandConnect(client_version="peer", protocol_version=21)
)


# --- links ------------------------------------------------------------------------------------------------


async def bytes_are_counted(stage: Stage) -> None:
    """The statistics of a client are of all bytes that its connections have carried."""
    async with stage.client() as client, client.create_producer("t") as producer:
        await producer.send(b"x" * 10_000)
        (ours,) = [sock for sock in stage.net.open if sock.client_side]
        found = client.statistics()
        assert (found.links, found.producers, found.consumers) == (1, 1, 0)
        assert (found.bytes_sent, found.bytes_received) == ours.carried
        assert found.bytes_sent > 10_000


async def half_closed_peers_are_answered(stage: Stage) -> None:
    """A peer that ends its side, and reads later, gets all that was said to it before."""
    sock = await stage.peer()
    await stage.say(sock, HANDSHAKE + encode_ping() * 500)
    await trio.sleep(0.1)
    sock.shutdown(1)
    await trio.sleep(0.1)
    heard = await _read(sock)
    assert heard.count(encode_pong()) == 500
    sock.close()


async def final_bytes_arrive(stage: Stage) -> None:
    """A connection that the broker refuses and ends at once is told why."""
    socks = [await stage.peer() for _ in range(CONNECTIONS + 1)]
    await stage.say(socks[-1], HANDSHAKE)
    assert b"maximum number of connections" in await _read(socks[-1])
    for sock in socks:
        sock.close()


async def closing_does_not_wait_for_a_connection(stage: Stage) -> None:
    """A client that is closed while its broker does not answer gives the attempt up at once."""
    stage.net.network.conditions.silent[HOST] = 60 * SECOND
    async with stage.client(connect_timeout=10.0) as client, trio.open_nursery() as nursery:
        nursery.start_soon(_open_until_closed, client)
        await trio.sleep(1.0)
        began = trio.current_time()
        await client.aclose()
        assert trio.current_time() == began
    stage.net.network.heal()


async def several_tasks_close_a_client(stage: Stage) -> None:
    """Each task that closes a client waits until nothing of it is left, and no longer."""
    async with (
        stage.client() as client,
        client.create_producer("t"),
        client.subscribe("t", "s"),
        trio.open_nursery() as nursery,
    ):

        async def close(after: float) -> None:
            await trio.sleep(after)
            with trio.fail_after(1.0):
                await client.aclose()
            assert client.statistics().links == 0

        for after in (0.0, 0.0, 0.001, 0.002, 0.003, 0.004):
            nursery.start_soon(close, after)


async def _open_until_closed(client: Client) -> None:
    with suppress(ClosedError):
        async with client.create_producer("t"):
            raise AssertionError("it cannot be opened")


# --- producers --------------------------------------------------------------------------------------------


async def an_open_batch_is_sent_in_its_time(stage: Stage) -> None:
    """A message waits in its batch for the policy's delay, and no longer, though nothing else happens."""
    batching = BatchingPolicy(max_messages=100, max_delay=0.05)
    async with stage.client() as client, client.create_producer("t", batching=batching) as producer:
        for _ in range(2):
            await trio.sleep(1.0)
            began = trio.current_time()
            receipt = await producer.enqueue(b"1")
            await receipt.wait()
            assert 0.05 <= trio.current_time() - began < 0.06


async def a_message_fails_in_its_time(stage: Stage) -> None:
    """The timeout of a message counts also where there is no connection, and nothing else happens."""
    async with (
        stage.client(connect_timeout=30.0) as client,
        client.create_producer("t", batching=None, send_timeout=0.5) as producer,
    ):
        await producer.send(b"1")
        stage.net.network.conditions.silent[HOST] = 60 * SECOND
        for wire in list(stage.net.network.wires.values()):
            wire.reset()
        for _ in range(2):
            await trio.sleep(1.0)
            began = trio.current_time()
            receipt = await producer.enqueue(b"2")
            try:
                await receipt.wait()
            except TimedOut:
                assert 0.5 <= trio.current_time() - began < 0.51
            else:
                raise AssertionError("it was sent")
        stage.net.network.heal()


async def enqueue_yields(stage: Stage) -> None:
    """Other tasks have a turn after every `TURN` messages."""
    async with stage.client() as client, client.create_producer("t", max_pending_messages=1000) as producer:
        turns: list[int] = []
        for number in range(4 * TURN):
            steps = stage.canceller.steps
            await producer.enqueue(b"1")
            if stage.canceller.steps != steps:
                turns.append(number)
        assert {after - before for before, after in pairwise(turns)} == {TURN}


async def asking_for_messages_yields(stage: Stage) -> None:
    """Other tasks have a turn after every `TURN` answers, where they are known at once."""
    async with (
        stage.client() as client,
        client.subscribe("t", "s") as consumer,
        client.create_producer("t") as producer,
    ):
        await producer.send(b"1")
        await trio.sleep(1.0)
        turns: list[int] = []
        for number in range(4 * TURN):
            steps = stage.canceller.steps
            assert await consumer.has_message_available()
            if stage.canceller.steps != steps:
                turns.append(number)
        assert {after - before for before, after in pairwise(turns)} == {TURN}


async def send_many_takes_in_parts(stage: Stage) -> None:
    """Other tasks have a turn after every part, and the ids are those of the messages over all pages."""
    parts: dict[int, int] = {}

    def messages(count: int) -> Iterator[bytes]:
        for number in range(count):
            parts[stage.canceller.steps] = parts.get(stage.canceller.steps, 0) + 1
            yield b"%d" % number

    async with (
        stage.client() as client,
        client.subscribe("t", "s", "exclusive") as consumer,
        client.create_producer("t", max_pending_messages=10_000) as producer,
    ):
        for count in (1025, 2500):
            ids = await producer.send_many(messages(count))
            received: list[Message] = []
            while len(received) < count:
                received += await consumer.receive_many()
            assert [message.data for message in received] == [b"%d" % number for number in range(count)]
            assert [message.message_id for message in received] == list(ids)
        assert max(parts.values()) <= 1000


async def receipts_say_the_same_in_any_order(stage: Stage) -> None:
    """A receipt gives its message's own id, whichever receipts were asked before."""
    async with (
        stage.client() as client,
        client.subscribe("t", "s", "exclusive") as consumer,
        client.create_producer("t", batching=BatchingPolicy(max_messages=1000)) as producer,
    ):
        receipts: list[Receipt] = []
        for size in (1, 50, 3):
            receipts += [await producer.enqueue(b"1") for _ in range(size)]
            await producer.flush()
        ids = [(await consumer.receive()).message_id for _ in receipts]
        for order in (range(54), range(53, -1, -1), [0, 1, 0, 2, 0, 51, 1, 52, 3]):
            for number in order:
                assert await receipts[number].wait() == ids[number]


async def partitions_confirm_in_any_order(stage: Stage) -> None:
    """A receipt is done when its own message is confirmed, not when later ones of another partition are."""
    stage.broker.create_partitioned_topic("p", 2)
    batching = BatchingPolicy(max_messages=3, max_delay=0.5)
    async with stage.client() as client, client.create_producer("p", batching=batching) as producer:
        await trio.sleep(1.0)
        keys = ["a", *["b"] * 3] if producer.partitions == 2 else []
        receipts = [await producer.enqueue(b"1", key=key) for key in keys]
        await trio.sleep(0.1)
        assert [receipt.done() for receipt in receipts] == [False, True, True, True]
        assert len({await receipt.wait() for receipt in receipts}) == 4


# --- consumers --------------------------------------------------------------------------------------------


async def nothing_is_fetched_in_advance(stage: Stage) -> None:
    """A queue of no size asks for one message for every task that waits."""
    async with (
        stage.client() as client,
        client.subscribe("t", "s", receiver_queue_size=0) as consumer,
        client.create_producer("t") as producer,
        trio.open_nursery() as nursery,
    ):
        received: list[bytes] = []

        async def receive() -> None:
            received.append((await consumer.receive()).data)

        for _ in range(3):
            nursery.start_soon(receive)
        await trio.sleep(0.1)
        for number in range(4):
            await producer.send(b"%d" % number)
        await trio.sleep(0.1)
        assert sorted(received) == [b"0", b"1", b"2"]


async def tasks_collect_each_in_its_time(stage: Stage) -> None:
    """The second of two tasks that collect does not wait longer than the policy allows."""
    policy = BatchReceivePolicy(max_messages=5, timeout=0.5)
    async with (
        stage.client() as client,
        client.subscribe("t", "s", batch_receive=policy) as consumer,
        client.create_producer("t") as producer,
        trio.open_nursery() as nursery,
    ):
        await producer.send_many([b"1", b"2"])

        async def receive() -> None:
            began = trio.current_time()
            assert len(await consumer.receive_many(1)) == 1
            assert 0.5 <= trio.current_time() - began < 0.51

        nursery.start_soon(receive)
        await trio.sleep(0.1)
        nursery.start_soon(receive)


async def the_end_of_a_topic(stage: Stage) -> None:
    """A terminated topic ends for those that wait and collect; what is delivered again comes all the same."""
    policy = BatchReceivePolicy(max_messages=5, timeout=0.0)
    async with stage.client() as client:
        async with client.create_producer("t") as producer:
            async with (
                client.subscribe("t", "one", "exclusive") as one,
                client.subscribe("t", "many", "exclusive", batch_receive=policy) as many,
            ):
                await producer.send_many([b"1", b"2"])
                stage.broker.terminate("persistent://public/default/t")
                for consumer in (one, many):
                    received = [await consumer.receive() for _ in range(2)]
                    consumer.acknowledge(received)
                for call in (one.receive, one.receive_many, many.receive, many.receive_many):
                    try:
                        await call()
                    except trio.EndOfChannel:
                        continue
                    raise AssertionError("there is an end")
                await one.seek("earliest")
                assert [(await one.receive()).data for _ in range(2)] == [b"1", b"2"]


async def unsubscribing_ends_a_consumer(stage: Stage) -> None:
    """The subscription is gone, and a task that waits for a message hears that the consumer has ended."""
    async with (
        stage.client() as client,
        client.subscribe("t", "s") as consumer,
        trio.open_nursery() as nursery,
    ):

        async def receive() -> None:
            with suppress(ClosedError):
                await consumer.receive()
                raise AssertionError("there is no message")

        nursery.start_soon(receive)
        await trio.sleep(1.0)
        await consumer.unsubscribe()
        assert stage.broker.stats("persistent://public/default/t")["subscriptions"] == {}


async def what_a_broker_refuses_is_raised(stage: Stage) -> None:
    """A request that the broker refuses raises what the broker has said."""
    async with stage.client() as client:
        async with client.subscribe("t", "s") as one, client.subscribe("t", "s"):
            try:
                await one.unsubscribe()
            except MetadataError:
                pass
            else:
                raise AssertionError("the other one is still there")
        async with client.subscribe("t", "alone", "exclusive"):
            try:
                async with client.subscribe("t", "alone", "exclusive"):
                    raise AssertionError("there are two")
            except ConsumerBusy:
                pass


async def several_topics(stage: Stage) -> None:
    """Topics may be given as a sequence of names."""
    async with stage.client() as client:
        for topics in (["a", "b"], ("a", "b")):
            async with client.subscribe(topics, "s") as consumer:
                assert sorted(consumer.topics) == [f"persistent://public/default/{name}" for name in "ab"]


# --- time -------------------------------------------------------------------------------------------------


async def dates_are_those_of_the_wall_clock(stage: Stage) -> None:
    """Client and broker date things by the time of day, also after a while in which nothing happened."""
    letters = DeadLetterPolicy(max_redeliver_count=1, topic="dead")
    async with (
        stage.client() as client,
        client.subscribe("dead", "s") as dead,
        client.subscribe("t", "s", dead_letter=letters, negative_acknowledgement_delay=0.0) as consumer,
        client.create_producer("t") as producer,
    ):
        for _ in range(2):
            began = stage.wall_time()
            await producer.send(b"1")
            for _ in range(2):
                consumer.negative_acknowledge(await consumer.receive())
            letter = await dead.receive()
            assert began <= letter.publish_time <= stage.wall_time()
            await trio.sleep(3.0)
        stage.broker.create_tenant("tenant")
        assert stage.broker._driver.machine.wall_time == stage.wall_time()


SCENES: dict[str, Callable[[Stage], Awaitable[None]]] = {
    scene.__name__: scene
    for scene in (
        bytes_are_counted,
        half_closed_peers_are_answered,
        final_bytes_arrive,
        closing_does_not_wait_for_a_connection,
        several_tasks_close_a_client,
        an_open_batch_is_sent_in_its_time,
        a_message_fails_in_its_time,
        enqueue_yields,
        asking_for_messages_yields,
        send_many_takes_in_parts,
        receipts_say_the_same_in_any_order,
        partitions_confirm_in_any_order,
        nothing_is_fetched_in_advance,
        tasks_collect_each_in_its_time,
        the_end_of_a_topic,
        unsubscribing_ends_a_consumer,
        what_a_broker_refuses_is_raised,
        several_topics,
        dates_are_those_of_the_wall_clock,
    )
}
