"""`Access`: TLS and credentials of a query, as Spark carries them from the driver to the executors.

Files are read where a connection is made, so every executor needs them under the same name. Spark sends
passwords and tokens that are given as text to the executors; `spark.network.crypto.enabled` encrypts them on
their way. They are part of no `repr`, error or plan.
"""

from dataclasses import dataclass
from typing import Any

from pulsar_sansio import CredentialsFailed, InvalidConfiguration, Secret
from pulsar_security import TlsConfig, checked_token, read_token

from .carried_secret import CarriedSecret
from .oauth2 import OAuth2Options, discard_token, fetch_token


@dataclass(frozen=True, kw_only=True)
class Access:
    """The options `tls.…`, `auth.…` and `broker.hosts`, checked. `method`: None for no credentials."""

    trust: str | None = None
    certificate: str | None = None
    key: str | None = None
    key_password: CarriedSecret | None = None
    ciphers: str | None = None
    insecure_accept_any_certificate: bool = False
    insecure_accept_any_host: bool = False
    method: str | None = None
    token: CarriedSecret | None = None
    token_file: str | None = None
    user: str | None = None
    password: CarriedSecret | None = None
    oauth2: OAuth2Options | None = None
    broker_hosts: tuple[str, ...] | None = None

    def tls_config(self) -> TlsConfig:
        """Raises `InvalidConfiguration` for options that contradict each other."""
        return TlsConfig(
            trust=self.trust,
            certificate=self.certificate,
            key=self.key,
            key_password=None if self.key_password is None else self.key_password.reveal(),
            ciphers=self.ciphers,
            insecure_accept_any_certificate=self.insecure_accept_any_certificate,
            insecure_accept_any_host=self.insecure_accept_any_host,
        )

    def client_config(self) -> dict[str, Any]:
        """Return the part of `ClientConfig` that these options make."""
        method = "token" if self.method == "oauth2" else self.method
        return {"authentication_method": method, "broker_hosts": self.broker_hosts}

    def credentials(self) -> Secret:
        """Return the credentials of the method, for a new connection or because the broker wants new ones.

        A token's file is read anew. `fetch_token` asks an issuer of OAuth 2.0. Raises `CredentialsFailed`.
        """
        if self.method == "basic":
            assert self.user is not None
            assert self.password is not None
            return Secret(self.user.encode() + b":" + self.password.reveal().reveal())
        if self.method == "token":
            return self._read_token()
        if self.method == "oauth2":
            assert self.oauth2 is not None
            return fetch_token(self.oauth2)
        return Secret(b"")  # of the method "tls": the certificate is the identity

    def discard(self, credentials: Secret) -> None:
        """The broker refused these credentials, or wants new ones in their place: return them no more."""
        if self.oauth2 is not None:
            discard_token(self.oauth2, credentials)

    def _read_token(self) -> Secret:
        try:
            if self.token is not None:
                return checked_token(self.token.reveal())
            assert self.token_file is not None
            return read_token(self.token_file)
        except OSError as error:
            raise CredentialsFailed(f"auth.tokenFile {self.token_file!r}: {error.strerror}") from error
        except InvalidConfiguration as error:
            raise CredentialsFailed(f"auth.{'token' if self.token else 'tokenFile'}: {error}") from None
