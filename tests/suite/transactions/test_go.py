"""The Go client's own tests of transactions, against this project's broker.

They come with certificates, over TLS, and find topics over HTTPS.
"""

import json
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import trio

from tests.interop.go_tests import GoTests

pytestmark = [pytest.mark.real, pytest.mark.slow, pytest.mark.long]

LEFT_OUT = {"TestTxn_TCClient", "TestTxn_RegisterTopic"}
"""These tests let a topic join by its short name, and look for that name in the metadata over HTTP. A Java
broker keeps names as they were given; this one has full names."""

PROVIDER = "org.apache.pulsar.broker.authentication.AuthenticationProviderTls"


@pytest.fixture
async def addresses(tests: GoTests, tmp_path: Path) -> AsyncIterator[dict[str, str]]:
    """Start a broker as the tests expect it."""
    files = tests.certificates
    settings = {
        "tlsCertificateFilePath": files / "broker-cert.pem",
        "tlsKeyFilePath": files / "broker-key.pem",
        "tlsTrustCertsFilePath": files / "cacert.pem",
        "authenticationEnabled": "true",
        "authenticationProviders": PROVIDER,
        "anonymousUserRole": "anonymous",
        "authorizationEnabled": "true",
        "superUserRoles": "admin",
        "advertisedAddress": "localhost",
        "maxMessageSize": 1024 * 1024,
        "brokerServicePort": 0,
        "brokerServicePortTls": 0,
        "webServicePort": 0,
        "webServicePortTls": 0,
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
        ready = json.loads(output)
        yield {
            "serviceURL": ready["url"],
            "serviceURLTLS": ready["tls_url"],
            "webServiceURL": ready["admin_url"],
            "webServiceURLTLS": ready["admin_url_tls"].replace("127.0.0.1", "localhost"),
        }
    finally:
        process.terminate()
        await process.wait()


@pytest.fixture(scope="module")
def tests() -> GoTests:
    return GoTests()


@pytest.mark.breaks(
    "CHECK-26", "CHECK-75", why="the checker at the broker takes each connection for a client of its own"
)
async def test_the_go_clients_tests_pass(tests: GoTests, addresses: dict[str, str]) -> None:
    """TXN-01"""
    names = tests.names("TestTxn_")
    assert names >= LEFT_OUT
    run = names - LEFT_OUT
    assert await tests.run(run, addresses) == dict.fromkeys(run, "PASS")
