"""The Go client's own tests, against this project's broker.

The broker is set up as the scripts of the client's project set up theirs: TLS, tokens and passwords with the
files that come with the tests, a tenant that anonymous clients administer, and one that they may not enter.
"""

import json
import subprocess
import sys
from collections.abc import AsyncIterator
from http.client import HTTPConnection
from pathlib import Path

import pytest
import trio

from tests.interop.go_tests import GoTests

pytestmark = [pytest.mark.real, pytest.mark.slow, pytest.mark.long]

LEFT_OUT = {
    "TestConsumerKeepReconnectingAndThenCallClose": "it starts a broker in a container",
    "TestProducerKeepReconnectingAndThenCallClose": "it starts a broker in a container",
    "TestReconnectConsumer": "it starts a broker in a container",
    "TestReconnectedBrokerSendPermits": "it starts a broker in a container",
    "TestSendAsyncCouldTimeoutWhileReconnecting": "it starts a broker in a container",
    "TestTxn_TCClient": "it looks for a topic's short name in a transaction's metadata, which has full names",
    "TestTxn_RegisterTopic": "it looks for a topic's short name in a transaction's metadata",
}
"""These tests do not run, and why."""

PROVIDER = "org.apache.pulsar.broker.authentication.AuthenticationProvider"

GRANTS = [
    ("POST", "tenants/public", {"adminRoles": ["anonymous"], "allowedClusters": ["standalone"]}),
    ("POST", "namespaces/public/default/permissions/anonymous", ["produce", "consume"]),
    ("PUT", "tenants/private", {"adminRoles": [], "allowedClusters": ["standalone"]}),
    ("PUT", "namespaces/private/auth", None),
    ("POST", "namespaces/private/auth/permissions/token-principal", ["produce", "consume"]),
]


def grant_all(token: str) -> None:
    for method, path, body in GRANTS:
        connection = HTTPConnection("localhost", 8080, timeout=30)
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        connection.request(method, f"/admin/v2/{path}", None if body is None else json.dumps(body), headers)
        assert connection.getresponse().status == 204, path
        connection.close()


@pytest.fixture
async def broker(tests: GoTests, tmp_path: Path) -> AsyncIterator[None]:
    """Start a broker as the tests expect it, at Pulsar's own ports, which have to be free."""
    files = tests.certificates
    settings = {
        "tlsCertificateFilePath": files / "broker-cert.pem",
        "tlsKeyFilePath": files / "broker-key.pem",
        "tlsTrustCertsFilePath": files / "cacert.pem",
        "authenticationEnabled": "true",
        "authenticationProviders": ",".join(f"{PROVIDER}{method}" for method in ("Tls", "Token", "Basic")),
        "tokenSecretKey": (tests.tokens / "secret.key").as_uri(),
        "basicAuthConf": tests.passwords.as_uri(),
        "anonymousUserRole": "anonymous",
        "authorizationEnabled": "true",
        "superUserRoles": "localhost,superUser,admin",
        "advertisedAddress": "localhost",
        "backlogQuotaCheckIntervalInSeconds": 5,
        "maxMessageSize": 1024 * 1024,
        "brokerServicePort": 6650,
        "brokerServicePortTls": 6651,
        "webServicePort": 8080,
        "webServicePortTls": 8443,
    }
    conf = tmp_path / "broker.conf"
    conf.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
    command = [sys.executable, "-m", "pulsar_trio_command", "broker", "--conf", str(conf), "--json"]
    process = await trio.lowlevel.open_process(command, stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None
        output = b""
        while b"\n" not in output:
            data = await process.stdout.receive_some()
            assert data, "the broker did not start"
            output += bytes(data)
        token = (tests.tokens / "admin-token").read_text().strip()
        await trio.to_thread.run_sync(grant_all, token)
        yield
    finally:
        process.terminate()
        await process.wait()


@pytest.fixture(scope="module")
def tests() -> GoTests:
    return GoTests()


@pytest.mark.unwatched(why="the Go client sends short names of topics, and properties of batches")
async def test_the_go_clients_tests_pass(tests: GoTests, broker: None) -> None:
    """TXN-01. Some compare with a clock to the millisecond, so those that fail have a second attempt."""
    names = tests.names()
    assert names >= LEFT_OUT.keys()
    outcomes = await tests.run(names - LEFT_OUT.keys())
    again = {name for name in names - LEFT_OUT.keys() if outcomes.get(name) not in ("PASS", "SKIP")}
    if again:
        assert len(again) < 10, again
        outcomes |= await tests.run(again)
    failed = {name for name in names - LEFT_OUT.keys() if outcomes.get(name) not in ("PASS", "SKIP")}
    assert not failed
    assert list(outcomes.values()).count("PASS") > 300
