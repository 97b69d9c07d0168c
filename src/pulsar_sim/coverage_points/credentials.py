"""Coverage points of credentials: questions to the provider, answers that come late, refusals."""

from typing import Any

from pulsar_sansio.client.client import Client
from pulsar_sansio.client.connecting.address_policy import named_broker
from pulsar_sansio.client.connecting.broker_addresses import BrokerAddresses
from pulsar_sansio.client.connecting.connection import Connection
from pulsar_sansio.client.security.credential_exchange import REFRESH, CredentialExchange
from pulsar_sansio.model.errors import AuthenticationError, BrokerError, CredentialsFailed, TlsError

from .coverage_point import coverage_point


@coverage_point(CredentialExchange, "challenged")
def credentials_renewed(_exchange: Any, challenge: Any, _then: Any) -> object:
    """Credentials expired, and the broker asked for new ones on the connection in use."""
    return challenge.auth_data == REFRESH


@coverage_point(CredentialExchange, "challenged")
def challenge_of_several_steps(_exchange: Any, challenge: Any, _then: Any) -> object:
    """The broker sent a challenge of a method with several steps."""
    return challenge.auth_data != REFRESH


@coverage_point(CredentialExchange, "not_in_time")
def credentials_not_in_time(*_: Any) -> object:
    """The provider took so long that the client gave the connection up."""
    return True


@coverage_point(Client, "provide_credentials")
def credentials_for_a_link_that_is_gone(client: Any, _now: Any, link: int, _credentials: Any) -> object:
    """The provider answered after the link had ended."""
    return link not in client._links.open


@coverage_point(Client, "refuse_credentials")
def provider_failed(client: Any, _now: Any, link: int, _error: Any) -> object:
    """The provider failed before CONNECT was sent."""
    connection = client._links.open.get(link)
    return connection is not None and not connection.ready


@coverage_point(Client, "refuse_credentials")
def provider_failed_to_renew(client: Any, _now: Any, link: int, _error: Any) -> object:
    """The provider failed when the broker asked for new credentials of a connection in use."""
    connection = client._links.open.get(link)
    return connection is not None and connection.ready


@coverage_point(Connection, "close")
def credentials_refused(_connection: Any, cause: Any, **_: Any) -> object:
    """The broker refused the credentials of CONNECT."""
    return isinstance(cause, BrokerError) and isinstance(cause, AuthenticationError)


@coverage_point(Connection, "close")
def credentials_lost_with_a_link_in_use(connection: Any, cause: Any, **_: Any) -> object:
    """The provider failed, and producers and consumers lost their connection."""
    return isinstance(cause, CredentialsFailed) and bool(connection.producers or connection.consumers)


@coverage_point(Connection, "close")
def certificate_refused(_connection: Any, cause: Any, **_: Any) -> object:
    """The TLS handshake failed: nothing of the protocol was sent."""
    return isinstance(cause, TlsError)


@coverage_point(BrokerAddresses, "cluster_at")
def forbidden_broker_named(addresses: Any, url: str) -> object:
    """A broker named a host or a scheme to which a client with credentials does not connect."""
    tls, address = named_broker(url)
    return tls != addresses.service_url.tls or address.host == "stranger"
