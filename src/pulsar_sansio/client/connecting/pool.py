"""`Pool`: the connections of a client by address, shared by all machines that need one.

The pool owns the set of connections. It asks the driver for links, and returns a connection once its
handshake is complete. Concurrent requests for one address share one attempt. A failed attempt is discarded,
so the next request makes a new one.
"""

from collections.abc import Callable
from typing import TypeAlias

from ...model.errors import PulsarError
from ...model.service_url import Address
from ..outputs import Connect
from .connection import Connection
from .services import Services

Key: TypeAlias = tuple[Address, Address, int]


class Waiter:
    """A request for a connection, until the connection is ready or has failed, or the requester cancels."""

    __slots__ = ("cancelled", "on_failed", "on_ready")

    def __init__(
        self, on_ready: Callable[[Connection], None], on_failed: Callable[[PulsarError], None]
    ) -> None:
        self.on_ready = on_ready
        self.on_failed = on_failed
        self.cancelled = False

    def cancel(self) -> None:
        """Prevent both callbacks. The connection stays for other users."""
        self.cancelled = True


class Pool:
    """All connections of one client."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._connections: dict[Key, Connection] = {}
        self._keys: dict[int, Key] = {}
        """The key of each link's connection."""
        self._waiters: dict[int, list[Waiter]] = {}

    def get(
        self,
        logical: Address,
        physical: Address,
        on_ready: Callable[[Connection], None],
        on_failed: Callable[[PulsarError], None],
    ) -> Waiter:
        """Request a connection to the broker `logical` through the address `physical`.

        A ready connection is passed to `on_ready` at once.
        """
        services = self._services
        slots = services.config.connections_per_broker
        slot = services.context.rng.below(slots) if slots > 1 else 0
        key = (logical, physical, slot)
        waiter = Waiter(on_ready, on_failed)
        connection = self._connections.get(key)
        if connection is None:
            connection = self._open(key)
        connection.used = True
        if connection.ready:
            on_ready(connection)
        else:
            self._waiters[connection.link].append(waiter)
        return waiter

    def _open(self, key: Key) -> Connection:
        services = self._services
        logical, physical, _ = key
        link = services.context.new_link()
        connection = Connection(services, link, logical, physical, self)
        self._connections[key] = connection
        self._keys[link] = key
        services.links.open[link] = connection
        self._waiters[link] = []
        addresses = services.addresses
        tls_name = addresses.tls_name(addresses.service_url, logical, physical)
        services.context.emit(Connect(link, physical, tls_name))
        return connection

    def became_ready(self, connection: Connection) -> None:
        """The handshake is complete: pass the connection to every waiter (rule POOL-09)."""
        waiters = self._waiters[connection.link]
        self._waiters[connection.link] = []
        for waiter in waiters:
            if not waiter.cancelled:
                waiter.on_ready(connection)

    def ended(self, connection: Connection, cause: PulsarError, *, already_gone: bool) -> None:
        """Discard an ended connection (rules POOL-06, POOL-10). `already_gone`: see `Connection.close`."""
        link = connection.link
        del self._connections[self._keys.pop(link)]
        self._services.links.ended(connection, already_gone=already_gone)
        if not connection.was_ready:
            self._services.addresses.could_not_connect(connection.logical, connection.physical)
        for waiter in self._waiters.pop(link):
            if not waiter.cancelled:
                waiter.on_failed(cause)
