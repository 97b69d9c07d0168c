"""Credentials of a connection: asked of the driver, sent in CONNECT, renewed while messages flow."""

from typing import Any

import pytest

from pulsar_sansio.client.outputs import (
    Connect,
    CredentialsWanted,
    Detached,
    Disconnect,
    ProducerFailed,
    Receipts,
)
from pulsar_sansio.client.security.credential_exchange import MAX_CHALLENGE, MAX_CHALLENGES, REFRESH
from pulsar_sansio.model.config import ProducerSpec
from pulsar_sansio.model.errors import (
    AuthenticationError,
    CertificateExpired,
    CredentialsFailed,
    TimedOut,
    TlsHandshakeEnded,
)
from pulsar_sansio.model.secret import Secret
from pulsar_sansio.model.service_url import Address
from pulsar_sansio.wire import encode_command, proto
from tests.client.script import (
    URL,
    WALL,
    Command,
    Script,
    frame_connected,
    frame_error,
    frame_producer_success,
    frame_receipt,
)

BROKER = Address("broker", 6650)
SPEC = ProducerSpec(topic="demo", batching=None)


def connecting(**options: Any) -> tuple[Script, int]:
    """A client that opens a producer, and its link, which is open."""
    script = Script(**{"authentication_method": "token", **options})
    script.client.open_producer(script.now, SPEC)
    link = script.expect_one(Connect).link
    script.open(link)
    return script, link


def challenge(data: bytes = REFRESH, method: str = "token") -> bytes:
    asked = proto.AuthData(auth_method_name=method, auth_data=data)
    command = proto.CommandAuthChallenge(server_version="b", protocol_version=21, challenge=asked)
    return encode_command(Command.AUTH_CHALLENGE, command)


def provide(script: Script, link: int, credentials: bytes) -> None:
    script.client.provide_credentials(script.now, link, Secret(credentials))
    script.drain()


def producing() -> tuple[Script, int, int]:
    """A client with a producer that is ready."""
    script, link = connecting()
    script.expect_one(CredentialsWanted)
    provide(script, link, b"first")
    script.sent(link, Command.CONNECT)
    script.feed(link, frame_connected())
    script.check_partitions(link)
    script.find_topic(link)
    request = script.sent(link, Command.PRODUCER)
    script.feed(link, frame_producer_success(request.request_id))
    [producer] = [output.producer for output in script.said()]  # type: ignore[union-attr]
    return script, link, producer


def test_connect_waits_for_the_credentials() -> None:
    """Rule CFG-003."""
    script, link = connecting()
    script.expect(CredentialsWanted(link, BROKER, "token", None))
    assert script.commands(link) == []
    provide(script, link, b"canary")
    connect = script.sent(link, Command.CONNECT)
    assert (connect.auth_method_name, connect.auth_data) == ("token", b"canary")


def test_bytes_before_connect_end_the_link() -> None:
    script, link = connecting()
    script.expect_one(CredentialsWanted)
    script.feed(link, frame_connected())
    assert script.expect_one(Disconnect).link == link


def test_a_provider_that_fails_is_the_error_of_the_producer() -> None:
    script, link = connecting()
    script.expect_one(CredentialsWanted)
    error = CredentialsFailed("no token")
    script.client.refuse_credentials(script.now, link, error)
    script.drain()
    _, failed = script.said()
    assert isinstance(failed, ProducerFailed)
    assert failed.error is error


def test_a_slow_provider_is_given_the_time_to_connect() -> None:
    script, link = connecting(connect_timeout=3.0)
    script.expect_one(CredentialsWanted)
    script.advance(3)
    ended, failed = script.said()
    assert isinstance(ended, Disconnect)
    assert isinstance(failed, ProducerFailed)
    assert isinstance(failed.error, CredentialsFailed)
    provide(script, link, b"too late")
    assert script.said() == []


