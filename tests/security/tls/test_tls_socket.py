"""`TlsSocket` beside another one: bytes through sockets that are full, and the memory that a write takes."""

import select
import socket
import tracemalloc
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from pulsar_security import TlsConfig, TlsSocket
from pulsar_security.tls_socket import MAX_WRITE
from tests.security.certificates import Authority

Pair = tuple[TlsSocket, TlsSocket]


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Pair]:
    """A client and a server after their handshake."""
    authority = Authority(tmp_path)
    near, far = socket.socketpair()
    client = TlsSocket(near, TlsConfig(trust=authority.file).make_context(), "server", "localhost")
    server = TlsSocket(far, authority.server().make_context(), "client", None)
    waiting = [client, server]
    while waiting:
        waiting = [each for each in waiting if each.shake_hands() is not None]
    yield client, server
    client.close()
    server.close()


def arrived(sock: TlsSocket) -> bytes:
    """Read all that can be read now."""
    buffer, found = memoryview(bytearray(1024 * 1024)), b""
    while select.select([sock], [], [], 0)[0] or sock.has_more:
        with suppress(BlockingIOError):
            found += buffer[: sock.recv_into(buffer)]
    return found


@pytest.mark.parametrize(
    "sizes",
    [
        [MAX_WRITE - 1, 1, 5],
        [MAX_WRITE - 1, 2],
        [MAX_WRITE + 1, 7],
        [1] * 60,
        [40_000] * 60,
        [1_000, 3_000_000, 10, 200_000],
    ],
)
def test_chunks_arrive_in_order_through_a_socket_that_is_often_full(pair: Pair, sizes: list[int]) -> None:
    client, server = pair
    chunks: list[bytes | memoryview] = [bytes([65 + index]) * size for index, size in enumerate(sizes)]
    expected, found = b"".join(chunks), b""
    while chunks:
        try:
            sent = client.sendmsg(chunks)
        except BlockingIOError:
            found += arrived(server)
            continue
        assert 0 < sent <= MAX_WRITE
        while sent:
            first = chunks.pop(0)
            if sent < len(first):
                chunks.insert(0, memoryview(first)[sent:])
            sent -= min(sent, len(first))
    assert found + arrived(server) == expected


def test_a_write_copies_no_more_than_it_writes(pair: Pair) -> None:
    """A producer ahead of its connection has megabytes in line, and each write is of a few records."""
    client, _ = pair
    large = memoryview(bytes(8 * 1024 * 1024))
    for chunks in ([large, large], [large[:1000], large], [large]):
        tracemalloc.start()
        client.sendmsg(chunks)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < 2 * MAX_WRITE
