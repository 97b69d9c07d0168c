"""`Redirection`: the clusters and brokers that brokers name for a producer or a consumer.

A topic may move to another cluster (TOPIC_MIGRATED); later lookups then ask that cluster. A broker that
closes a producer or consumer may name the broker to connect to at once (GAP-37). The client follows a limited
number of such names in a row. The attachment decides everything else.
"""

from contextlib import suppress

from ...model.errors import RemoteProtocolError
from ...model.service_url import Address
from ..connecting.connection import Connection
from ..connecting.services import Services


class Redirection:
    """The redirections of one producer or consumer."""

    __slots__ = ("_followed", "_services", "cluster")

    def __init__(self, services: Services) -> None:
        self.cluster: Address | None = None
        """The cluster to ask for a topic that has migrated; None for the service URL."""
        self._services = services
        self._followed = 0
        """The number of named brokers that the client followed at once since the last backoff."""

    def migrated(self, url: str) -> None:
        """Ask for the topic in the cluster of that URL; pending messages are kept for that cluster.

        A missing or refused URL changes nothing, and the old cluster reports the migration again. Brokers
        that the old cluster names afterwards are not followed.
        """
        with suppress(RemoteProtocolError):
            self.cluster = self._services.addresses.cluster_at(url)
            self._followed = (
                self._services.config.max_lookup_redirects
            )  # the old cluster names no brokers now

    def assigned(self, url: str | None, connection: Connection) -> tuple[Address, Address] | None:
        """Return the logical and physical address of the broker that was named on this connection.

        Return None when no broker was named, or when `max_lookup_redirects` names were followed in a row.
        Raises `RemoteProtocolError` for a URL that the client cannot follow.
        """
        self._followed += 1
        if url is None or self._followed > self._services.config.max_lookup_redirects:
            return None
        # A connection through a proxy stays with that proxy; only the broker behind the proxy changes.
        proxied = connection.logical != connection.physical
        return self._services.addresses.route_to(url, connection, proxied)

    def waited(self) -> None:
        """A backoff came first, so the count of followed names starts again."""
        self._followed = 0
