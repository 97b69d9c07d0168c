"""Thousands of connections that open, time out, are reset and are closed in one turn, of broker and client.

Each disconnect once pumped the next one's, and the broker died of 400 together. Here there are more than
Python's stack is deep.
"""

import logging
import resource
import socket
import struct
import traceback
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio
import trio.testing

from pulsar_sansio import Address, Broker, PulsarError, broker_outputs, client_outputs
from pulsar_sansio.wire import encode_command, encode_ping, proto
from pulsar_trio import Client, EmbeddedBroker, Producer, open_broker, open_client
from pulsar_trio.transport.link import Link
from pulsar_trio.transport.pump import Pump
from tests.trio.waiting import until

LINKS = 2000

FILES = 3 * LINKS
"""File descriptors: both ends of each connection are in this process."""

CONNECT = encode_command(
    proto.BaseCommand.CONNECT, proto.CommandConnect(client_version="test", protocol_version=21)
)
CONNECTED = encode_command(
    proto.BaseCommand.CONNECTED,
    proto.CommandConnected(server_version="test", protocol_version=21, max_message_size=1_000_000),
)


@pytest.fixture(autouse=True)
def many_files() -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < FILES:
        pytest.skip(f"this system allows {hard} open files, and the test needs {FILES}")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, FILES), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def reset(sock: socket.socket) -> None:
    """Close the socket so that its peer meets ECONNRESET."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    sock.close()


def count_disconnects(driver: Pump, kind: type) -> Counter[int]:
    """Disconnects that the machine asks for, by the run of the pump's loop that hears them."""
    heard: Counter[int] = Counter()
    obey = driver.actions[kind]

    def on_disconnect(output: Any) -> None:
        heard[driver.generation] += 1
        obey(output)

    driver.actions[kind] = on_disconnect
    return heard


# --- broker -----------------------------------------------------------------------------------------------


@asynccontextmanager
async def connected(broker: EmbeddedBroker, first_bytes: bytes) -> AsyncIterator[list[socket.socket]]:
    """`LINKS` connections that the broker has accepted, and that have sent `first_bytes`."""
    socks: list[socket.socket] = []
    driver = broker._driver
    try:
        for _ in range(LINKS):
            sock = socket.socket()
            socks.append(sock)
            sock.connect(("127.0.0.1", broker.port))
            if first_bytes:
                sock.sendall(first_bytes)
            if len(socks) % 100 == 0:  # the queue of the listener is not endless
                await until(lambda: len(driver.links) == len(socks))
        yield socks
    finally:
        for sock in socks:
            sock.close()


async def serves(broker: EmbeddedBroker) -> None:
    """The broker does its work."""
    async with (
        open_client(broker.url) as client,
        client.subscribe("t", "s") as consumer,
        client.create_producer("t") as producer,
    ):
        sent = await producer.send(b"1")
        assert (await consumer.receive()).message_id == sent


def all_ended(socks: list[socket.socket]) -> bool:
    """True once the broker has ended each connection in the orderly way."""
    ended = 0
    for sock in socks:
        sock.setblocking(False)
        try:
            while sock.recv(1000):
                pass
            ended += 1
        except BlockingIOError:
            pass
    return ended == len(socks)


@pytest.mark.parametrize("first_bytes", [b"", CONNECT], ids=["handshake", "keepalive"])
async def test_a_broker_ends_connections_that_are_silent(
    first_bytes: bytes, autojump_clock: trio.testing.MockClock
) -> None:
    async with open_broker() as broker, connected(broker, first_bytes) as socks:
        driver = broker._driver
        heard = count_disconnects(driver, broker_outputs.Disconnect)
        # Without CONNECT the first interval is the last; else a PING is sent after it.
        autojump_clock.jump(31)
        if first_bytes:
            await until(lambda: sum(link.bytes_sent for link in driver.links.values()) >= LINKS)
            assert not heard
            await trio.sleep(1)
            autojump_clock.jump(31)
        await until(lambda: all_ended(socks))
        assert list(heard.values()) == [LINKS]
        assert driver.links == {}
        await serves(broker)
        for sock in socks:
            sock.close()
        await until(lambda: driver._live_links == 0)
    assert driver.failure is None


