"""The table of cases: what a client is given, which broker it meets, and whether the broker lets it in.

Every direction runs this table. Each case has a topic of its own, so a refused case leaves no topic behind.
"""

from dataclasses import dataclass

from pulsar_trio import (
    AuthenticationError,
    AuthorizationError,
    CertificateAuthorityUnknown,
    CertificateExpired,
    CertificateNameMismatch,
    CertificateSelfSigned,
    ClientCertificateRefused,
    CredentialsFailed,
    PulsarError,
    TimedOut,
    TlsProtocolMismatch,
)


@dataclass(frozen=True, slots=True)
class Case:
    """One client and one broker.

    `broker`: the address in `site.py`. `trust`: the authority that the client trusts; None for the system's.
    `certificate`: the client's own. `verify`: "all", "chain" (without the name) or "nothing" of the broker's
    certificate. `credential`: which token, password or client secret. `error`, `words`: what our client
    raises; None where the broker lets the client in. `pause`: milliseconds between two messages.
    """

    name: str
    broker: str = "tls"
    trust: str | None = "authority"
    certificate: str | None = None
    verify: str = "all"
    method: str = "token"
    credential: str = "good"
    error: type[PulsarError] | None = None
    words: str = "."
    messages: int = 20
    pause: int = 0


MANY, PAUSE = 120, 50
"""Six seconds of messages, in which tokens of two seconds expire."""

CASES = [
    # The broker lets the client in.
    Case("a token without TLS", "plain"),
    Case("a password without TLS", "plain", method="basic"),
    Case("OAuth 2.0 without TLS", "plain", method="oauth2"),
    Case("a token"),
    Case("a password", method="basic"),
    Case("a client certificate", certificate="worker", method="tls"),
    Case("OAuth 2.0", method="oauth2"),
    Case("a token and a certificate", certificate="worker"),
    Case("a token and the certificate of a stranger", certificate="stranger"),
    Case("a required certificate and a token", "certificate required", certificate="worker"),
    Case("a required certificate alone", "certificate required", certificate="worker", method="tls"),
    Case("a token by HTTPS", "https"),
    Case("a password by HTTPS", "https", method="basic"),
    Case("a client certificate by HTTPS", "https", certificate="worker", method="tls"),
    Case("another host, name not verified", "another host", verify="chain"),
    Case("an unknown authority, nothing verified", trust=None, verify="nothing"),
    Case("tokens that expire without TLS", "plain", credential="expiring", messages=MANY, pause=PAUSE),
    Case("tokens that expire", credential="expiring", messages=MANY, pause=PAUSE),
    Case(
        "OAuth 2.0 that expires",
        method="oauth2",
        credential="expiring",
        messages=MANY,
        pause=PAUSE,
    ),
    # The client refuses the broker's certificate.
    Case("the system's authorities", trust=None, error=CertificateAuthorityUnknown),
    Case("another authority", trust="foreign", error=CertificateAuthorityUnknown),
    Case("another host", "another host", error=CertificateNameMismatch, words="127.0.0.1"),
    Case("an expired certificate", "expired", error=CertificateExpired),
    Case("a certificate not valid yet", "not valid yet", error=CertificateExpired),
    Case("a self-signed certificate", "self-signed", error=CertificateSelfSigned),
    # The broker refuses the client's certificate.
    Case("a required certificate is missing", "certificate required", error=ClientCertificateRefused),
    Case(
        "a required certificate of another authority",
        "certificate required",
        certificate="foreign",
        error=ClientCertificateRefused,
    ),
    Case(
        "a certificate of another authority",
        certificate="foreign",
        method="tls",
        error=ClientCertificateRefused,
    ),
    Case(
        "an old client certificate",
        certificate="expired",
        method="tls",
        error=ClientCertificateRefused,
    ),
    # One side speaks TLS, and the other does not.
    Case("no TLS at a port with TLS", "no TLS to TLS", error=TlsProtocolMismatch),
    Case("TLS at a port without TLS", "TLS to no TLS", error=TimedOut),
    # The broker refuses the credentials.
    Case("no credentials", method="none", error=AuthenticationError),
    Case("no credentials by HTTPS", "https", method="none", error=AuthenticationError),
    Case("a token of another key", credential="another key", error=AuthenticationError),
    Case("an expired token", credential="expired", error=AuthenticationError),
    Case("no token at all", credential="garbage", error=AuthenticationError),
    Case("a token of another key by HTTPS", "https", credential="another key", error=AuthenticationError),
    Case("a wrong password", method="basic", credential="wrong", error=AuthenticationError),
    Case("an unknown user", method="basic", credential="unknown", error=AuthenticationError),
    Case("a wrong client secret", method="oauth2", credential="wrong", error=CredentialsFailed),
    Case("a token of another issuer", method="oauth2", credential="another key", error=AuthenticationError),
    Case(
        "a role without permission", credential="stranger", error=AuthorizationError, words="not authorized"
    ),
    Case("a certificate without permission", certificate="stranger", method="tls", error=AuthorizationError),
]
