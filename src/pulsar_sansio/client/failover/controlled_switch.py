"""`ControlledSwitch`: asks the web service of a `ControlledFailover` for the cluster to use."""

from collections.abc import Callable
from typing import Any

from ...model.config import ControlledFailover, nanoseconds_of
from ...model.errors import (
    BrokerAddressRefused,
    ClosedError,
    InvalidServiceUrl,
    NotSupported,
    PulsarError,
    RemoteProtocolError,
)
from ...model.http_url import HttpUrl
from ...model.secret import Secret
from ...model.service_url import ServiceUrl
from ..connecting.address_policy import check_host
from ..connecting.services import Services
from ..lookup.http_answer import HttpAnswer
from ..lookup.http_exchange import HttpExchange
from ..outputs import FailoverFailed

MAX_ANSWER = 64 * 1024
"""Bytes of the largest answer."""

_OF_IDENTITY = ("tlsTrustCertsFilePath", "authPluginClassName", "authParamsString", "token")
"""Fields by which the service of a Java client changes the client's identity, too.

They name classes to load, files to read, and credentials. Here only the application may choose these."""


class ControlledSwitch:
    """The changes of one client. `switch(url, reason)` changes the client's service URL."""

    def __init__(
        self, services: Services, config: ControlledFailover, switch: Callable[[ServiceUrl, str], None]
    ) -> None:
        self._services = services
        self._context = services.context
        self._switch = switch
        self._first = services.addresses.service_url
        self._url = HttpUrl.parse(config.url)
        self._headers = tuple((name, Secret(value)) for name, value in config.headers.items())
        self._interval = nanoseconds_of(config.check_interval)
        self._exchange: HttpExchange | None = None
        self._timer = self._context.deadlines.slot(self._ask)
        self._timer.set(self._context.now)

    def close(self) -> None:
        """The client is closed: ask for nothing more."""
        self._timer.clear()
        if self._exchange is not None:
            self._exchange.abandon(ClosedError("the client is closed"))

    def _ask(self) -> None:
        self._exchange = HttpExchange(
            self._services,
            self._url,
            self._answered,
            self._failed,
            method=None,
            limit=MAX_ANSWER,
            headers=self._headers,
        )

    def _answered(self, answer: HttpAnswer) -> None:
        try:
            url = self._named(answer.json())
        except PulsarError as error:
            self._failed(error)
            return
        self._wait()
        if url is not None and url != self._services.addresses.service_url:
            self._switch(url, f"{self._url.address} names it")

    def _failed(self, error: PulsarError) -> None:
        self._wait()
        self._context.emit(FailoverFailed(error))

    def _wait(self) -> None:
        self._exchange = None
        self._timer.set(self._context.now + self._interval)

    def _named(self, data: Any) -> ServiceUrl | None:
        """Return the service URL in an answer; None for an answer without one.

        Raises `NotSupported` for an answer with another identity, `RemoteProtocolError` for an unusable
        one, and `BrokerAddressRefused` for a cluster that the client must not go to.
        """
        service = self._url.address
        if not isinstance(data, dict):
            raise RemoteProtocolError(f"{service} answered with something else than a JSON object")
        changed = [name for name in _OF_IDENTITY if data.get(name)]
        if changed:
            raise NotSupported(
                f"{service} names another identity ({', '.join(changed)}), and it may choose a service URL "
                "alone: let the client's authentication choose credentials by the broker's host, and trust "
                "the authorities of all clusters"
            )
        text = data.get("serviceUrl") or ""
        if not isinstance(text, str):
            raise RemoteProtocolError(f"{service} names a service URL that is no text")
        if not text.strip():
            return None
        try:
            url = ServiceUrl.parse(text.strip())
        except InvalidServiceUrl as error:
            raise RemoteProtocolError(f"{service} names no usable service URL: {str(error)[:500]}") from error
        config = self._services.config
        if self._first.tls and not url.tls:
            raise BrokerAddressRefused(f"{service} names {url}, but this client connects with TLS only")
        if config.sni_proxy is not None and url.scheme != "pulsar+ssl":
            raise BrokerAddressRefused(f"{service} names {url}, and sni_proxy needs pulsar+ssl://")
        for address in url.addresses:
            check_host(address, self._first, config.broker_hosts)
        return url
