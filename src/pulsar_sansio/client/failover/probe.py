"""`Probe`: finds out whether a service URL can be used: one of its hosts accepts a connection.

A host of the binary protocol has to answer CONNECT, after TLS and with the client's credentials. A host of
HTTP has to answer a request with a status below 500. The probe uses links of its own and ends each of them.
"""

from collections.abc import Callable

from ...model.errors import ConnectionLost, PulsarError
from ...model.http_url import HttpUrl
from ...model.service_url import Address, ServiceUrl
from ..connecting.connection import Connection
from ..connecting.services import Services
from ..lookup.http_answer import HttpAnswer
from ..lookup.http_exchange import HttpExchange
from ..outputs import Connect

STATUS = "/status.html"
"""The path that Pulsar answers without credentials, for load balancers."""

MAX_STATUS = 64 * 1024
"""Bytes of the largest answer to it."""


class Probe:
    """One probe. `done` gets None for an available service, or the error of the last host.

    `done` is called once, and not from within the constructor.
    """

    def __init__(
        self, services: Services, url: ServiceUrl, done: Callable[[PulsarError | None], None]
    ) -> None:
        self._services = services
        self._url = url
        self._done = done
        self._hosts = iter(url.addresses)
        self._link: Connection | HttpExchange | None = None
        self._over = False
        self._try(next(self._hosts))

    def cancel(self) -> None:
        """End without an outcome."""
        self._over = True
        if self._link is not None:
            self._link.close(ConnectionLost("the probe was cancelled"))

    # --- for a connection of the binary protocol ---

    def became_ready(self, connection: Connection) -> None:
        """CONNECTED has come."""
        self._end(None)
        connection.close(ConnectionLost("the probe is complete"))

    def ended(self, connection: Connection, cause: PulsarError, *, already_gone: bool) -> None:
        """The connection has ended, or could not be made."""
        self._services.links.ended(connection, already_gone=already_gone)
        self._failed(cause)

    # --- inside ---

    def _try(self, host: Address) -> None:
        services, url = self._services, self._url
        if url.http:
            target = HttpUrl(url.tls, host, STATUS)
            self._link = HttpExchange(
                services, target, self._answered, self._failed, method=None, limit=MAX_STATUS
            )
            return
        addresses = services.addresses
        physical = addresses.physical_address(host)
        link = services.context.new_link()
        self._link = connection = Connection(services, link, host, physical, self)
        services.links.open[link] = connection
        services.context.emit(Connect(link, physical, addresses.tls_name(url, host, physical)))

    def _answered(self, answer: HttpAnswer) -> None:
        if answer.status < 500:
            self._end(None)
        else:
            self._failed(answer.refusal())

    def _failed(self, cause: PulsarError) -> None:
        if self._over:
            return
        host = next(self._hosts, None)
        if host is None:
            self._end(cause)
        else:
            self._try(host)

    def _end(self, error: PulsarError | None) -> None:
        if not self._over:
            self._over = True
            self._done(error)
