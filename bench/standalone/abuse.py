"""Clients that misbehave, each kind as a context: they are there while the block runs.

Brokers close what does not answer their PING after a minute; a block should be shorter.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from urllib.parse import urlsplit

import trio

from bench.standalone.clients import NAMESPACE
from pulsar_sansio.wire import encode_command, encode_flow, proto
from pulsar_trio import open_client

AT_ONCE = 100
"""Connections that are opened at the same time."""

HALF = 256 * 1024
"""Bytes of a frame of which the rest never comes."""

BACKLOG = 2_000
"""Messages that wait for each slow reader."""

LARGE = b"x" * 10_000
"""The payload of each of them."""

_Prepare = Callable[[trio.SocketStream], Awaitable[None]]


@asynccontextmanager
async def _connections(url: str, count: int, prepare: _Prepare) -> AsyncIterator[None]:
    """Hold connections, each prepared by this function."""
    port = urlsplit(url).port
    assert port is not None
    streams: list[trio.SocketStream] = []
    limit = trio.CapacityLimiter(AT_ONCE)

    async def one() -> None:
        async with limit:
            stream = await trio.open_tcp_stream("127.0.0.1", port)
            streams.append(stream)
            await prepare(stream)

    try:
        async with trio.open_nursery() as nursery:
            for _ in range(count):
                nursery.start_soon(one)
        yield
    finally:
        for stream in streams:
            stream.socket.close()


async def _nothing(stream: trio.SocketStream) -> None:
    await trio.lowlevel.checkpoint()


async def _connect(stream: trio.SocketStream) -> None:
    connect = proto.CommandConnect(client_version="bench", protocol_version=21)
    await stream.send_all(encode_command(proto.BaseCommand.CONNECT, connect))
    if not await stream.receive_some(4096):
        raise RuntimeError("the broker closed a connection that said CONNECT")


async def _half_a_frame(stream: trio.SocketStream) -> None:
    await _connect(stream)
    await stream.send_all((2 * HALF).to_bytes(4, "big") + bytes(HALF))


async def _subscribe_and_read_nothing(topic: str, stream: trio.SocketStream) -> None:
    await _connect(stream)
    subscribe = proto.CommandSubscribe(
        topic=topic,
        subscription=f"s-{stream.socket.getsockname()[1]}",
        subType=proto.CommandSubscribe.Exclusive,
        consumer_id=0,
        request_id=0,
        initialPosition=proto.CommandSubscribe.Earliest,
    )
    await stream.send_all(encode_command(proto.BaseCommand.SUBSCRIBE, subscribe))
    await stream.receive_some(4096)
    await stream.send_all(encode_flow(0, BACKLOG))


def silent(url: str, count: int) -> AbstractAsyncContextManager[None]:
    """Connections that never say CONNECT."""
    return _connections(url, count, _nothing)


def idle(url: str, count: int) -> AbstractAsyncContextManager[None]:
    """Connections that say CONNECT and nothing more."""
    return _connections(url, count, _connect)


def half_frames(url: str, count: int) -> AbstractAsyncContextManager[None]:
    """Connections that send half of a frame."""
    return _connections(url, count, _half_a_frame)


@asynccontextmanager
async def slow_readers(url: str, count: int) -> AsyncIterator[None]:
    """Consumers of one topic that ask for all its messages, `BACKLOG` times `LARGE`, and read none."""
    topic = f"{NAMESPACE}/not-read"
    async with open_client(url) as client, client.create_producer(topic, batching=None) as producer:
        await producer.send_many([LARGE] * BACKLOG)
    async with _connections(url, count, partial(_subscribe_and_read_nothing, topic)):
        yield
