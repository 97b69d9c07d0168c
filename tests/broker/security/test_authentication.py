"""The handshake of a broker that authenticates, and the renewal of credentials."""

from typing import Any

import pytest

from pulsar_sansio import AuthenticationError, BrokerAuthentication, BrokerConfig
from pulsar_sansio.broker.security.authenticator import MAX_CREDENTIALS
from pulsar_sansio.broker.serving.connection import HANDSHAKE_LIMIT
from pulsar_sansio.wire import proto
from tests.broker.peer import Peer, Type, World
from tests.broker.security.doors import Names, enter, guarded, knock, refused, respond

TOO_LARGE = b"x" * (MAX_CREDENTIALS + 1)


def challenged(peer: Peer) -> bytes:
    challenge = peer.expect(Type.AUTH_CHALLENGE)
    assert challenge.protocol_version == peer.world.broker.links[peer.link].protocol_version
    return bytes(challenge.challenge.auth_data)


# --- one step -----------------------------------------------------------------------------------------


def test_right_credentials_connect() -> None:
    enter(guarded(), "ada")


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"bad", "authentication failed: the name is bad"),
        (b"bug", "authentication failed: the provider raised ZeroDivisionError"),
        (b"", "authentication failed: the credentials have no role"),
        (b"ada,-1", "authentication failed: the credentials have expired"),
        (b"later", "authentication failed: the credentials are not valid yet"),
        (b"\xff", "authentication failed: the provider raised UnicodeDecodeError"),
        (
            TOO_LARGE,
            "authentication failed: credentials of 65537 bytes, allowed are 65536",
        ),
    ],
)
def test_wrong_credentials_get_an_error_and_the_end(data: bytes, reason: str) -> None:
    peer = knock(guarded(), data)
    assert refused(peer) == "Failed to authenticate"
    assert peer.closed == reason


def test_a_method_without_a_provider_is_refused() -> None:
    peer = knock(guarded(), b"", method="none")
    assert refused(peer) == "Failed to authenticate"
    assert peer.closed == "authentication failed: no anonymous role, and no provider of the method 'none'"


def test_a_method_without_a_provider_gets_the_anonymous_role() -> None:
    world = guarded(anonymous_role="guest")
    peer = knock(world, b"", method="none")
    peer.expect(Type.CONNECTED)
    assert world.broker.links[peer.link].roles == ("guest",)


def test_wrong_credentials_get_no_anonymous_role() -> None:
    refused(knock(guarded(anonymous_role="guest"), b"bad"))


def test_old_clients_name_their_method_by_a_number() -> None:
    world = guarded(anonymous_role="guest")
    peer = world.raw()
    old = proto.CommandConnect(client_version="t", protocol_version=9, auth_method=proto.AuthMethodAthens)
    peer.send(Type.CONNECT, old)
    peer.expect(Type.CONNECTED)
    other = guarded().raw()
    other.send(Type.CONNECT, old)
    refused(other)
    assert "'athens'" in str(other.closed)


def test_the_certificate_is_the_identity_of_the_method_tls() -> None:
    world = guarded()
    peer = knock(world, b"", method="tls", certificate="ada")
    peer.expect(Type.CONNECTED)
    assert world.broker.links[peer.link].roles == ("ada",)
    refused(knock(world, b"", method="tls"))


def test_without_authentication_credentials_are_ignored() -> None:
    enter(World(), "bad")


def test_a_stranger_cannot_make_the_broker_hold_a_large_frame() -> None:
    """Before CONNECTED a frame has at most 256 KiB; afterwards `max_message_size` counts."""
    world = guarded(superusers={"ada"})
    peer = world.raw()
    world.broker.receive_data(world.now, peer.link, (HANDSHAKE_LIMIT + 1).to_bytes(4, "big"))
    world.pump()
    assert peer.closed is not None
    assert "over the limit" in peer.closed
    known = enter(world, "ada")
    world.broker.receive_data(world.now, known.link, (HANDSHAKE_LIMIT + 1).to_bytes(4, "big") + bytes(10_000))
    world.pump()
    assert known.closed is None


# --- several steps ------------------------------------------------------------------------------------


def test_several_steps_connect() -> None:
    world = guarded()
    peer = knock(world, b"", method="steps")
    assert challenged(peer) == b"say one"
    respond(peer, b"one")
    assert challenged(peer) == b"and two"
    peer.send(Type.PING, proto.CommandPing())
    peer.expect(Type.PONG)
    respond(peer, b"two")
    peer.expect(Type.CONNECTED)
    assert world.broker.links[peer.link].roles == ("stepper",)


def test_a_wrong_step_is_refused() -> None:
    peer = knock(guarded(), b"", method="steps")
    challenged(peer)
    respond(peer, b"three")
    refused(peer)


def test_other_commands_between_the_steps_end_the_connection() -> None:
    for number, command in (
        (Type.LOOKUP, proto.CommandLookupTopic(topic="t", request_id=1)),
        (Type.CONNECT, proto.CommandConnect(client_version="t", auth_method_name="name", auth_data=b"a")),
    ):
        peer = knock(guarded(), b"", method="steps")
        challenged(peer)
        peer.send(number, command)
        peer.nothing()
        assert peer.closed == f"command {number} in place of AUTH_RESPONSE"


