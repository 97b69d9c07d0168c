"""`BrokerAddresses`: the service URL of a client, and the addresses that it may connect to.

It owns the service URL with the host to ask next, and applies the address policy to each broker that is named
to the client. It sends nothing.
"""

from ...model.service_url import Address, ServiceUrl
from .address_policy import check_destination, check_host, named_broker
from .connection import Connection
from .services import Services


class BrokerAddresses:
    """The addresses of one client."""

    def __init__(self, services: Services, service_url: ServiceUrl) -> None:
        config = services.config
        self._rng = services.context.rng
        proxy = config.sni_proxy
        self._sni_proxy = None if proxy is None else ServiceUrl.of_broker(proxy).addresses[0]
        self._broker_hosts = config.broker_hosts
        if config.authentication_method is not None and self._broker_hosts is None:
            self._broker_hosts = ()
        self.set_service_url(service_url)

    def set_service_url(self, service_url: ServiceUrl) -> None:
        """Ask the hosts of this URL from now on (rule CLIENT-21). The first of several is drawn at random."""
        self.service_url = service_url
        hosts = len(service_url.addresses)
        self._host = self._rng.below(hosts) if hosts > 1 else 0

    @property
    def service_address(self) -> Address:
        """The host to ask next."""
        return self.service_url.addresses[self._host]

    def could_not_connect(self, logical: Address, physical: Address) -> None:
        """A connection failed: if it was to the current host, ask the next host from now on.

        Behind an SNI proxy the logical address tells which host that was.
        """
        if self.service_address == (physical if self._sni_proxy is None else logical):
            self._host = (self._host + 1) % len(self.service_url.addresses)

    def tls_name(self, service_url: ServiceUrl, logical: Address, physical: Address) -> str | None:
        """Return the name that the certificate at `physical` must be for; None for a plain connection.

        A proxy that routes by server name passes TLS through, so the certificate is the broker's. Any other
        proxy has a certificate of its own.
        """
        if not service_url.tls:
            return None
        return (physical if self._sni_proxy is None else logical).host

    def physical_address(self, logical: Address) -> Address:
        """Return the address to connect to for a broker: its own, or that of the SNI proxy."""
        return self._sni_proxy or logical

    def cluster_at(self, url: str) -> Address:
        """Return the address to ask in a cluster that a broker has named.

        Raises `RemoteProtocolError` for an unusable URL, `BrokerAddressRefused` for a forbidden address.
        """
        tls, address = named_broker(url)
        check_destination(tls, address, self.service_url, self._broker_hosts)
        return address

    def route_to(self, url: str, connection: Connection, proxied: bool) -> tuple[Address, Address]:
        """Return the logical and physical address of the broker that was named on `connection`.

        `proxied`: the client reaches the named broker through the connection's proxy (rule LOOKUP-07). An
        SNI proxy is none in this sense: TLS and the credentials go through it to the named host.
        Raises `RemoteProtocolError` for an unusable URL, `BrokerAddressRefused` for a forbidden address.
        """
        if proxied and self._sni_proxy is None:
            _, address = named_broker(url)
            return address, connection.physical
        address = self.cluster_at(url)
        return address, self.physical_address(address)

    def check_host(self, address: Address) -> None:
        """Raise `BrokerAddressRefused` for a host that the client must not connect to."""
        check_host(address, self.service_url, self._broker_hosts)
