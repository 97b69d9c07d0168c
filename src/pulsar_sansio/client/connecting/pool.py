"""`Pool`: connections by address, shared by everybody who needs one (rules POOL-01 to POOL-13).

It owns which connections there are: it asks the world for links and hands a connection out once its handshake
is complete. Concurrent wishes for one address share one attempt; an attempt that fails is forgotten, so that
the next wish makes a new one.
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
    """Somebody who waits for a connection, until it is ready, has failed, or he cancels."""

    __slots__ = ("cancelled", "on_failed", "on_ready")

    def __init__(
        self, on_ready: Callable[[Connection], None], on_failed: Callable[[PulsarError], None]
    ) -> None:
        self.on_ready = on_ready
        self.on_failed = on_failed
        self.cancelled = False

    def cancel(self) -> None:
        """Neither callback will be called. The connection stays, for others."""
        self.cancelled = True


class Pool:
    """All connections of one client."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._connections: dict[Key, Connection] = {}
        self._keys: dict[int, Key] = {}
        """Under which key each link's connection is known."""
        self._waiters: dict[int, list[Waiter]] = {}
        self.links: dict[int, Connection] = {}
        """Every link that the world knows of and that has not ended."""
        self.left: dict[int, list[bytes]] = {}
        """What was still to be written when a link was ended from here."""

    def get(
        self,
        logical: Address,
        physical: Address,
        on_ready: Callable[[Connection], None],
        on_failed: Callable[[PulsarError], None],
    ) -> Waiter:
        """A connection to the broker `logical` by way of `physical`; `on_ready` may be called at once."""
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
        connection = Connection(services, link, logical, physical)
        self._connections[key] = connection
        self._keys[link] = key
        self.links[link] = connection
        self._waiters[link] = []
        services.context.emit(Connect(link, physical, services.lookup.service_url.tls))
        return connection

    def is_ready(self, address: Address) -> bool:
        """Tell whether a connection to that address can be used now."""
        return any(each.ready and each.physical == address for each in self.links.values())

    def became_ready(self, connection: Connection) -> None:
        """The handshake is complete: hand it to everybody who waits (rule POOL-09)."""
        waiters = self._waiters[connection.link]
        self._waiters[connection.link] = []
        for waiter in waiters:
            if not waiter.cancelled:
                waiter.on_ready(connection)

    def ended(self, connection: Connection, cause: PulsarError, *, told: bool) -> None:
        """A connection is over, whoever ended it (rules POOL-06, POOL-10)."""
        link = connection.link
        del self.links[link]
        del self._connections[self._keys.pop(link)]
        if not told and (words := connection.data_to_send()):
            self.left[link] = words
        if not connection.was_ready:
            self._services.lookup.could_not_connect(connection.physical)
        for waiter in self._waiters.pop(link):
            if not waiter.cancelled:
                waiter.on_failed(cause)

    def close_all(self, cause: PulsarError) -> None:
        """End every connection (rule POOL-12)."""
        for connection in list(self.links.values()):
            connection.close(cause)
