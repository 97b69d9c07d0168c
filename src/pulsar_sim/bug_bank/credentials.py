"""Bugs of credentials and certificates: renewal, the provider's answers, hosts and server names."""

from typing import Any

from pulsar_sansio.broker.security.authentication import ConnectionAuthentication
from pulsar_sansio.client.client import Client
from pulsar_sansio.client.connecting import broker_addresses
from pulsar_sansio.client.connecting import connection as connection_module
from pulsar_sansio.client.connecting.broker_addresses import BrokerAddresses
from pulsar_sansio.client.connecting.connection import Connection
from pulsar_sansio.client.security.credential_exchange import CredentialExchange
from pulsar_sansio.model.config import nanoseconds_of
from pulsar_sansio.model.secret import Secret
from pulsar_sansio.wire import proto

from .planted_bug import Patches, bug, nothing
from .preconditions import credentials as needs


@bug("BUG-113", caught_by=("INV-N10",), needs=[needs.credentials])
def renewal_is_not_offered(patches: Patches) -> None:
    """CONNECT lacks the flag `supports_auth_refresh`, so each connection is cut when its token expires."""

    def encode(original: Any, kind: int, command: Any) -> bytes:
        if kind == proto.BaseCommand.CONNECT:
            command.feature_flags.supports_auth_refresh = False
        encoded: bytes = original(kind, command)
        return encoded

    patches.around(connection_module, "encode_command", encode)


@bug("BUG-113", caught_by=("INV-N10",), needs=[needs.challenges])
def challenges_are_ignored(patches: Patches) -> None:
    """The code that answers AUTH_CHALLENGE is never called."""
    patches.replace(Connection, "_on_auth_challenge", nothing)


@bug("BUG-114", caught_by=("INV-N10",), needs=[needs.challenges])
def renewed_credentials_are_empty(patches: Patches) -> None:
    """AUTH_RESPONSE carries empty data, so the broker cuts the connection at every renewal."""
    patches.around(Connection, "_respond", lambda original, self, credentials: original(self, Secret(b"")))


@bug("BUG-114", caught_by=("INV-N10",), needs=[needs.challenges])
def a_renewal_sends_the_old_token(patches: Patches) -> None:
    """AUTH_RESPONSE carries the credentials of CONNECT again, which have expired."""

    def connect(original: Any, self: Any, credentials: Secret) -> None:
        self.first_credentials = credentials
        original(self, credentials)

    def respond(original: Any, self: Any, credentials: Secret) -> None:
        original(self, self.first_credentials)

    patches.around(Connection, "_connect", connect)
    patches.around(Connection, "_respond", respond)


@bug("BUG-118", caught_by=("INV-X2",), needs=[needs.tls_to_several_brokers])
def the_certificate_is_compared_with_the_service_url(patches: Patches) -> None:
    """The certificate of every broker has to be for the host of the service URL."""

    def tls_name(original: Any, self: Any, service_url: Any, logical: Any, physical: Any) -> str | None:
        return service_url.addresses[0].host if service_url.tls else None

    patches.around(BrokerAddresses, "tls_name", tls_name)


@bug("BUG-118", caught_by=("INV-X2",), needs=[needs.sni_proxy])
def the_host_behind_the_proxy_is_lost(patches: Patches) -> None:
    """The certificate has to be for the proxy, which passes TLS on to the broker."""

    def tls_name(original: Any, self: Any, service_url: Any, logical: Any, physical: Any) -> str | None:
        return physical.host if service_url.tls else None

    patches.around(BrokerAddresses, "tls_name", tls_name)


@bug("own", caught_by=("INV-X2",), needs=[needs.misleading])
def every_host_gets_credentials(patches: Patches) -> None:
    """The client connects to any host that a broker names, and sends credentials there."""
    patches.replace(broker_addresses, "check_destination", nothing)


@bug("own", caught_by=("INV-N10", "INV-N5", "INV-N7"), needs=[needs.challenges])
def a_renewal_holds_the_connection_up(patches: Patches) -> None:
    """A connection writes nothing while the driver owes it new credentials."""

    def data_to_send(original: Any, self: Any) -> list[bytes]:
        chunks: list[bytes] = [] if self.ready and self.credentials.waiting else original(self)
        return chunks

    patches.around(Connection, "data_to_send", data_to_send)


@bug("own", caught_by=("INV-N10", "INV-N5"), needs=[needs.challenges])
def an_answer_is_kept_for_the_next_challenge(patches: Patches) -> None:
    """Credentials for a renewal are not sent; they answer the challenge after it."""

    def provided(original: Any, self: Any, credentials: Secret) -> None:
        then = self._asked
        if then is not None and getattr(then, "__name__", "") == "_respond":
            self._asked = None
        else:
            original(self, credentials)

    patches.around(CredentialExchange, "provided", provided)


@bug("own", caught_by=("INV-N14",), needs=[needs.renewals])
def a_renewed_connection_is_cut(patches: Patches) -> None:
    """A broker takes renewed credentials, and does not stop the timer that waits for them."""

    def judge(original: Any, self: Any, judge: Any, data: bytes) -> None:
        before = self._expiring
        original(self, judge, data)
        if before is not None and self._expiring is not before:
            self._then = self._begin_again
            interval = nanoseconds_of(self._authenticator.settings.refresh_interval)
            self._timer.set(self._context.now + interval)

    patches.around(ConnectionAuthentication, "_judge", judge)


@bug("own", caught_by=("INV-N15", "INV-N10"), needs=[needs.slow_provider])
def one_question_at_a_time(patches: Patches) -> None:
    """A client asks for no credentials while another link of its own waits for some."""
    asking: list[CredentialExchange] = []

    def ask(original: Any, self: Any, challenge: bytes | None, then: Any) -> None:
        asking[:] = [each for each in asking if each.waiting]
        if not any(each._context is self._context for each in asking):
            original(self, challenge, then)
            asking.append(self)

    patches.around(CredentialExchange, "_ask", ask)


@bug("own", caught_by=("INV-N15",), needs=[needs.failing_provider])
def a_failed_provider_ends_every_handshake(patches: Patches) -> None:
    """A provider that fails for one link ends all links that wait for CONNECTED."""

    def refuse(original: Any, self: Any, now: int, link: int, error: Any) -> None:
        original(self, now, link, error)
        for connection in list(self._links.open.values()):
            if not connection.ready:
                connection.close(error)

    patches.around(Client, "refuse_credentials", refuse)
