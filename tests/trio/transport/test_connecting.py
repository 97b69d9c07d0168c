"""Addresses are tried in turn, each with its share of the time."""

import errno
import socket
from collections.abc import Iterator

import pytest
import trio
import trio.testing

from pulsar_sansio import Address
from pulsar_trio.transport.connecting import connect


class Names(trio.abc.HostnameResolver):
    """A resolver that knows one name."""

    def __init__(self, *addresses: tuple[str, int]) -> None:
        self.addresses = addresses

    async def getaddrinfo(  # type: ignore[override]
        self,
        host: bytes | None,
        port: bytes | str | int | None,
        family: int = 0,
        type: int = 0,
        proto: int = 0,
        flags: int = 0,
    ) -> list[tuple[socket.AddressFamily, socket.SocketKind, int, str, tuple[str, int]]]:
        return [(socket.AF_INET, socket.SOCK_STREAM, 0, "", address) for address in self.addresses]

    async def getnameinfo(
        self, sockaddr: tuple[str, int] | tuple[str, int, int, int], flags: int
    ) -> tuple[str, str]:
        raise AssertionError("connecting asks for no names of addresses")


@pytest.fixture
def listening() -> Iterator[tuple[str, int]]:
    """An address where a socket listens."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()


@pytest.fixture
def closed() -> tuple[str, int]:
    """An address where no socket listens."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        address: tuple[str, int] = server.getsockname()
    return address


async def test_the_first_address_that_answers_is_taken(
    listening: tuple[str, int], closed: tuple[str, int]
) -> None:
    """Rules POOL-05 and CFG-010."""
    trio.socket.set_custom_hostname_resolver(Names(closed, listening, closed))
    sock = await connect(Address("broker", 6650), timeout=5.0)
    with sock:
        assert sock.getpeername() == listening
        assert sock.getblocking() is False
        assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


async def test_the_error_names_the_address_and_the_last_problem(closed: tuple[str, int]) -> None:
    """Rule POOL-05."""
    trio.socket.set_custom_hostname_resolver(Names(closed, closed))
    with pytest.raises(OSError, match=r"cannot connect to broker:6650: Connection refused"):
        await connect(Address("broker", 6650), timeout=5.0)


async def test_an_address_that_swallows_packets_leaves_time_for_the_next(
    listening: tuple[str, int], autojump_clock: trio.testing.MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    with trio.socket.socket() as example:
        kind = type(example)
    original = kind.connect

    async def silent(self: object, address: tuple[str, int]) -> None:
        if address != listening:
            await trio.sleep_forever()
        await original(self, address)  # type: ignore[arg-type]

    monkeypatch.setattr(kind, "connect", silent)
    trio.socket.set_custom_hostname_resolver(Names(("192.0.2.1", 1), ("192.0.2.2", 1), listening))
    sock = await connect(Address("broker", 6650), timeout=9.0)
    sock.close()
    assert trio.current_time() == pytest.approx(6.0)
    trio.socket.set_custom_hostname_resolver(Names(("192.0.2.1", 1)))
    with pytest.raises(OSError, match="no answer within 9 s"):
        await connect(Address("broker", 6650), timeout=9.0)


async def test_a_name_that_cannot_be_resolved(monkeypatch: pytest.MonkeyPatch) -> None:
    class NoName(Names):
        async def getaddrinfo(self, *arguments: object, **options: object) -> list[object]:  # type: ignore[override]
            raise socket.gaierror("no such name")

    trio.socket.set_custom_hostname_resolver(NoName())
    with pytest.raises(OSError, match="cannot resolve 'broker': no such name"):
        await connect(Address("broker", 6650), timeout=5.0)


async def test_cancelling_closes_what_was_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[socket.socket] = []
    original = socket.socket

    def make(*arguments: int) -> socket.socket:
        made.append(original(*arguments))
        return made[-1]

    monkeypatch.setattr("pulsar_trio.transport.connecting.socket.socket", make)
    with trio.CancelScope() as scope:
        scope.cancel()
        await connect(Address("127.0.0.1", 1), timeout=5.0)
    assert all(sock.fileno() == -1 for sock in made)


async def test_a_family_that_the_system_does_not_have_is_passed_over(
    listening: tuple[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel was told to have no IPv6."""
    failing = 1

    class Socket(socket.socket):
        def __init__(self, *arguments: int) -> None:
            nonlocal failing
            failing -= 1
            if failing >= 0:
                raise OSError(errno.EAFNOSUPPORT, "Address family not supported by protocol")
            super().__init__(*arguments)

    monkeypatch.setattr("pulsar_trio.transport.connecting.socket.socket", Socket)
    trio.socket.set_custom_hostname_resolver(Names(("192.0.2.1", 1), listening))
    with await connect(Address("broker", 6650), timeout=5.0) as sock:
        assert sock.getpeername() == listening
    failing = 2
    with pytest.raises(OSError, match="cannot connect to broker:6650: Address family not supported"):
        await connect(Address("broker", 6650), timeout=5.0)
