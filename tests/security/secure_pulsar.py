"""A broker with TLS, tokens, passwords and permissions: ours and a real Pulsar, by one standalone.conf."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import time
from typing import Any

import jwt

from tests.canary import CANARY
from tests.patience import PATIENCE
from tests.real_pulsar import Admin, RealPulsar
from tests.real_pulsar.server import free_ports, standalone_conf
from tests.security.certificates import Authority

SECRET_KEY = f"{CANARY}-of-thirty-two-bytes".encode()[:32]
PASSWORD = CANARY
PASSWORD_HASH = "$apr1$saltsalt$NZzDyn8owYaHBLadvCiOj."
"""The hash that `htpasswd` writes (Apache's variant of MD5)."""

PROVIDERS = "org.apache.pulsar.broker.authentication.AuthenticationProvider"
REFRESH_CHECK = 1
"""Seconds between the broker's looks at expired credentials."""


def token_of(role: str, seconds: float | None = None, key: bytes = SECRET_KEY) -> str:
    """A token for a role, which expires after so many seconds."""
    claims: dict[str, Any] = {"sub": role, "canary": CANARY}
    if seconds is not None:
        claims["exp"] = time() + seconds
    return jwt.encode(claims, key, algorithm="HS256")


@dataclass(frozen=True, slots=True)
class SecurePulsar:
    """One broker; `authority` issued its certificate and accepts the certificates of clients."""

    authority: Authority
    port: int
    tls_port: int
    web_port_tls: int
    admin: Admin

    @property
    def url(self) -> str:
        return f"pulsar://localhost:{self.port}"

    @property
    def tls_url(self) -> str:
        return f"pulsar+ssl://localhost:{self.tls_port}"

    @property
    def https_url(self) -> str:
        return f"https://localhost:{self.web_port_tls}"


class _Files:
    """The settings, and the files that they name. Both brokers read the settings below."""

    def __init__(self, folder: Path, settings: dict[str, str]) -> None:
        self.authority = Authority(folder)
        served = self.authority.issue("localhost", "127.0.0.1")
        key_file, password_file = folder / "secret.key", folder / "passwords"
        key_file.write_bytes(SECRET_KEY)
        password_file.write_text(f"worker:{PASSWORD_HASH}\n")
        self.tls_port, self.web_port_tls = free_ports(2)
        self.token = token_of("admin")
        self.settings = {
            "brokerServicePortTls": str(self.tls_port),
            "webServicePortTls": str(self.web_port_tls),
            "tlsCertificateFilePath": str(served.certificate),
            "tlsKeyFilePath": str(served.key),
            "tlsTrustCertsFilePath": str(self.authority.file),
            "authenticationEnabled": "true",
            "authenticationProviders": ",".join(PROVIDERS + name for name in ("Tls", "Token", "Basic")),
            "authenticationRefreshCheckSeconds": str(REFRESH_CHECK),
            "authorizationEnabled": "true",
            "tokenSecretKey": key_file.as_uri(),
            "basicAuthConf": password_file.as_uri(),
            "superUserRoles": "admin",
            "brokerClientAuthenticationPlugin": "org.apache.pulsar.client.impl.auth.AuthenticationToken",
            "brokerClientAuthenticationParameters": f"token:{self.token}",
            **settings,
        }

    def serving(self, port: int, admin: Admin) -> SecurePulsar:
        """Give the role `worker` permission to produce and consume in public/default."""
        admin.request(
            "POST", "/admin/v2/namespaces/public/default/permissions/worker", ["produce", "consume"]
        )
        return SecurePulsar(self.authority, port, self.tls_port, self.web_port_tls, admin)


@contextmanager
def real_pulsar(folder: Path, **settings: str) -> Iterator[SecurePulsar]:
    """Start a real Pulsar with files in this folder, and with further settings."""
    files = _Files(folder, settings)
    with RealPulsar(files.settings, token=files.token) as pulsar:
        yield files.serving(pulsar.port, pulsar.admin)


@contextmanager
def our_broker(folder: Path, **settings: str) -> Iterator[SecurePulsar]:
    """Start our broker with files in this folder and further settings, by the command and a file for a Java
    broker."""
    files = _Files(folder, settings)
    port, web_port = free_ports(2)
    conf = folder / "standalone.conf"
    addresses = {
        "brokerServicePort": str(port),
        "webServicePort": str(web_port),
        "advertisedAddress": "localhost",
    }
    conf.write_text(standalone_conf({**addresses, **files.settings}))
    command = [sys.executable, "-m", "pulsar_trio_command", "broker", "--conf", str(conf), "--json"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE)
    assert process.stdout is not None
    try:
        assert json.loads(process.stdout.readline())["port"] == port
        yield files.serving(port, Admin("127.0.0.1", web_port, files.token))
    finally:
        process.terminate()
        process.communicate(timeout=PATIENCE)