def test_a_client_that_does_not_answer_a_step_is_ended() -> None:
    world = guarded()
    peer = knock(world, b"", method="steps")
    challenged(peer)
    world.advance(31)
    peer.nothing()
    assert peer.closed == "no AUTH_RESPONSE in time"


def test_a_client_too_old_for_challenges_gets_an_error() -> None:
    refused(knock(guarded(), b"", method="steps", version=13))


def test_an_answer_without_its_parts_ends_the_connection() -> None:
    peer = knock(guarded(), b"", method="steps")
    challenged(peer)
    peer.send(Type.AUTH_RESPONSE, proto.CommandAuthResponse())
    peer.nothing()
    assert peer.closed == "an AUTH_RESPONSE without data or method"


@pytest.mark.parametrize("world", [guarded(), World()])
def test_an_answer_without_a_challenge_ends_the_connection(world: World) -> None:
    peer = enter(world, "ada")
    respond(peer, b"ada")
    peer.nothing()
    assert peer.closed == "an AUTH_RESPONSE without an AUTH_CHALLENGE"


# --- proxies ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("role", "fields", "allowed"),
    [
        ("proxy", {"original_principal": "ada"}, True),
        ("proxy", {"original_principal": "ada", "proxy_version": "1"}, True),
        ("proxy", {}, False),
        ("proxy", {"original_principal": " "}, False),
        ("proxy", {"original_principal": "proxy"}, False),
        ("ada", {"original_principal": "bob"}, False),
        ("ada", {"original_principal": "ada"}, False),
    ],
)
def test_only_a_proxy_speaks_for_another_role(role: str, fields: dict[str, Any], allowed: bool) -> None:
    world = guarded(proxy_roles={"proxy"})
    peer = knock(world, role.encode(), **fields)
    if allowed:
        peer.expect(Type.CONNECTED)
        assert world.broker.links[peer.link].roles == ("ada", "proxy")
    else:
        assert refused(peer, "AuthorizationError") == "Invalid roles."


def test_the_version_of_a_proxy_needs_its_role() -> None:
    peer = knock(guarded(proxy_roles={"proxy"}), b"ada", proxy_version="1")
    text = refused(peer, "AuthorizationError")
    assert text == "Must not set proxyVersion without connecting as a ProxyRole."


def test_without_authorization_there_are_no_rules_for_proxies() -> None:
    knock(guarded(authorization=False), b"ada", original_principal="bob").expect(Type.CONNECTED)


def behind(world: World, data: str, principal: str = "named", method: str | None = "name") -> Peer:
    """A proxy connects for a client, and passes the client's credentials on."""
    fields: dict[str, Any] = {} if method is None else {"original_auth_method": method}
    return knock(world, b"proxy", original_principal=principal, original_auth_data=data, **fields)


def test_the_client_behind_a_proxy_proves_its_role() -> None:
    """The role of the credentials counts, and not the one that the proxy names."""
    world = guarded(proxy_roles={"proxy"}, authenticate_original=True)
    peer = behind(world, "ada")
    peer.expect(Type.CONNECTED)
    assert world.broker.links[peer.link].roles == ("ada", "proxy")


@pytest.mark.parametrize(
    ("data", "method", "reason"),
    [
        ("bad", "name", "the name is bad"),
        ("ada,-1", "name", "the credentials have expired"),
        ("", None, "no anonymous role, and no provider of the method 'none'"),
        ("", "steps", "the method of a client behind a proxy needs several steps"),
        ("", "tls", "the client has shown no certificate with a common name"),
    ],
)
def test_a_client_behind_a_proxy_that_proves_nothing_is_refused(
    data: str, method: str | None, reason: str
) -> None:
    world = guarded(proxy_roles={"proxy"}, authenticate_original=True)
    peer = behind(world, data, method=method)
    assert refused(peer) == "Failed to authenticate"
    assert peer.closed == f"authentication failed: {reason}"


def test_the_certificate_of_a_proxy_proves_nothing_for_its_client() -> None:
    world = guarded(proxy_roles={"proxy"}, authenticate_original=True)
    fields: dict[str, Any] = {"original_principal": "ada", "original_auth_method": "tls"}
    refused(knock(world, b"", method="tls", certificate="proxy", **fields))


def test_a_client_behind_a_proxy_may_be_anonymous_and_no_proxy() -> None:
    world = guarded(proxy_roles={"proxy"}, authenticate_original=True, anonymous_role="guest")
    peer = behind(world, "", method=None)
    peer.expect(Type.CONNECTED)
    assert world.broker.links[peer.link].roles == ("guest", "proxy")
    assert refused(behind(world, "proxy"), "AuthorizationError") == "Invalid roles."


def test_without_the_option_the_word_of_the_proxy_counts() -> None:
    world = guarded(proxy_roles={"proxy"})
    peer = behind(world, "bad")
    peer.expect(Type.CONNECTED)
    assert world.broker.links[peer.link].roles == ("named", "proxy")