@pytest.mark.parametrize("end", [reset, socket.socket.close])
async def test_a_broker_outlives_connections_that_end_together(
    end: Callable[[socket.socket], None], autojump_clock: trio.testing.MockClock
) -> None:
    async with open_broker() as broker, connected(broker, CONNECT) as socks:
        driver = broker._driver
        for sock in socks:
            end(sock)
        await until(lambda: driver._live_links == 0)
        assert driver.links == {}
        await serves(broker)
    assert driver.failure is None


async def test_a_broker_ends_all_connections_at_once(autojump_clock: trio.testing.MockClock) -> None:
    async with open_broker() as broker, connected(broker, CONNECT) as socks:
        driver = broker._driver
        heard = count_disconnects(driver, broker_outputs.Disconnect)
        driver.command(driver.machine.shutdown)
        assert list(heard.values()) == [LINKS]
        await until(lambda: all_ended(socks))
        await serves(broker)
    assert driver.failure is None


# --- client -----------------------------------------------------------------------------------------------


class Peer:
    """Accepts connections, and answers nothing but `greeting`."""

    def __init__(self, greeting: bytes) -> None:
        self._greeting = greeting
        self._listener = socket.create_server(("0.0.0.0", 0), backlog=4096)
        self._listener.setblocking(False)
        self.port: int = self._listener.getsockname()[1]
        self.socks: list[socket.socket] = []

    async def run(self) -> None:
        while True:
            await trio.lowlevel.wait_readable(self._listener)
            sock, _ = self._listener.accept()
            if self._greeting:
                sock.sendall(self._greeting)
            self.socks.append(sock)

    def close(self) -> None:
        self._listener.close()
        for sock in self.socks:
            sock.close()


class Wishes:
    """`LINKS` connections that a client is asked for, each to an address of its own, and what became of
    them. Every 127.x.y.z is this machine."""

    def __init__(self, client: Client, port: int) -> None:
        self.ready = 0
        self.failed: list[PulsarError] = []
        self.driver = client._driver
        self._port = port

    def make(self) -> None:
        """Ask for all of them in one turn."""
        self.driver.command(self._ask)

    def _ask(self, now: int) -> None:
        self.driver.machine._context.now = now
        for number in range(LINKS):
            address = Address(f"127.0.{number // 200 + 1}.{number % 200 + 1}", self._port)
            self.driver.machine._services.pool.get(address, address, self._on_ready, self.failed.append)

    def _on_ready(self, _: object) -> None:
        self.ready += 1


@asynccontextmanager
async def wishing(greeting: bytes, **options: Any) -> AsyncIterator[tuple[Wishes, Peer]]:
    peer = Peer(greeting)
    try:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(peer.run)
            async with open_client(f"pulsar://127.0.0.1:{peer.port}", **options) as client:
                wishes = Wishes(client, peer.port)
                wishes.make()
                await until(lambda: len(peer.socks) == LINKS)
                yield wishes, peer
            nursery.cancel_scope.cancel()
    finally:
        peer.close()
    assert wishes.driver.failure is None
    assert wishes.driver.links == {}


