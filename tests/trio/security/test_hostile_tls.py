"""Peers that stall, send garbage or speak no TLS, by the thousand, while honest peers are served."""

import resource
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest
import trio
import trio.testing

from pulsar_trio import (
    PulsarError,
    TimedOut,
    TlsConfig,
    TlsHandshakeEnded,
    TlsProtocolMismatch,
    open_broker,
    open_client,
)
from pulsar_trio.broker import server
from tests.patience import PATIENCE
from tests.security.certificates import Authority

HOSTILE = 1_000
"""Connections at one time."""

FILES = 2 * HOSTILE + 200
"""Open files of this process, which has both ends of each connection."""

KILOBYTES_OF_ONE = 128
"""Memory of the process for one unfinished handshake, on both ends; OpenSSL has about 50 of them."""

TOPIC = "persistent://public/default/t"


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


@pytest.fixture
def many_files() -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < FILES:
        pytest.skip(f"the system allows {hard} open files, needed are {FILES}")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, FILES), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def client_hello() -> bytes:
    """Return the first bytes of an honest handshake."""
    outgoing = ssl.MemoryBIO()
    client = ssl.create_default_context().wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname="localhost")
    with suppress(ssl.SSLWantReadError):
        client.do_handshake()
    return outgoing.read()


def first_bytes() -> tuple[bytes, ...]:
    """Return nothing, part of a handshake, a handshake without its end, garbage, and other protocols."""
    hello = client_hello()
    connect = b"\0\0\0\x0d\0\0\0\x09\x08\x02\x12\x05\x0a\x01c\x20\x15"
    unknown = b"\x16\x03\x01\x40\x00" + bytes(100)
    return (b"", hello[:7], hello, connect, bytes(range(256)), unknown, b"GET / HTTP/1.1\r\n\r\n")


async def exchange(url: str, tls: TlsConfig) -> None:
    """Send a message by one client and receive it."""
    async with (
        open_client(url, tls=tls) as client,
        client.subscribe(TOPIC, "s") as consumer,
        client.create_producer(TOPIC) as producer,
    ):
        await producer.send(b"x")
        message = await consumer.receive()
        assert message.value == b"x"
        consumer.acknowledge(message)


async def ended(stream: trio.SocketStream) -> None:
    """Wait until the broker has ended a connection, and drop what it sent."""
    with suppress(trio.BrokenResourceError):
        while await stream.receive_some(1000):
            pass
    await stream.aclose()


@pytest.mark.slow
@pytest.mark.usefixtures("many_files")
async def test_honest_clients_are_served_beside_a_thousand_hostile_ones(
    authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The broker ends all that have not finished their handshake in time, and keeps nothing of them."""
    monkeypatch.setattr(server, "MAX_HANDSHAKES", HOSTILE + 10)
    monkeypatch.setattr(server, "HANDSHAKE_TIME", 2.0)
    kinds = first_bytes()
    tls = TlsConfig(trust=authority.file)
    with trio.fail_after(PATIENCE):
        async with open_broker(tls=authority.server(), tls_port=0) as broker:
            assert broker.tls_url is not None
            await exchange(broker.tls_url, tls)
            port = int(broker.tls_url.rpartition(":")[2])
            before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            hostile = []
            for number in range(HOSTILE):
                stream = await trio.open_tcp_stream("127.0.0.1", port)
                hostile.append(stream)
                with suppress(trio.BrokenResourceError):
                    await stream.send_all(kinds[number % len(kinds)])
            await exchange(broker.tls_url, tls)
            grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
            assert grown < HOSTILE * KILOBYTES_OF_ONE
            for stream in hostile:
                await ended(stream)
            await trio.testing.wait_all_tasks_blocked()
            assert broker._driver._handshakes == 0
            assert not broker._driver.links
            await exchange(broker.tls_url, tls)


Conduct = Callable[[trio.SocketStream], Awaitable[None]]


async def stalls(stream: trio.SocketStream) -> None:
    await trio.sleep_forever()


async def sends_garbage_without_end(stream: trio.SocketStream) -> None:
    while True:
        await stream.send_all(b"\xff" * 65_536)


async def drips_a_record_without_end(stream: trio.SocketStream) -> None:
    """The record announces more bytes than come, and its bytes come slowly."""
    await stream.send_all(b"\x16\x03\x03\x40\x00")
    while True:
        await stream.send_all(b"\0")
        await trio.sleep(0.01)


async def speaks_plain_pulsar(stream: trio.SocketStream) -> None:
    await stream.send_all(b"\0\0\0\x0d\0\0\0\x09\x08\x03\x1a\x05\x0a\x01s\x10\x15")
    await trio.sleep_forever()


async def hangs_up(stream: trio.SocketStream) -> None:
    await stream.receive_some(1)


@asynccontextmanager
async def hostile_server(conduct: Conduct) -> AsyncIterator[str]:
    async def serve(stream: trio.SocketStream) -> None:
        with suppress(trio.BrokenResourceError):
            async with stream:
                await conduct(stream)

    async with trio.open_nursery() as nursery:
        [listener] = await trio.open_tcp_listeners(0, host="127.0.0.1")
        nursery.start_soon(trio.serve_listeners, serve, [listener])
        yield f"pulsar+ssl://127.0.0.1:{listener.socket.getsockname()[1]}"
        nursery.cancel_scope.cancel()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("conduct", "kind", "cause"),
    [
        (stalls, TimedOut, TimedOut),
        (drips_a_record_without_end, TimedOut, TimedOut),
        (sends_garbage_without_end, TlsProtocolMismatch, None),
        (speaks_plain_pulsar, TlsProtocolMismatch, None),
        (hangs_up, TimedOut, TlsHandshakeEnded),
    ],
)
async def test_a_client_ends_with_a_typed_error(
    conduct: Conduct, kind: type[PulsarError], cause: type[PulsarError] | None, authority: Authority
) -> None:
    """The client keeps its times against a server that never finishes a handshake."""
    tls = TlsConfig(trust=authority.file)
    with trio.fail_after(PATIENCE):
        async with hostile_server(conduct) as url:
            async with open_client(url, tls=tls, connect_timeout=0.3, operation_timeout=0.5) as client:
                with pytest.raises(kind) as caught:
                    async with client.create_producer(TOPIC):
                        pass
    if cause is not None:
        assert isinstance(caught.value.__cause__, cause)
