"""`Listeners`: the listening sockets of one broker, with and without TLS."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from ipaddress import ip_address

import trio

from pulsar_sansio import Address, InvalidConfiguration

OPEN = "without authentication"
LOCK_UP = (
    "Give authentication=BrokerAuthentication(…), or allow_unauthenticated=True "
    "(--allow-unauthenticated) if every client may do everything"
)


@dataclass(slots=True)
class Listeners:
    """The sockets for each protocol; a list is empty when the broker has no port for it."""

    pulsar: list[trio.SocketListener] = field(default_factory=list)
    pulsar_tls: list[trio.SocketListener] = field(default_factory=list)
    http: list[trio.SocketListener] = field(default_factory=list)
    https: list[trio.SocketListener] = field(default_factory=list)

    def urls(self, host: str) -> dict[str, str]:
        """Return the URL of each protocol at this host, by the broker's name for that URL."""
        found = {}
        for name, scheme, listeners in (
            ("service_url", "pulsar", self.pulsar),
            ("service_url_tls", "pulsar+ssl", self.pulsar_tls),
            ("web_service_url", "http", self.http),
            ("web_service_url_tls", "https", self.https),
        ):
            if listeners:
                port = listeners[0].socket.getsockname()[1]
                found[name] = f"{scheme}://{Address(host, port)}"
        return found

    def check_loopback(self, host: str, cause: str = OPEN, advice: str = LOCK_UP) -> None:
        """Raise `InvalidConfiguration` when a socket listens on an address that other machines reach.

        `cause` and `advice`: why it may not, and what to do, for people.
        """
        for listener in (*self.pulsar, *self.pulsar_tls, *self.http, *self.https):
            address = listener.socket.getsockname()[0]
            if not ip_address(address.partition("%")[0]).is_loopback:
                raise InvalidConfiguration(
                    f"host {host!r}: {cause} the broker listens on loopback addresses only, "
                    f"not on {address}. {advice}"
                )


def _check_port(option: str, port: object) -> None:
    if isinstance(port, bool) or not isinstance(port, int) or not 0 <= port <= 65535:
        raise InvalidConfiguration(f"{option}: a whole number from 0 to 65535, not {port!r}")


def no_host(host: object) -> InvalidConfiguration:
    return InvalidConfiguration(
        f"host: the name or an address of this machine, or '' for all of them, not {host!r}"
    )


@asynccontextmanager
async def listening(host: str, ports: Mapping[str, int | None]) -> AsyncIterator[Listeners]:
    """Listen on every address of the host while the block runs; None for a protocol without a port.

    Raises `InvalidConfiguration` for a wrong port or host, and `OSError` where the system refuses.
    """
    for option, port in ports.items():
        if port is not None:
            _check_port(option, port)
    opened: list[trio.SocketListener] = []
    try:
        groups = []
        for option in ("port", "tls_port", "http_port", "https_port"):
            group = await _listen(host, ports[option])
            opened += group
            groups.append(group)
        yield Listeners(*groups)
    finally:
        for listener in opened:
            listener.socket.close()


async def _listen(host: str, port: int | None) -> list[trio.SocketListener]:
    """Listen on every address of the host; port 0 takes only the first, as each has its own port."""
    if port is None:
        return []
    try:
        listeners = list(await trio.open_tcp_listeners(port, host=host or None))
    except UnicodeError:  # no resolver can be asked for it
        raise no_host(host) from None
    if port == 0:
        for other in listeners[1:]:
            other.socket.close()
        del listeners[1:]
    return listeners
