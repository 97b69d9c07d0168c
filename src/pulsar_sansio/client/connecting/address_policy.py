"""Rules for the broker addresses that a client accepts from lookup answers and CLOSE commands.

A client sends its credentials to each broker it connects to, so an address from the wire decides which peer
receives them. Two rules hold for every address that a broker names:

* The scheme is that of the service URL. A TLS client never makes a plain connection, and a plain client
  never connects to a port that expects TLS.
* The host is a host of the service URL, or is allowed by `ClientConfig.broker_hosts`. When that option is
  None, every host is allowed to a client without credentials: a client knows one address of a cluster, and
  brokers name the others. A client with credentials then connects to the hosts of the service URL alone.

A service URL of http:// counts as plain, and one of https:// as TLS. Redirects over HTTP obey both rules.

Neither rule applies to a broker behind a proxy. The client connects to the proxy, and a proxy names its
brokers by the scheme that the proxy itself uses (LOOKUP-07). Both rules apply behind an SNI proxy, which
passes TLS and the credentials on to the named host.

All functions are pure; the caller adds the topic or producer to an error's text.
"""

from collections.abc import Sequence

from ...model.errors import BrokerAddressRefused, InvalidServiceUrl, RemoteProtocolError
from ...model.service_url import Address, ServiceUrl

MAX_SHOWN = 200
"""The number of characters of a broker's URL that an error shows."""


def named_broker(url: str) -> tuple[bool, Address]:
    """Return True for a TLS URL, and the unchanged host and port in the URL (LOOKUP-05).

    Raises `RemoteProtocolError` for a URL that cannot be parsed.
    """
    try:
        parsed = ServiceUrl.of_broker(url)
    except InvalidServiceUrl as error:
        raise RemoteProtocolError(f"no usable broker URL, but {url[:MAX_SHOWN]!r}") from error
    return parsed.tls, parsed.addresses[0]


def check_destination(
    tls: bool, address: Address, service_url: ServiceUrl, broker_hosts: Sequence[str] | None
) -> None:
    """Raise `BrokerAddressRefused` for a broker that the client must not connect to."""
    if tls != service_url.tls:
        schemes = ("pulsar+ssl", "pulsar") if tls else ("pulsar", "pulsar+ssl")
        raise BrokerAddressRefused(
            f"broker {address} by {schemes[0]}://, but this client connects by {schemes[1]}:// only"
        )
    check_host(address, service_url, broker_hosts)


def check_host(address: Address, service_url: ServiceUrl, broker_hosts: Sequence[str] | None) -> None:
    """Raise `BrokerAddressRefused` for a host that is neither in the service URL nor in `broker_hosts`."""
    if broker_hosts is None:
        return
    host = _plain(address.host)
    own = (_plain(each.host) for each in service_url.addresses)
    if host not in own and not any(_matches(host, pattern) for pattern in broker_hosts):
        raise BrokerAddressRefused(
            f"broker {address}, which is neither in the service URL nor in broker_hosts {tuple(broker_hosts)}"
        )


def _matches(host: str, pattern: str) -> bool:
    if pattern.startswith("."):
        return ":" not in host and host.endswith(_plain(pattern))  # the zone of an address is no suffix
    return host == _plain(pattern)


def _plain(host: str) -> str:
    """Normalise a host, so that names which DNS treats as equal become equal text.

    An IPv6 address changes only in case.
    """
    return host.lower().rstrip(".")
