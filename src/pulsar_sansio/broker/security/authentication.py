"""`ConnectionAuthentication`: the identity of one connection, from its CONNECT to its end.

The machine is in Start, in Connecting while the client owes an answer to a challenge, or Connected. A
connected client whose credentials expire is asked for new ones; the role never changes.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, Protocol

from google.protobuf.message import Message

from ...core.context import Context
from ...model.config import nanoseconds_of
from ...model.errors import (
    AuthenticationError,
    AuthorizationError,
    BrokerError,
    RemoteProtocolError,
)
from ...wire import proto
from .authenticator import Authenticator
from .provider import Challenge, Identity, Outcome

REFRESH = b"PulsarAuthRefresh"
"""The data of an AUTH_CHALLENGE that asks for new credentials of a connection in use."""

CHALLENGE_VERSION = 14
"""The first protocol version whose clients answer AUTH_CHALLENGE."""

LONGEST_TIMER = 365 * 86_400 * 1_000
"""Milliseconds: credentials that live longer are looked at again after this time."""

INVALID_ROLES = "Invalid roles."
NO_PROXY = "Must not set proxyVersion without connecting as a ProxyRole."
FAILED = "Failed to authenticate"


class Peer(Protocol):
    """The connection as its authentication sees it."""

    protocol_version: int

    def send(self, number: int, command: Message) -> None:
        """Write a frame."""

    def reject(self, error: BrokerError, reason: str) -> None:
        """Send ERROR for the whole connection and end it. `reason` is for people."""

    def terminate(self, reason: str) -> None:
        """End the connection."""


class ConnectionAuthentication:
    """`certificate`: the common name of the client's certificate. `connected` is called once, with a role."""

    __slots__ = (
        "_authenticator",
        "_certificate",
        "_connected",
        "_context",
        "_expiring",
        "_identity",
        "_method",
        "_original",
        "_original_credentials",
        "_peer",
        "_proven",
        "_proxied",
        "_refreshable",
        "_then",
        "_timer",
        "_wall_time",
    )

    def __init__(
        self,
        context: Context[Any],
        authenticator: Authenticator,
        wall_time: Callable[[], int],
        peer: Peer,
        certificate: str | None,
        connected: Callable[[], None],
    ) -> None:
        self._context = context
        self._authenticator = authenticator
        self._wall_time = wall_time
        self._peer = peer
        self._certificate = certificate
        self._connected = connected
        self._method = ""
        self._identity: Identity | None = None
        """The proven identity; None until the client is connected."""
        self._expiring: Identity | None = None
        """The identity that is renewed: that of the connection, or the proven one behind a proxy."""
        self._original: str | None = None
        """The role that a proxy stands for."""
        self._original_credentials: tuple[str, bytes] | None = None
        """Method and credentials that have to prove it, until they are judged."""
        self._proven = False
        """True when the client behind the proxy has proven its role."""
        self._proxied = False
        """True when CONNECT has the version of a proxy."""
        self._refreshable = False
        self._then: Callable[[bytes], Outcome] | None = None
        """Judges the answer to the outstanding challenge."""
        self._timer = context.deadlines.slot(self._due)

    @property
    def roles(self) -> tuple[str, ...]:
        """The roles that both need a permission: the connection's, and the one that a proxy stands for."""
        role = "" if self._identity is None else self._identity.role
        return (role,) if self._original is None else (self._original, role)

    # --- frames ---------------------------------------------------------------------------------------

    def connect(self, command: proto.CommandConnect) -> None:
        """Judge a CONNECT, whose versions the connection has taken."""
        self._method = _method_of(command)
        self._proxied = command.HasField("proxy_version")
        self._original = command.original_principal.strip() or None
        if self._original is not None and self._authenticator.settings.authenticate_original:
            method = command.original_auth_method if command.HasField("original_auth_method") else "none"
            self._original_credentials = method, command.original_auth_data.encode()
        self._refreshable = (
            command.feature_flags.supports_auth_refresh and self._peer.protocol_version >= CHALLENGE_VERSION
        )
        self._judge(self._begin_again, command.auth_data)

    def respond(self, command: proto.CommandAuthResponse) -> None:
        """Judge an AUTH_RESPONSE. Raises `RemoteProtocolError` for one that answers no challenge."""
        then, self._then = self._then, None
        response = command.response
        if then is None:
            raise RemoteProtocolError("an AUTH_RESPONSE without an AUTH_CHALLENGE")
        if not response.HasField("auth_data") or not response.HasField("auth_method_name"):
            raise RemoteProtocolError("an AUTH_RESPONSE without data or method")
        self._judge(then, response.auth_data)

    def close(self) -> None:
        """The connection has ended."""
        self._timer.clear()
        self._then = None
        self._original_credentials = None

    # --- decisions ------------------------------------------------------------------------------------

    def _begin_again(self, data: bytes) -> Outcome:
        return self._authenticator.begin(self._method, data, self._certificate)

    def _judge(self, judge: Callable[[bytes], Outcome], data: bytes) -> None:
        try:
            outcome = judge(data)
            if isinstance(outcome, Challenge):
                self._challenge(outcome)
                return
            renewed = self._prove_original() or outcome
        except AuthenticationError as error:
            self._peer.reject(AuthenticationError(FAILED), f"authentication failed: {error.text}")
            return
        if self._identity is None:
            self._admit(outcome, renewed)
            return
        assert self._expiring is not None
        if renewed.role != self._expiring.role:
            self._peer.terminate("the role changed in a renewal of credentials")
        else:
            self._watch(renewed)

    def _prove_original(self) -> Identity | None:
        """Judge the credentials that a proxy passed on, if they have to be. Raises `AuthenticationError`.

        From then on renewals concern these credentials, whose role replaces the one that the proxy named.
        """
        if self._original_credentials is None:
            return None
        (method, data), self._original_credentials = self._original_credentials, None
        outcome = self._authenticator.begin(method, data, None)
        if isinstance(outcome, Challenge):
            raise AuthenticationError("the method of a client behind a proxy needs several steps")
        self._original = outcome.role
        self._proven = True
        self._method, self._certificate = method, None
        return outcome

    def _challenge(self, challenge: Challenge) -> None:
        if self._peer.protocol_version < CHALLENGE_VERSION:
            raise AuthenticationError("the client is too old for a method with several steps")
        self._ask(challenge.data, partial(self._authenticator.step, challenge.then))

    def _ask(self, data: bytes, then: Callable[[bytes], Outcome]) -> None:
        self._then = then
        challenge = proto.CommandAuthChallenge(protocol_version=self._peer.protocol_version)
        challenge.challenge.auth_method_name = self._method
        challenge.challenge.auth_data = data
        self._peer.send(proto.BaseCommand.Type.AUTH_CHALLENGE, challenge)

    def _admit(self, identity: Identity, renewed: Identity) -> None:
        settings = self._authenticator.settings
        if settings.authorization:
            if not self._authenticator.valid_principals(identity.role, self._original):
                self._peer.reject(AuthorizationError(INVALID_ROLES), "the rules for proxy roles are broken")
                return
            if self._proxied and identity.role not in settings.proxy_roles:
                self._peer.reject(AuthorizationError(NO_PROXY), "the version of a proxy without its role")
                return
        self._identity = identity
        self._watch(renewed)
        self._connected()

    # --- expiry ---------------------------------------------------------------------------------------

    def _watch(self, identity: Identity) -> None:
        """Wait for the credentials to expire."""
        self._expiring = identity
        if identity.expires_at_ms is None:
            self._timer.clear()
        else:
            left = min(identity.expires_at_ms - self._wall_time(), LONGEST_TIMER)
            self._timer.set(self._context.now + left * 1_000_000)

    def _due(self) -> None:
        assert self._expiring is not None
        expires_at = self._expiring.expires_at_ms
        assert expires_at is not None
        if self._then is not None:
            self._peer.terminate("no answer to AUTH_CHALLENGE in time")
        elif self._wall_time() < expires_at:
            self._watch(self._expiring)
        elif self._original is not None and not self._proven:
            self._peer.terminate("the credentials expired, and a proxy cannot renew those of its client")
        elif not self._refreshable:
            self._peer.terminate("the credentials expired, and the client cannot renew them")
        else:
            interval = nanoseconds_of(self._authenticator.settings.refresh_interval)
            self._timer.set(self._context.now + interval)
            self._ask(REFRESH, self._begin_again)


def _method_of(command: proto.CommandConnect) -> str:
    """The method's name, or that of the number that old clients send in place of it."""
    if command.HasField("auth_method_name"):
        return command.auth_method_name
    if command.HasField("auth_method"):
        return proto.AuthMethod.Name(command.auth_method).removeprefix("AuthMethod").lower()
    return "none"
