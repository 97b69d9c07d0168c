"""The embedded broker in a process of its own; it refuses clients without credentials.

    python -m tests.spark.security.secure_broker CERTIFICATE KEY TRUST

Role `worker` may produce and consume in public/default and in the namespace with deduplication.
"""

import json
import sys
import time

import trio

from pulsar_trio import (
    BasicProvider,
    BrokerAuthentication,
    CertificateProvider,
    Identity,
    ServerTls,
    TlsConfig,
    Token,
    TokenProvider,
    open_broker,
)
from tests.real_pulsar import Admin
from tests.security.certificates import Authority
from tests.security.secure_pulsar import PASSWORD_HASH, SECRET_KEY, token_of
from tests.spark.scenes.brokers import DEDUPLICATION, OurBroker

SCOPES = ("public/default", DEDUPLICATION)


SHORT_LIVED = "short-lived-"
"""The beginning of tokens whose life begins when the broker reads them, however slow the machine is."""

LIFE = 500
"""Milliseconds of that life. They have room for the difference of the broker's clock and the system's."""


class Tokens(TokenProvider):
    """Tokens of `secure_pulsar`, and short-lived ones."""

    def authenticate(self, data: bytes, certificate: str | None) -> Identity:
        if data.startswith(SHORT_LIVED.encode()):
            return Identity("worker", expires_at_ms=time.time_ns() // 1_000_000 + LIFE)
        return super().authenticate(data, certificate)


class SecureBroker(OurBroker):
    """`https_url`: for lookups over HTTP. `trust`: the authority of its certificate."""

    def __init__(self, authority: Authority) -> None:
        served = authority.issue("localhost", "127.0.0.1")
        files = (served.certificate, served.key, authority.file)
        ready = self._start("tests.spark.security.secure_broker", *map(str, files))
        self.url = self.tls_url = ready["url"]
        self.https_url = ready["https_url"]
        self.trust = str(authority.file)
        self.client_options = {
            "tls": TlsConfig(trust=authority.file),
            "authentication": Token(token_of("worker")),
        }
        self.admin = Admin("127.0.0.1", ready["http_port"], token_of("admin"))


async def serve(*files: str) -> None:
    certificate, key, trust = files
    authentication = BrokerAuthentication(
        (
            Tokens(secret_key=SECRET_KEY),
            BasicProvider(f"worker:{PASSWORD_HASH}\n"),
            CertificateProvider(),
        ),
        superusers=frozenset({"admin"}),
    )
    tls = ServerTls(certificate, key, trust=trust)
    async with open_broker(
        tls=tls, tls_port=0, http_port=0, https_port=0, authentication=authentication
    ) as broker:
        broker.create_namespace(DEDUPLICATION)
        broker.set_policy(DEDUPLICATION, "deduplication", True)
        for scope in SCOPES:
            broker.grant(scope, "worker", "produce", "consume")
        ready = {"url": broker.tls_url, "https_url": broker.admin_url_tls, "http_port": broker.http_port}
        print(json.dumps(ready), flush=True)
        await trio.sleep_forever()


if __name__ == "__main__":
    trio.run(serve, *sys.argv[1:])
