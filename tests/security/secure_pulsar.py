"""A real Pulsar with TLS, tokens, passwords and permissions."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import time
from typing import Any

import jwt

from tests.real_pulsar import RealPulsar
from tests.real_pulsar.server import free_ports
from tests.security.certificates import Authority

SECRET_KEY = b"0123456789abcdef0123456789abcdef"
PASSWORD = "a password of the tests"
PASSWORD_HASH = "$apr1$saltsalt$.9jjW8F.ysBm9T0WvHzo70"
"""As `htpasswd` writes it (Apache's variant of MD5)."""

PROVIDERS = "org.apache.pulsar.broker.authentication.AuthenticationProvider"
REFRESH_CHECK = 1
"""Seconds between the broker's looks at expired credentials."""


def token_of(role: str, seconds: float | None = None, key: bytes = SECRET_KEY) -> str:
    """A token for a role, which expires after so many seconds."""
    claims: dict[str, Any] = {"sub": role}
    if seconds is not None:
        claims["exp"] = time() + seconds
    return jwt.encode(claims, key, algorithm="HS256")


@dataclass(frozen=True, slots=True)
class SecurePulsar:
    """One broker; `authority` issued its certificate and accepts the certificates of clients."""

    pulsar: RealPulsar
    authority: Authority
    tls_port: int
    web_port_tls: int

    @property
    def url(self) -> str:
        return self.pulsar.url

    @property
    def tls_url(self) -> str:
        return f"pulsar+ssl://localhost:{self.tls_port}"

    @property
    def https_url(self) -> str:
        return f"https://localhost:{self.web_port_tls}"


@contextmanager
def secure_pulsar(folder: Path) -> Iterator[SecurePulsar]:
    """Start the broker in this folder. Role `worker` may produce and consume in public/default."""
    authority = Authority(folder)
    served = authority.issue("localhost", "127.0.0.1")
    key_file, password_file = folder / "secret.key", folder / "passwords"
    key_file.write_bytes(SECRET_KEY)
    password_file.write_text(f"worker:{PASSWORD_HASH}\n")
    tls_port, web_port_tls = free_ports(2)
    token = token_of("admin")
    settings = {
        "brokerServicePortTls": str(tls_port),
        "webServicePortTls": str(web_port_tls),
        "tlsCertificateFilePath": str(served.certificate),
        "tlsKeyFilePath": str(served.key),
        "tlsTrustCertsFilePath": str(authority.file),
        "authenticationEnabled": "true",
        "authenticationProviders": ",".join(PROVIDERS + name for name in ("Tls", "Token", "Basic")),
        "authenticationRefreshCheckSeconds": str(REFRESH_CHECK),
        "authorizationEnabled": "true",
        "tokenSecretKey": key_file.as_uri(),
        "superUserRoles": "admin",
        "brokerClientAuthenticationPlugin": "org.apache.pulsar.client.impl.auth.AuthenticationToken",
        "brokerClientAuthenticationParameters": f"token:{token}",
    }
    properties = {"pulsar.auth.basic.conf": str(password_file)}
    with RealPulsar(settings, token=token, properties=properties) as pulsar:
        for role in ("worker",):
            pulsar.admin.request(
                "POST", f"/admin/v2/namespaces/public/default/permissions/{role}", ["produce", "consume"]
            )
        yield SecurePulsar(pulsar, authority, tls_port, web_port_tls)
