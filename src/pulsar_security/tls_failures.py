"""The typed error for each way in which a TLS handshake fails."""

import ssl

from pulsar_sansio import (
    CertificateAuthorityUnknown,
    CertificateExpired,
    CertificateNameMismatch,
    CertificateSelfSigned,
    ClientCertificateRefused,
    TlsError,
    TlsHandshakeEnded,
    TlsProtocolMismatch,
)

_VERIFY_CODES: dict[int, tuple[type[TlsError], str]] = {
    # X509_V_ERR_… of OpenSSL
    2: (CertificateAuthorityUnknown, "add the authority to the trust store (tls.trust)"),
    9: (CertificateExpired, "it is not valid yet: check the clocks of both machines"),
    10: (CertificateExpired, "have it renewed"),
    18: (CertificateSelfSigned, "trust it by itself (tls.trust), or have it issued by an authority"),
    19: (CertificateAuthorityUnknown, "add the root of its chain to the trust store (tls.trust)"),
    20: (CertificateAuthorityUnknown, "add its authority to the trust store (tls.trust)"),
    21: (CertificateAuthorityUnknown, "the peer must send its whole chain"),
    62: (CertificateNameMismatch, "connect to a name that it is for, or have it issued for this one"),
    64: (CertificateNameMismatch, "connect to a name that it is for, or have it issued for this address"),
}

_CLIENT_CERTIFICATE_WORDS = (
    "CERTIFICATE_REQUIRED",
    "ALERT_BAD_CERTIFICATE",
    "ALERT_CERTIFICATE_EXPIRED",
    "ALERT_CERTIFICATE_REVOKED",
    "ALERT_CERTIFICATE_UNKNOWN",
    "ALERT_INTERNAL_ERROR",  # the Java broker's for a client certificate that it cannot verify
    "ALERT_UNKNOWN_CA",
    "ALERT_UNSUPPORTED_CERTIFICATE",
    "PEER_DID_NOT_RETURN_A_CERTIFICATE",
)

_MISMATCH_WORDS = (
    "WRONG_VERSION_NUMBER",
    "UNSUPPORTED_PROTOCOL",
    "PROTOCOL_VERSION",
    "HTTP_REQUEST",
    "HTTPS_PROXY_REQUEST",
    "UNKNOWN_PROTOCOL",
    "RECORD_LAYER_FAILURE",
    "NO_SHARED_CIPHER",
    "HANDSHAKE_FAILURE",
)


def tls_error(error: Exception, peer: str, server_name: str | None) -> TlsError:
    """Return the typed error for an exception of `ssl`. Its text names the peer and what to do.

    `peer`: the address. `server_name`: the name that the peer's certificate had to be for; empty when the
    handshake was finished already, and None in a handshake on the side of the server.
    """
    client = f"the client at {peer}" if server_name is None else None
    if isinstance(error, ssl.SSLCertVerificationError):
        kind, advice = _VERIFY_CODES.get(error.verify_code, (TlsError, "have it issued anew"))
        what = error.verify_message.rstrip(".")
        whose = client or f"{peer} for {server_name!r}"
        return kind(f"the certificate of {whose} is refused: {what} ({advice})")
    if isinstance(error, (ssl.SSLEOFError, ssl.SSLZeroReturnError)):
        hint = " (a port for pulsar:// does that; pulsar+ssl:// is on 6651 by default)" if not client else ""
        return TlsHandshakeEnded(f"{client or peer} ended the connection during the TLS handshake{hint}")
    reason = getattr(error, "reason", None) or str(error)
    if any(words in reason for words in _CLIENT_CERTIFICATE_WORDS):
        return _about_certificates(reason, peer, client)  # with TLS 1.3 they come after the handshake, too
    if server_name != "" and any(words in reason for words in _MISMATCH_WORDS):
        return TlsProtocolMismatch(
            f"{client or peer} speaks no TLS, or no version and cipher of TLS that this side allows: "
            f"{reason} (pulsar+ssl:// is on 6651 by default, pulsar:// on 6650)"
        )
    return TlsError(f"TLS with {client or peer} failed: {reason}")


def _about_certificates(reason: str, peer: str, client: str | None) -> TlsError:
    """Return the error for a certificate that is missing, or that the other side has refused by an alert."""
    if client is None:
        return ClientCertificateRefused(
            f"{peer} does not accept the certificate of this client, or wants one: {reason} "
            "(give tls.certificate and tls.key of an authority that the peer trusts)"
        )
    if "PEER_DID_NOT_RETURN_A_CERTIFICATE" in reason:
        return ClientCertificateRefused(
            f"{client} shows no certificate, and this side requires one (of an authority in tls.trust): "
            f"{reason}"
        )
    return TlsError(f"{client} does not accept the certificate of this side: {reason}")