def test_a_step_of_several_is_answered_in_the_handshake() -> None:
    script, link = connecting(authentication_method="sasl")
    script.expect_one(CredentialsWanted)
    provide(script, link, b"one")
    script.sent(link, Command.CONNECT)
    script.feed(link, challenge(b"step", "sasl"))
    assert script.expect_one(CredentialsWanted).challenge == b"step"
    provide(script, link, b"two")
    answer = script.sent(link, Command.AUTH_RESPONSE)
    assert (answer.response.auth_method_name, answer.response.auth_data) == ("sasl", b"two")
    assert answer.client_version.startswith("pulsar-trio")
    assert answer.protocol_version == 21


def test_new_credentials_are_fetched_while_a_send_is_in_flight() -> None:
    """Nothing of the link is touched: the receipt that comes meanwhile confirms the message."""
    script, link, producer = producing()
    script.client.send(script.now, producer, b"x", WALL)
    script.drain()
    script.sent(link, Command.SEND)
    script.feed(link, challenge())
    assert script.expect_one(CredentialsWanted) == CredentialsWanted(link, BROKER, "token", None)
    script.feed(link, frame_receipt(0))
    script.expect_one(Receipts)
    provide(script, link, b"second")
    assert script.sent(link, Command.AUTH_RESPONSE).response.auth_data == b"second"


@pytest.mark.parametrize(
    ("code", "refused"), [(proto.AuthenticationError, True), (proto.ServiceNotReady, False)]
)
def test_the_driver_learns_that_its_credentials_were_refused(code: int, refused: bool) -> None:
    """INV-N10: a driver that keeps credentials must not bring refused ones again."""
    script, link = connecting()
    script.expect_one(CredentialsWanted)
    provide(script, link, b"old")
    script.sent(link, Command.CONNECT)
    script.feed(link, frame_error(2**64 - 1, code))
    [ended] = [output for output in script.said() if isinstance(output, Disconnect)]
    assert (ended.link, ended.credentials_refused) == (link, refused)


def test_a_second_request_for_new_credentials_is_asked_after_the_first() -> None:
    script, link, _ = producing()
    script.feed(link, challenge(), challenge(), challenge())
    script.expect_one(CredentialsWanted)
    provide(script, link, b"second")
    script.sent(link, Command.AUTH_RESPONSE)
    script.expect_one(CredentialsWanted)
    provide(script, link, b"third")
    assert script.sent(link, Command.AUTH_RESPONSE).response.auth_data == b"third"
    assert script.said() == []


def test_a_provider_that_fails_while_messages_flow_costs_the_link() -> None:
    """The producer connects again, and asks again."""
    script, link, _ = producing()
    script.feed(link, challenge())
    script.expect_one(CredentialsWanted)
    script.client.refuse_credentials(script.now, link, CredentialsFailed("no token"))
    script.drain()
    ended, detached = script.said()
    assert isinstance(ended, Disconnect)
    assert isinstance(detached, Detached)
    script.advance(1)
    again = script.expect_one(Connect)
    script.open(again.link)
    script.expect_one(CredentialsWanted)
    provide(script, again.link, b"new")
    assert script.sent(again.link, Command.CONNECT).auth_data == b"new"


@pytest.mark.parametrize(
    ("frames", "words"),
    [
        ([challenge(b"step"), challenge(b"step")], "before the answer"),
        ([challenge(bytes(MAX_CHALLENGE + 1))], "AUTH_CHALLENGE of"),
        ([challenge(b"step", "basic")], "this client has 'token' ones"),
    ],
)
def test_a_challenge_that_cannot_be_answered_ends_the_link(frames: list[bytes], words: str) -> None:
    script, link = connecting()
    script.expect_one(CredentialsWanted)
    provide(script, link, b"one")
    script.sent(link, Command.CONNECT)
    script.feed(link, *frames)
    [reason] = [output.reason for output in script.said() if isinstance(output, Disconnect)]
    assert words in reason


def answered_challenge(script: Script, link: int, number: int, data: bytes = REFRESH) -> None:
    script.feed(link, challenge(data))
    script.expect_one(CredentialsWanted)
    provide(script, link, b"%d" % number)
    assert script.sent(link, Command.AUTH_RESPONSE).response.auth_data == b"%d" % number


