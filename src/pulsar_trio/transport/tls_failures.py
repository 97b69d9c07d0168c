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

    `peer`: the address. `server_name`: the name that the certificate had to be for; None or empty when the
    certificate was verified already.
    """
    if isinstance(error, ssl.SSLCertVerificationError):
        kind, advice = _VERIFY_CODES.get(error.verify_code, (TlsError, "have it issued anew"))
        what = error.verify_message.rstrip(".")
        return kind(f"the certificate of {peer} for {server_name!r} is refused: {what} ({advice})")
    if isinstance(error, (ssl.SSLEOFError, ssl.SSLZeroReturnError)):
        return TlsHandshakeEnded(
            f"{peer} ended the connection during the TLS handshake (a port for pulsar:// does that; "
            "pulsar+ssl:// is on 6651 by default)"
        )
    reason = getattr(error, "reason", None) or str(error)
    if any(words in reason for words in _CLIENT_CERTIFICATE_WORDS):
        return ClientCertificateRefused(
            f"{peer} does not accept the certificate of this client, or wants one: {reason} "
            "(give tls.certificate and tls.key of an authority that the peer trusts)"
        )
    if any(words in reason for words in _MISMATCH_WORDS):
        return TlsProtocolMismatch(
            f"{peer} speaks no TLS, or no version and cipher of TLS that this side allows: {reason} "
            "(pulsar+ssl:// is on 6651 by default, pulsar:// on 6650)"
        )
    return TlsError(f"TLS with {peer} failed: {reason}")