# --- renewal ------------------------------------------------------------------------------------------


def pongs(world: World, peer: Peer, seconds: int) -> None:
    """Let time pass for a client that answers every PING."""
    for _ in range(seconds):
        world.advance(1)
        while peer.inbox and peer.inbox[0][0] == Type.PING:
            peer.expect(Type.PING)
            peer.send(Type.PONG, proto.CommandPong())


def test_credentials_are_renewed_when_they_expire() -> None:
    world = guarded(superusers={"ada"})
    peer = enter(world, "ada,100")
    pongs(world, peer, 99)
    peer.nothing()
    pongs(world, peer, 1)
    assert challenged(peer) == b"PulsarAuthRefresh"
    peer.producer()  # the connection is in use all the time
    respond(peer, b"ada,200")
    pongs(world, peer, 99)
    peer.nothing()
    pongs(world, peer, 1)
    assert challenged(peer) == b"PulsarAuthRefresh"
    respond(peer, b"ada")
    pongs(world, peer, 300)
    peer.nothing()
    assert peer.closed is None


def test_a_renewal_may_have_several_steps() -> None:
    world = guarded()
    peer = enter(world, "stepper,5")
    world.advance(5)
    challenged(peer)
    respond(peer, b"steps")
    assert challenged(peer) == b"say one"
    respond(peer, b"one")
    assert challenged(peer) == b"and two"
    respond(peer, b"two")
    pongs(world, peer, 100)
    peer.nothing()
    assert peer.closed is None


def test_a_renewal_that_is_not_answered_ends_the_connection() -> None:
    world = guarded(refresh_interval=20)
    peer = enter(world, "ada,5")
    world.advance(5)
    challenged(peer)
    world.advance(19)
    assert peer.closed is None
    world.advance(1)
    assert peer.closed == "no answer to AUTH_CHALLENGE in time"


@pytest.mark.parametrize("options", [{"refresh": False}, {"version": 13}])
def test_a_client_that_cannot_renew_is_ended(options: dict[str, int]) -> None:
    world = guarded()
    peer = enter(world, "ada,5", **options)
    world.advance(5)
    peer.nothing()
    assert peer.closed == "the credentials expired, and the client cannot renew them"


def test_the_role_cannot_change() -> None:
    world = guarded()
    peer = enter(world, "ada,5")
    world.advance(5)
    challenged(peer)
    respond(peer, b"bob")
    peer.nothing()
    assert peer.closed == "the role changed in a renewal of credentials"


@pytest.mark.parametrize("data", [b"bad", b"ada,5"])
def test_a_renewal_with_wrong_or_old_credentials_is_refused(data: bytes) -> None:
    world = guarded()
    peer = enter(world, "ada,5")
    world.advance(5)
    challenged(peer)
    respond(peer, data)
    refused(peer)


def test_the_client_of_a_proxy_cannot_renew() -> None:
    world = guarded(proxy_roles={"proxy"})
    peer = knock(world, b"proxy,5", original_principal="ada")
    peer.expect(Type.CONNECTED)
    world.advance(5)
    peer.nothing()
    assert peer.closed == "the credentials expired, and a proxy cannot renew those of its client"


def test_the_client_of_a_proxy_renews_credentials_that_were_passed_on() -> None:
    world = guarded(proxy_roles={"proxy"}, authenticate_original=True)
    peer = behind(world, "ada,5")
    peer.expect(Type.CONNECTED)
    world.advance(5)
    assert challenged(peer) == b"PulsarAuthRefresh"
    respond(peer, b"ada,9")
    pongs(world, peer, 4)
    assert challenged(peer) == b"PulsarAuthRefresh"
    respond(peer, b"proxy")
    peer.nothing()
    assert peer.closed == "the role changed in a renewal of credentials"


def test_credentials_may_live_for_years() -> None:
    years = 365 * 86_400.0
    authentication = BrokerAuthentication((Names(),))
    world = World(BrokerConfig(authentication=authentication, keepalive_interval=10 * years))
    peer = enter(world, f"ada,{3 * years}")
    world.advance(3 * years - 1)
    peer.nothing()
    world.advance(1)
    assert challenged(peer) == b"PulsarAuthRefresh"
    assert peer.closed is None


def test_nothing_is_asked_of_a_connection_that_ended() -> None:
    world = guarded()
    peer = enter(world, "ada,5")
    peer.drop()
    world.advance(100)
    peer.nothing()


# --- outside of Pulsar's protocol ---------------------------------------------------------------------


def test_credentials_over_http_have_a_role() -> None:
    world = guarded()
    assert world.broker.authenticate(0, "name", b"ada,5") == "ada"
    assert world.broker.authenticate(0, "tls", b"", "bob") == "bob"
    for now, method, data in ((6 * 10**9, "name", b"ada,5"), (0, "name", b"bad"), (0, "steps", b"")):
        with pytest.raises(AuthenticationError):
            world.broker.authenticate(now, method, data)
    assert World().broker.authenticate(0, "name", b"bad") == ""