def test_a_handshake_has_a_bounded_number_of_challenges() -> None:
    """GAP-33, INV-N10: a broker cannot make the driver ask its issuer without end."""
    script, link = connecting(connect_timeout=30.0)
    script.expect_one(CredentialsWanted)
    provide(script, link, b"one")
    script.sent(link, Command.CONNECT)
    for number in range(MAX_CHALLENGES):
        answered_challenge(script, link, number, b"step")
        script.advance(2)
    script.feed(link, challenge(b"step"))
    [reason] = [output.reason for output in script.said() if isinstance(output, Disconnect)]
    assert "more than 10 AUTH_CHALLENGE in one handshake" in reason


def test_renewals_are_bounded_by_time() -> None:
    """INV-N10: ten a second, however long the connection lives."""
    script, link, _ = producing()
    for _ in range(3):
        for number in range(MAX_CHALLENGES):
            answered_challenge(script, link, number)
        script.advance(1)
    for number in range(MAX_CHALLENGES):
        answered_challenge(script, link, number)
    script.feed(link, challenge())
    [reason] = [output.reason for output in script.said() if isinstance(output, Disconnect)]
    assert "more than 10 AUTH_CHALLENGE within a second" in reason


def test_a_challenge_to_a_client_without_credentials_is_the_error_of_the_producer() -> None:
    script, link = connecting(authentication_method=None)
    script.sent(link, Command.CONNECT)
    script.feed(link, challenge(b"step"))
    _, failed = script.said()
    assert isinstance(failed, ProducerFailed)
    assert isinstance(failed.error, AuthenticationError)


@pytest.mark.parametrize(
    ("hosts", "followed"), [(None, False), ((), False), (("elsewhere",), True), ((".where",), False)]
)
def test_credentials_go_only_to_named_hosts(hosts: tuple[str, ...] | None, followed: bool) -> None:
    """LOOKUP-05: a lookup names another host; without `broker_hosts` no credentials go there."""
    script, link = connecting(broker_hosts=hosts)
    script.expect_one(CredentialsWanted)
    provide(script, link, b"one")
    script.sent(link, Command.CONNECT)
    script.feed(link, frame_connected())
    script.check_partitions(link)
    script.find_topic(link, "pulsar://elsewhere:6650")
    [said] = script.said()
    assert isinstance(said, Connect if followed else ProducerFailed)


def test_a_tls_error_is_the_error_of_the_producer() -> None:
    script = Script(service_url="pulsar+ssl://broker")
    script.client.open_producer(script.now, SPEC)
    error = CertificateExpired("expired")
    script.client.disconnected(script.now, script.expect_one(Connect).link, error)
    script.drain()
    assert script.expect_one(ProducerFailed).error is error


def test_a_handshake_that_the_peer_ended_is_tried_again() -> None:
    script = Script(service_url="pulsar+ssl://broker", operation_timeout=0.5)
    script.client.open_producer(script.now, SPEC)
    error = TlsHandshakeEnded("ended")
    script.client.disconnected(script.now, script.expect_one(Connect).link, error)
    script.drain()
    assert script.said() == []
    script.advance(0.5)
    failed = script.said()[-1]
    assert isinstance(failed, ProducerFailed)
    assert isinstance(failed.error, TimedOut)
    assert failed.error.__cause__ is error


def test_an_sni_proxy_gets_every_connection_and_the_brokers_name() -> None:
    script = Script(service_url="pulsar+ssl://broker", sni_proxy="pulsar+ssl://proxy:4443")
    script.client.open_producer(script.now, SPEC)
    proxy = Address("proxy", 4443)
    connect = script.expect_one(Connect)
    assert (connect.address, connect.tls_name) == (proxy, "broker")
    script.open(connect.link)
    assert not script.sent(connect.link, Command.CONNECT).HasField("proxy_to_broker_url")
    script.feed(connect.link, frame_connected())
    script.check_partitions(connect.link)
    script.find_topic(connect.link, URL, tls_url="pulsar+ssl://broker-2:6651")
    second = script.expect_one(Connect)
    assert (second.address, second.tls_name) == (proxy, "broker-2")
