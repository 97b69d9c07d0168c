"""Where brokers may send a client: answers to lookups, and brokers named when something is closed.

Whoever is connected to is told the credentials, so that whoever names the broker chooses who gets them. Two
things hold for every address that a client is given and would connect to:

* its scheme is that of the service URL. From TLS nothing leads to a plain connection, and nobody speaks
  plain to a port that expects TLS;
* its host is a host of the service URL, or allowed by `ClientConfig.broker_hosts` where that is given.
  Without it every host is, which is how Pulsar is made: a client knows one address of a cluster and is told
  the others.

Neither is asked of a broker that is reached through a proxy: it is the proxy that is connected to, and a
proxy names its brokers by the scheme that it uses itself (LOOKUP-07).

Pure functions. Which lookup or producer it is about is for others to say.
"""

from collections.abc import Sequence

from ...model.errors import BrokerAddressRefused, InvalidServiceUrl, RemoteProtocolError
from ...model.service_url import Address, ServiceUrl

MAX_SHOWN = 200
"""Characters of a stranger's URL that an error shows."""


def named_broker(url: str) -> tuple[bool, Address]:
    """Whether it is a TLS URL, and the address in it, host and port as they stand (LOOKUP-05).

    Raises `RemoteProtocolError` where there is none to be read.
    """
    try:
        parsed = ServiceUrl.parse(url)
    except InvalidServiceUrl as error:
        raise RemoteProtocolError(f"no usable broker URL, but {url[:MAX_SHOWN]!r}") from error
    return parsed.tls, parsed.addresses[0]


def check_destination(
    tls: bool, address: Address, service_url: ServiceUrl, broker_hosts: Sequence[str] | None
) -> None:
    """Raises `BrokerAddressRefused` for a broker that may not be connected to."""
    if tls != service_url.tls:
        schemes = ("pulsar+ssl", "pulsar") if tls else ("pulsar", "pulsar+ssl")
        raise BrokerAddressRefused(
            f"broker {address} by {schemes[0]}://, but this client connects by {schemes[1]}:// only"
        )
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
        return host.endswith(_plain(pattern))
    return host == _plain(pattern)


def _plain(host: str) -> str:
    """Names that are the same for DNS become the same text; of an IPv6 address only its case."""
    return host.lower().rstrip(".")
