"""`encrypt`: a TLS handshake over a socket, and what a client can read after one that failed."""

import errno
import os
import socket
import ssl
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
import trio
import trio.testing

from pulsar_sansio import TlsError
from pulsar_security import TlsConfig, TlsFailure, TlsSocket, Wanted
from pulsar_security.tls_socket import PROTOCOL_VERSION_ALERT
from pulsar_trio.transport.tls_handshake import ALERT_TIME, MAX_ALERT_READS, READ_SIZE, encrypt
from tests.patience import PATIENCE
from tests.security.certificates import Authority

Pair = tuple[socket.socket, socket.socket]

NO_TLS = b"GET / HTTP/1.1\r\n\r\n"


@pytest.fixture
def pair() -> Iterator[Pair]:
    """Two connected sockets; the one that `encrypt` gets is closed by `encrypt`."""
    near, far = socket.socketpair()
    far.setblocking(False)
    yield near, far
    near.close()
    far.close()


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


def is_closed(sock: TlsSocket | socket.socket) -> bool:
    return sock.fileno() == -1


async def test_both_sides_of_a_handshake(authority: Authority, pair: Pair) -> None:
    near, far = pair
    done: dict[str, TlsSocket] = {}

    async def shake(side: str, sock: socket.socket, context: ssl.SSLContext, name: str | None) -> None:
        done[side] = await encrypt(sock, context, side, name)

    with trio.fail_after(PATIENCE):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(
                shake, "client", near, TlsConfig(trust=authority.file).make_context(), "localhost"
            )
            nursery.start_soon(shake, "server", far, authority.server().make_context(), None)
    done["client"].send(b"over TLS")
    await trio.lowlevel.wait_readable(done["server"])
    buffer = memoryview(bytearray(100))
    assert bytes(buffer[: done["server"].recv_into(buffer)]) == b"over TLS"
    for each in done.values():
        each.close()


async def test_a_handshake_that_needs_room_waits_for_it(
    authority: Authority, pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The client's first record does not fit: it is sent when the peer has read what was before it."""
    near, far = pair
    near.setblocking(False)
    wanted: list[Wanted | None] = []
    shake_hands = TlsSocket.shake_hands

    def shake(self: TlsSocket) -> Wanted | None:
        wanted.append(shake_hands(self))
        return wanted[-1]

    monkeypatch.setattr(TlsSocket, "shake_hands", shake)
    filled = 0
    for size in (READ_SIZE, 1):
        with suppress(BlockingIOError):
            while True:
                filled += near.send(bytes(size))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(
            encrypt, near, TlsConfig(trust=authority.file).make_context(), "server", "localhost"
        )
        await trio.testing.wait_all_tasks_blocked()
        assert wanted == [Wanted.WRITABLE]
        while filled:
            filled -= len(far.recv(min(filled, READ_SIZE)))
        with trio.fail_after(PATIENCE):
            await trio.lowlevel.wait_readable(far)
        assert far.recv(1) == b"\x16", "a handshake record of TLS"
        assert set(wanted[:-1]) == {Wanted.WRITABLE}
        assert wanted[-1] is Wanted.READABLE
        nursery.cancel_scope.cancel()
    assert is_closed(near)


async def test_a_client_reads_why_the_server_refused_it(authority: Authority, pair: Pair) -> None:
    """The bytes that the client sent meanwhile are read first, and do not reset the connection."""
    near, far = pair
    far.send(NO_TLS + bytes(READ_SIZE))
    far.shutdown(socket.SHUT_WR)
    with pytest.raises(TlsFailure), trio.fail_after(PATIENCE):
        await encrypt(near, authority.server().make_context(), "client", None)
    assert is_closed(near)
    assert far.recv(100) == PROTOCOL_VERSION_ALERT
    assert far.recv(100) == b"", "and then the end, no reset"


@pytest.mark.parametrize("client", ["silent", "endless"])
async def test_a_client_has_a_moment_to_read_the_alert(
    authority: Authority,
    pair: Pair,
    client: str,
    autojump_clock: trio.testing.MockClock,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A client that keeps its side open costs a moment, and one that goes on sending a number of reads."""
    near, far = pair
    reads: list[int] = []

    def read(descriptor: int, size: int) -> bytes:
        reads.append(size)
        return b"more"

    if client == "endless":
        monkeypatch.setattr(os, "read", read)
    far.send(NO_TLS + b"more than the handshake read")
    began = trio.current_time()
    with pytest.raises(TlsFailure):
        await encrypt(near, authority.server().make_context(), "client", None)
    assert is_closed(near)
    if client == "endless":
        assert reads == [READ_SIZE] * MAX_ALERT_READS
        assert trio.current_time() == began
    else:
        assert trio.current_time() - began == pytest.approx(ALERT_TIME)


async def test_a_client_that_is_gone_is_not_waited_for(
    authority: Authority, pair: Pair, autojump_clock: trio.testing.MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An error of the alert leaves the reason of the handshake's failure as it is."""
    near, far = pair

    def gone(self: TlsSocket, error: ssl.SSLError) -> None:
        raise OSError(errno.ENOTCONN, "gone")

    monkeypatch.setattr(TlsSocket, "end_failed_handshake", gone)
    far.send(NO_TLS)
    began = trio.current_time()
    with pytest.raises(TlsFailure):
        await encrypt(near, authority.server().make_context(), "client", None)
    assert is_closed(near)
    assert trio.current_time() == began


async def test_a_client_does_not_wait_for_the_server_that_it_refuses(
    authority: Authority, pair: Pair, autojump_clock: trio.testing.MockClock
) -> None:
    near, far = pair
    far.send(NO_TLS)
    began = trio.current_time()
    with pytest.raises(TlsFailure):
        await encrypt(near, TlsConfig(trust=authority.file).make_context(), "server", "localhost")
    assert is_closed(near)
    assert trio.current_time() == began


@pytest.mark.parametrize("error", [ConnectionResetError("planted"), TlsFailure(TlsError("planted"))])
async def test_an_error_that_is_none_of_tls_closes_the_socket_at_once(
    authority: Authority,
    pair: Pair,
    error: OSError,
    autojump_clock: trio.testing.MockClock,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """OpenSSL raised neither of the errors, so there is no alert that the peer could read."""
    near, far = pair
    began = trio.current_time()

    def fail(self: TlsSocket) -> Wanted | None:
        raise error

    monkeypatch.setattr(TlsSocket, "shake_hands", fail)
    with pytest.raises(OSError, match="planted") as raised:
        await encrypt(near, authority.server().make_context(), "client", None)
    assert raised.value is error
    assert is_closed(near)
    assert trio.current_time() == began
    assert far.recv(1) == b"", "nothing was sent"


async def test_a_cancelled_handshake_closes_the_socket(
    authority: Authority, pair: Pair, autojump_clock: trio.testing.MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Until then it tried nothing again, for the peer sent nothing."""
    near, _ = pair
    steps: list[str] = []
    shake_hands = TlsSocket.shake_hands

    def shake(self: TlsSocket) -> Wanted | None:
        steps.append("step")
        return shake_hands(self)

    monkeypatch.setattr(TlsSocket, "shake_hands", shake)
    with trio.move_on_after(5) as scope:
        await encrypt(near, authority.server().make_context(), "client", None)
    assert scope.cancelled_caught
    assert is_closed(near)
    assert steps == ["step"]