@pytest.mark.skipif(
    not hasattr(socket, "SO_DOMAIN"), reason="needs Linux: all of 127.0.0.0/8 is this machine"
)
class TestManyLinksOfAClient:
    async def test_handshakes_that_time_out_together(self, autojump_clock: trio.testing.MockClock) -> None:
        async with wishing(b"", connect_timeout=10.0) as (wishes, _):
            heard = count_disconnects(wishes.driver, client_outputs.Disconnect)
            autojump_clock.jump(11)
            await until(lambda: len(wishes.failed) == LINKS)
            assert list(heard.values()) == [LINKS]
            assert wishes.ready == 0

    async def test_keepalives_that_time_out_together(self, autojump_clock: trio.testing.MockClock) -> None:
        async with wishing(CONNECTED, keepalive_interval=30.0) as (wishes, _):
            heard = count_disconnects(wishes.driver, client_outputs.Disconnect)
            await until(lambda: wishes.ready == LINKS)
            autojump_clock.jump(31)
            await trio.sleep(1)
            assert not heard
            autojump_clock.jump(31)
            await until(lambda: not wishes.driver.links)
            assert list(heard.values()) == [LINKS]

    @pytest.mark.parametrize("end", [reset, socket.socket.close])
    async def test_connections_that_the_peer_ends_together(
        self, end: Callable[[socket.socket], None], autojump_clock: trio.testing.MockClock
    ) -> None:
        async with wishing(CONNECTED) as (wishes, peer):
            await until(lambda: wishes.ready == LINKS)
            for sock in peer.socks:
                end(sock)
            await until(lambda: wishes.driver._live_links == 0)
            peer.socks.clear()
            wishes.make()
            await until(lambda: wishes.ready == 2 * LINKS)

    async def test_connections_that_are_closed_together(self, autojump_clock: trio.testing.MockClock) -> None:
        async with wishing(CONNECTED) as (wishes, peer):
            heard = count_disconnects(wishes.driver, client_outputs.Disconnect)
            await until(lambda: wishes.ready == LINKS)
            wishes.driver.command(wishes.driver.machine.close, None)
            assert list(heard.values()) == [LINKS]
            for sock in peer.socks:
                sock.close()


PRODUCERS = 500


async def test_producers_of_links_that_are_lost_together_come_back(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with open_broker() as broker, open_client(broker.url, connections_per_broker=64) as client:
        producers: list[Producer] = []
        over = trio.Event()

        async def produce() -> None:
            async with client.create_producer("t", batching=None) as producer:
                producers.append(producer)
                await over.wait()

        async with trio.open_nursery() as nursery:
            for _ in range(PRODUCERS):
                nursery.start_soon(produce)
            await until(lambda: len(producers) == PRODUCERS)
            for link in list(broker._driver.links.values()):
                assert link._socket is not None
                link._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                link.abort()
            await until(lambda: not any(producer.connected for producer in producers))
            receipts = [await producer.enqueue(b"1") for producer in producers]
            assert len({await receipt.wait() for receipt in receipts}) == PRODUCERS
            over.set()


# --- one link that fails ----------------------------------------------------------------------------------


class Broken(Exception):
    pass


@pytest.mark.parametrize("method", ["write_now", "finish", "_write", "wants_read"])
async def test_a_link_that_fails_ends_alone(
    method: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    autojump_clock: trio.testing.MockClock,
) -> None:
    """The exception is not one of a socket; the other links go on, and the log has the traceback."""
    owner = Broker if method == "wants_read" else Link
    original: Callable[..., Any] = getattr(owner, method)
    broken: set[object] = set()

    def fail(*given: Any) -> Any:
        if not broken.isdisjoint(given):
            raise Broken("planted")
        return original(*given)

    monkeypatch.setattr(owner, method, fail)
    async with open_broker() as broker:
        driver = broker._driver
        peers = [socket.create_connection(("127.0.0.1", broker.port)) for _ in range(2)]
        try:
            for peer in peers:
                peer.sendall(CONNECT)
            await until(lambda: len(driver.links) == 2)
            await until(lambda: all(link.bytes_sent for link in driver.links.values()))
            number, link = next(iter(driver.links.items()))
            broken.update((number, link))
            if method == "finish":
                driver.command(lambda now: driver.machine.links[number].terminate("planted"))
            elif method == "wants_read":
                for peer in peers:
                    peer.sendall(encode_ping())
            else:
                driver.command(lambda now: driver.machine.links[number].write(CONNECTED))
            await until(lambda: driver._live_links == 1)
            assert list(driver.links) == list(driver.machine.links) == [number + 1]
            await serves(broker)
        finally:
            for peer in peers:
                peer.close()
    (logged,) = [each for each in caplog.records if each.levelno >= logging.ERROR]
    assert logged.exc_info is not None
    assert isinstance(logged.exc_info[1], Broken | ExceptionGroup)
    assert "planted" in "".join(traceback.format_exception(logged.exc_info[1]))
