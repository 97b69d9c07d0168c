"""A broker with authentication, and peers that show credentials to it."""

from typing import Any

from pulsar_sansio import (
    AuthenticationError,
    BrokerAuthentication,
    BrokerConfig,
    CertificateProvider,
    Challenge,
    Identity,
)
from pulsar_sansio.wire import proto
from tests.broker.peer import WALL, Peer, Type, World


class Names:
    """Credentials are `ROLE`, or `ROLE,SECONDS` when they expire after so many seconds of the test."""

    method = "name"

    def authenticate(self, data: bytes, certificate: str | None) -> Identity | Challenge:
        if data == b"steps":
            return Steps().authenticate(data, certificate)
        role, _, rest = data.decode().partition(",")
        if role == "bad":
            raise AuthenticationError("the name is bad")
        if role == "bug":
            raise ZeroDivisionError("secret-in-a-bug")
        if role == "later":
            return Identity(role, begins_at_ms=WALL + 1000)
        return Identity(role, WALL + round(float(rest) * 1000) if rest else None)


class Steps:
    """Asks twice: the answers have to be `one` and `two`."""

    method = "steps"

    def authenticate(self, data: bytes, certificate: str | None) -> Challenge:
        def first(answer: bytes) -> Challenge:
            if answer != b"one":
                raise AuthenticationError("not one")
            return Challenge(b"and two", second)

        def second(answer: bytes) -> Identity:
            if answer != b"two":
                raise AuthenticationError("not two")
            return Identity("stepper")

        return Challenge(b"say one", first)


def guarded(**options: Any) -> World:
    providers = (Names(), Steps(), CertificateProvider())
    return World(BrokerConfig(authentication=BrokerAuthentication(providers, **options)))


def knock(
    world: World,
    data: bytes,
    method: str = "name",
    version: int = 21,
    refresh: bool = True,
    certificate: str | None = None,
    **fields: Any,
) -> Peer:
    """Send CONNECT with these credentials."""
    peer = world.raw(certificate)
    connect = proto.CommandConnect(
        client_version="test",
        protocol_version=version,
        auth_method_name=method,
        auth_data=data,
        **fields,
    )
    connect.feature_flags.supports_auth_refresh = refresh
    peer.send(Type.CONNECT, connect)
    return peer


def enter(world: World, role: str, **options: Any) -> Peer:
    """Connect as a role."""
    peer = knock(world, role.encode(), **options)
    peer.expect(Type.CONNECTED)
    return peer


def respond(peer: Peer, data: bytes, method: str = "name") -> None:
    response = proto.CommandAuthResponse(client_version="test", protocol_version=21)
    response.response.auth_method_name = method
    response.response.auth_data = data
    peer.send(Type.AUTH_RESPONSE, response)


def refused(peer: Peer, code: str = "AuthenticationError") -> str:
    """The connection ended with ERROR; returns its text."""
    error = peer.expect_error(code)
    assert error.request_id == 2**64 - 1
    assert peer.closed is not None
    peer.nothing()
    return str(error.message)
