"""`TlsSocket` beside another one: bytes through sockets that are full, and the memory that a write takes."""

import os
import select
import socket
import ssl
import struct
import tracemalloc
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from pulsar_sansio import TlsHandshakeEnded, TlsProtocolMismatch
from pulsar_security import TlsConfig, TlsFailure, TlsSocket, Wanted
from pulsar_security.tls_socket import MAX_WRITE, PROTOCOL_VERSION_ALERT
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


def test_the_end_of_a_connection_comes_after_its_last_bytes(pair: Pair) -> None:
    client, server = pair
    server.send(b"last")
    server.shutdown(socket.SHUT_WR)
    buffer = memoryview(bytearray(100))
    assert client.recv_into(buffer) == 4
    assert client.has_more, "the end, which the system does not show any more"
    assert [client.recv_into(buffer), client.recv_into(buffer)] == [0, 0]
    assert not client.has_more


def test_garbage_after_the_handshake_is_an_error_after_the_bytes_before_it(pair: Pair) -> None:
    client, server = pair
    server.send(b"good")
    os.write(server.fileno(), b"\xff" * 100)
    buffer = memoryview(bytearray(100))
    assert client.recv_into(buffer) == 4
    assert client.has_more
    with pytest.raises(TlsFailure, match=r"^TLS with server failed: "):
        client.recv_into(buffer)


# --- handshakes that fail ---------------------------------------------------------------------------


@pytest.fixture
def raw() -> Iterator[tuple[socket.socket, socket.socket]]:
    near, far = socket.socketpair()
    yield near, far
    near.close()
    far.close()


def failure_of(tls: TlsSocket) -> TlsFailure:
    with pytest.raises(TlsFailure) as caught:
        tls.shake_hands()
    assert str(caught.value) == str(caught.value.error)
    return caught.value


def test_a_client_whose_peer_speaks_another_protocol(raw: tuple[socket.socket, socket.socket]) -> None:
    near, far = raw
    client = TlsSocket(near, ssl.create_default_context(), "broker:6651", "b.example")
    assert client.shake_hands() is Wanted.READABLE
    far.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
    failure = failure_of(client)
    assert type(failure.error) is TlsProtocolMismatch
    assert str(failure).startswith("broker:6651 speaks no TLS")
    client.close()


def test_a_client_whose_peer_resets_the_connection() -> None:
    """The reset stands for an end: a port without TLS that is sent a ClientHello does both."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        near = socket.create_connection(listener.getsockname())
        far, _ = listener.accept()
        client = TlsSocket(near, ssl.create_default_context(), "broker:6651", "b.example")
        assert client.shake_hands() is Wanted.READABLE
        select.select([far], [], [])
        far.close()  # with the ClientHello unread
        assert type(failure_of(client).error) is TlsHandshakeEnded
        client.close()


def test_a_server_whose_peer_resets_the_connection(tmp_path: Path) -> None:
    """The error of the socket is raised unchanged: clients come and go."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        near = socket.create_connection(listener.getsockname())
        far, _ = listener.accept()
        server = TlsSocket(far, Authority(tmp_path).server().make_context(), "client", None)
        assert server.shake_hands() is Wanted.READABLE
        near.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        near.close()
        with pytest.raises(ConnectionResetError):
            server.shake_hands()
        server.close()


@pytest.mark.parametrize(
    ("sent", "alert"),
    [
        (b"GET / HTTP/1.1\r\n\r\n", PROTOCOL_VERSION_ALERT),
        (b"\x16\x03\x01\x00\x05\x63\x00\x00\x01\x00", None),
    ],
    ids=["another protocol", "a wrong handshake"],
)
def test_the_peer_of_a_failed_handshake_reads_an_alert_and_the_end(
    raw: tuple[socket.socket, socket.socket], tmp_path: Path, sent: bytes, alert: bytes | None
) -> None:
    """OpenSSL sends the alert itself, but for bytes that are no TLS."""
    near, far = raw
    server = TlsSocket(near, Authority(tmp_path).server().make_context(), "client", None)
    far.sendall(sent)
    cause = failure_of(server).__cause__
    assert isinstance(cause, ssl.SSLError)
    server.end_failed_handshake(cause)
    found = b""
    while part := far.recv(100):
        found += part
    server.close()
    assert found[:1] == b"\x15", "an alert"
    assert len(found) == 7, "one alert alone"
    assert alert is None or found == alert


def test_the_common_name_of_the_client_and_an_option_of_the_socket(tmp_path: Path) -> None:
    authority, (near, far) = Authority(tmp_path), socket.socketpair()
    own = authority.issue(common_name="worker")
    tls = TlsConfig(trust=authority.file, certificate=own.certificate, key=own.key)
    server_tls = authority.server(trust=authority.file)
    client = TlsSocket(near, tls.make_context(), "server", "localhost")
    server = TlsSocket(far, server_tls.make_context(), "client", None)
    waiting = [client, server]
    while waiting:
        waiting = [each for each in waiting if each.shake_hands() is not None]
    assert server.common_name() == "worker"
    server.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    with socket.socket(fileno=os.dup(server.fileno())) as same:
        assert same.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
    client.close()
    server.close()
