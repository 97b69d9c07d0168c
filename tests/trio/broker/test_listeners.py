"""`Listeners`: which ports are taken, on which addresses, and their URLs."""

import errno
import socket

import pytest
import trio

from pulsar_sansio import InvalidConfiguration
from pulsar_trio.broker.listeners import Listeners, listening

NO_PORTS: dict[str, int | None] = dict.fromkeys(("port", "tls_port", "http_port", "https_port"))


async def test_each_protocol_with_a_port_has_a_url() -> None:
    ports = {**NO_PORTS, "port": 0, "https_port": 0}
    async with listening("127.0.0.1", ports) as listeners:
        assert (listeners.pulsar_tls, listeners.http) == ([], [])
        (pulsar,), (https,) = listeners.pulsar, listeners.https
        port, secure = (each.socket.getsockname()[1] for each in (pulsar, https))
        assert listeners.urls("pulsar.example") == {
            "service_url": f"pulsar://pulsar.example:{port}",
            "web_service_url_tls": f"https://pulsar.example:{secure}",
        }
        assert listeners.urls("::1")["service_url"] == f"pulsar://[::1]:{port}"
    assert pulsar.socket.fileno() == https.socket.fileno() == -1, "closed with the block"


async def test_all_four_protocols() -> None:
    async with listening("127.0.0.1", dict.fromkeys(NO_PORTS, 0)) as listeners:
        found = [url.split(":")[0] for url in listeners.urls("h").values()]
        assert found == ["pulsar", "pulsar+ssl", "http", "https"]


async def test_port_0_takes_one_port_of_a_host_with_several_addresses() -> None:
    """Each address would have a port of its own, and a URL names only one."""
    async with listening("", {**NO_PORTS, "port": 0}) as listeners:
        assert len(listeners.pulsar) == 1


async def test_a_port_in_use_takes_none_of_the_others() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        ports = {**NO_PORTS, "port": port, "http_port": taken.getsockname()[1]}
        with pytest.raises(OSError) as caught:
            async with listening("127.0.0.1", ports):
                raise AssertionError
        assert caught.value.errno == errno.EADDRINUSE
        async with listening("127.0.0.1", {**NO_PORTS, "port": port}):
            pass


@pytest.mark.parametrize("option", NO_PORTS)
@pytest.mark.parametrize("port", [-1, 65_536, True, "6650", 1.0])
async def test_what_is_no_port(option: str, port: int) -> None:
    with pytest.raises(InvalidConfiguration, match=f"^{option}: a whole number from 0 to 65535, not "):
        async with listening("127.0.0.1", {**NO_PORTS, option: port}):
            raise AssertionError


async def test_a_host_that_no_resolver_can_be_asked_for() -> None:
    with pytest.raises(InvalidConfiguration, match=r"^host: the name or an address of this machine"):
        async with listening("a" * 64 + ".example", {**NO_PORTS, "port": 0}):
            raise AssertionError


@pytest.mark.parametrize(("host", "loopback"), [("127.0.0.1", True), ("127.0.0.2", True), ("0.0.0.0", False)])
@pytest.mark.parametrize("option", NO_PORTS)
async def test_the_address_decides_whether_only_this_machine_reaches_it(
    host: str, loopback: bool, option: str
) -> None:
    async with listening(host, {**NO_PORTS, option: 0}) as listeners:
        if loopback:
            listeners.check_loopback("given")
        else:
            with pytest.raises(InvalidConfiguration, match=r"host 'given': .* not on 0\.0\.0\.0\."):
                listeners.check_loopback("given")


async def test_an_address_with_a_scope_is_an_address() -> None:
    """A link-local IPv6 address names its interface."""

    class Socket:
        def getsockname(self) -> tuple[str, int, int, int]:
            return "fe80::1%eth0", 6650, 0, 2

    class Listener:
        socket = Socket()

    listener: trio.SocketListener = Listener()  # type: ignore[assignment]
    with pytest.raises(InvalidConfiguration, match="not on fe80::1%eth0"):
        Listeners(pulsar=[listener]).check_loopback("h")
