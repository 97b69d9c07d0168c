"""Credentials of lookups over HTTP: their headers, the hosts that get them, and what goes wrong."""

import json

import pytest

from pulsar_sansio.client.outputs import Disconnect, RequestFailed
from pulsar_sansio.model.errors import (
    BrokerAddressRefused,
    CredentialsFailed,
    NotSupported,
    RemoteProtocolError,
)
from pulsar_sansio.model.secret import Secret
from pulsar_sansio.model.service_url import Address
from tests.client.lookup.http_script import HTTPS, HttpScript, count, failure, response


@pytest.mark.parametrize(
    ("method", "secret", "header"),
    [
        ("token", b"abc.def", "Bearer abc.def"),
        ("basic", b"user:pass", "Basic dXNlcjpwYXNz"),
    ],
)
def test_credentials_are_a_header(method: str, secret: bytes, header: str) -> None:
    script = HttpScript(HTTPS, authentication_method=method)
    count(script)
    wanted = script.wanted()
    assert (wanted.broker, wanted.method, wanted.challenge) == (Address("web", 8443), method, None)
    script.client.provide_credentials(script.now, wanted.link, Secret(secret))
    asked = script.request(wanted.link)
    assert asked.headers["authorization"] == header
    script.answer(asked.link, None, 307, "Location: /again")
    wanted = script.wanted()
    script.client.provide_credentials(script.now, wanted.link, Secret(secret))
    assert script.request(wanted.link).headers["authorization"] == header


def test_credentials_go_to_the_hosts_of_the_service_url_alone() -> None:
    script = HttpScript(HTTPS, authentication_method="token")
    count(script)
    wanted = script.wanted()
    script.client.provide_credentials(script.now, wanted.link, Secret(b"abc"))
    script.answer(wanted.link, None, 307, "Location: https://other:8443/x")
    assert isinstance(failure(script), BrokerAddressRefused)


def test_a_certificate_is_credentials_enough() -> None:
    script = HttpScript(HTTPS, authentication_method="tls")
    count(script)
    assert "authorization" not in script.asked(Address("web", 8443), "web").headers


def test_a_method_that_http_does_not_have() -> None:
    script = HttpScript(HTTPS, authentication_method="magic")
    request = count(script)
    (failed,) = script.said()
    assert isinstance(failed, RequestFailed)
    assert failed.request == request
    assert isinstance(failed.error, NotSupported)


@pytest.mark.parametrize("secret", [b"a\r\nX: y", b"a\x00b", b"a\n"])
def test_credentials_that_no_header_can_carry_are_not_shown(secret: bytes) -> None:
    script = HttpScript(HTTPS, authentication_method="token")
    count(script)
    wanted = script.wanted()
    script.client.provide_credentials(script.now, wanted.link, Secret(secret))
    script.ended(wanted.link)
    error = failure(script)
    assert isinstance(error, CredentialsFailed)
    assert "X" not in str(error)
    assert script.written.get(wanted.link, b"") == b""


@pytest.mark.parametrize(
    ("status", "reason", "refused"),
    [
        (401, "Authentication required", True),
        (401, "Unauthorized to validateTopicOperation", False),
        (403, "no permission", False),
    ],
)
def test_the_driver_learns_that_its_credentials_were_refused(status: int, reason: str, refused: bool) -> None:
    """INV-N10: a driver that keeps credentials must not bring refused ones again."""
    script = HttpScript(HTTPS, authentication_method="token")
    count(script)
    wanted = script.wanted()
    script.client.provide_credentials(script.now, wanted.link, Secret(b"old"))
    script.feed(wanted.link, response(json.dumps({"reason": reason}).encode(), status))
    [ended] = [output for output in script.said() if isinstance(output, Disconnect)]
    assert (ended.link, ended.credentials_refused) == (wanted.link, refused)


def test_no_credentials() -> None:
    script = HttpScript(HTTPS, authentication_method="token")
    count(script)
    wanted = script.wanted()
    error = CredentialsFailed("no token")
    script.client.refuse_credentials(script.now, wanted.link, error)
    script.ended(wanted.link)
    assert failure(script) is error


def test_no_credentials_within_their_time() -> None:
    script = HttpScript(HTTPS, authentication_method="token", connect_timeout=1.0)
    count(script)
    wanted = script.wanted()
    script.advance(1.0)
    script.ended(wanted.link)
    assert isinstance(failure(script), CredentialsFailed)


def test_bytes_before_the_request_end_the_link() -> None:
    script = HttpScript(HTTPS, authentication_method="token")
    count(script)
    wanted = script.wanted()
    script.feed(wanted.link, response(b'{"partitions": 3}'))
    script.ended(wanted.link)
    assert isinstance(failure(script), RemoteProtocolError)
