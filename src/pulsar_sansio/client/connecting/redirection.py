"""`Redirection`: where brokers have told a producer or a consumer to go.

A topic may move to another cluster (TOPIC_MIGRATED); from then on it is asked for there. And a broker that
closes somebody may name the broker to go to at once (GAP-37), which is believed so many times in a row. It
decides nothing else about the way; that is the attachment's.
"""

from contextlib import suppress

from ...model.errors import RemoteProtocolError
from ...model.service_url import Address
from .connection import Connection
from .services import Services


class Redirection:
    """One producer's or consumer's."""

    __slots__ = ("_followed", "_services", "cluster")

    def __init__(self, services: Services) -> None:
        self.cluster: Address | None = None
        """Where to ask for the topic since it has moved to another cluster; None is the service URL."""
        self._services = services
        self._followed = 0
        """How often brokers have said where to go, and were followed at once, since the last wait."""

    def migrated(self, url: str) -> None:
        """The topic is asked for in the cluster of that URL, and what is pending is kept for it. A URL that
        is missing or refused changes nothing, and the old cluster says it again. A broker that the old one
        names after that is not gone to."""
        with suppress(RemoteProtocolError):
            self.cluster = self._services.lookup.cluster_at(url)
            self._followed = self._services.config.max_lookup_redirects  # no broker of the old one is

    def assigned(self, url: str | None, connection: Connection) -> tuple[Address, Address] | None:
        """The way to the broker that was named on this connection, logical and physical. None where none was,
        or so many times that it may go on without end. Raises `RemoteProtocolError` for a URL that cannot be
        followed."""
        self._followed += 1
        if url is None or self._followed > self._services.config.max_lookup_redirects:
            return None
        # A connection through a proxy goes on through that proxy: only the broker behind it changes.
        proxied = connection.logical != connection.physical
        return self._services.lookup.way_to(url, connection, proxied)

    def waited(self) -> None:
        """It did not go at once: brokers are believed anew."""
        self._followed = 0
