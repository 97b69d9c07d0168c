"""The typed error for each exception of `ssl`, and the text that tells what to do."""

import ssl
from pathlib import Path

import pytest

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
from pulsar_security import ServerTls, TlsConfig
from pulsar_security.tls_failures import tls_error
from tests.security.certificates import Authority

from .memory import handshake

PEER = "broker:6651"


def unverified(code: int, message: str = "the reason.") -> ssl.SSLCertVerificationError:
    """Return the exception for a certificate that OpenSSL refuses with this code."""
    error = ssl.SSLCertVerificationError()
    error.verify_code, error.verify_message = code, message
    return error


def failed(reason: str) -> ssl.SSLError:
    """Return the exception of OpenSSL for this reason."""
    error = ssl.SSLError()
    error.reason = reason
    return error


@pytest.mark.parametrize(
    ("code", "kind", "advice"),
    [
        (2, CertificateAuthorityUnknown, "add the authority to the trust store (tls.trust)"),
        (9, CertificateExpired, "it is not valid yet: check the clocks of both machines"),
        (10, CertificateExpired, "have it renewed"),
        (18, CertificateSelfSigned, "trust it by itself (tls.trust), or have it issued by an authority"),
        (19, CertificateAuthorityUnknown, "add the root of its chain to the trust store (tls.trust)"),
        (20, CertificateAuthorityUnknown, "add its authority to the trust store (tls.trust)"),
        (21, CertificateAuthorityUnknown, "the peer must send its whole chain"),
        (62, CertificateNameMismatch, "connect to a name that it is for, or have it issued for this one"),
        (64, CertificateNameMismatch, "connect to a name that it is for, or have it issued for this address"),
        (23, TlsError, "have it issued anew"),
    ],
)
def test_a_certificate_that_is_refused(code: int, kind: type[TlsError], advice: str) -> None:
    error = tls_error(unverified(code), PEER, "b.example")
    assert type(error) is kind
    expected = f"the certificate of broker:6651 for 'b.example' is refused: the reason ({advice})"
    assert str(error) == expected


def test_the_certificate_of_a_client_has_no_name_to_be_verified() -> None:
    error = tls_error(unverified(10), PEER, None)
    expected = "the certificate of the client at broker:6651 is refused: the reason (have it renewed)"
    assert str(error) == expected


@pytest.mark.parametrize("ended", [ssl.SSLEOFError(), ssl.SSLZeroReturnError()])
def test_a_peer_that_ends_the_connection(ended: ssl.SSLError) -> None:
    """Only a client can have taken the wrong port."""
    error = tls_error(ended, PEER, "b.example")
    assert type(error) is TlsHandshakeEnded
    assert str(error) == (
        "broker:6651 ended the connection during the TLS handshake "
        "(a port for pulsar:// does that; pulsar+ssl:// is on 6651 by default)"
    )
    error = tls_error(ended, PEER, None)
    assert type(error) is TlsHandshakeEnded
    assert str(error) == "the client at broker:6651 ended the connection during the TLS handshake"


@pytest.mark.parametrize(
    "reason",
    [
        "TLSV13_ALERT_CERTIFICATE_REQUIRED",
        "SSLV3_ALERT_BAD_CERTIFICATE",
        "SSLV3_ALERT_CERTIFICATE_EXPIRED",
        "SSLV3_ALERT_CERTIFICATE_REVOKED",
        "SSLV3_ALERT_CERTIFICATE_UNKNOWN",
        "TLSV1_ALERT_INTERNAL_ERROR",
        "TLSV1_ALERT_UNKNOWN_CA",
        "SSLV3_ALERT_UNSUPPORTED_CERTIFICATE",
    ],
)
def test_an_alert_about_the_certificate_of_this_side(reason: str) -> None:
    """A broker that gets the alert has asked for nothing, so its error has no kind of its own."""
    error = tls_error(failed(reason), PEER, "")
    assert type(error) is ClientCertificateRefused
    assert str(error) == (
        f"broker:6651 does not accept the certificate of this client, or wants one: {reason} "
        "(give tls.certificate and tls.key of an authority that the peer trusts)"
    )
    error = tls_error(failed(reason), PEER, None)
    assert type(error) is TlsError
    expected = f"the client at broker:6651 does not accept the certificate of this side: {reason}"
    assert str(error) == expected


@pytest.mark.parametrize(
    "reason",
    [
        "WRONG_VERSION_NUMBER",
        "UNSUPPORTED_PROTOCOL",
        "TLSV1_ALERT_PROTOCOL_VERSION",
        "HTTP_REQUEST",
        "HTTPS_PROXY_REQUEST",
        "UNKNOWN_PROTOCOL",
        "RECORD_LAYER_FAILURE",
        "NO_SHARED_CIPHER",
        "SSLV3_ALERT_HANDSHAKE_FAILURE",
    ],
)
@pytest.mark.parametrize(
    ("server_name", "whose"), [("b.example", "broker:6651"), (None, "the client at broker:6651")]
)
def test_a_peer_that_speaks_no_tls_of_this_side(reason: str, server_name: str | None, whose: str) -> None:
    error = tls_error(failed(reason), PEER, server_name)
    assert type(error) is TlsProtocolMismatch
    assert str(error) == (
        f"{whose} speaks no TLS, or no version and cipher of TLS that this side allows: "
        f"{reason} (pulsar+ssl:// is on 6651 by default, pulsar:// on 6650)"
    )


@pytest.mark.parametrize(
    ("cause", "reason"),
    [(failed("BAD_EXTENSION"), "BAD_EXTENSION"), (OSError("the link is down"), "the link is down")],
)
def test_any_other_failure_keeps_its_reason(cause: Exception, reason: str) -> None:
    error = tls_error(cause, PEER, "b.example")
    assert type(error) is TlsError
    assert str(error) == f"TLS with broker:6651 failed: {reason}"
    assert str(tls_error(cause, PEER, None)) == f"TLS with the client at broker:6651 failed: {reason}"


def test_a_peer_that_has_finished_the_handshake_speaks_tls() -> None:
    """The peer is no other program on a wrong port: it sends garbage, or ends the connection by an alert."""
    for reason in ("WRONG_VERSION_NUMBER", "SSLV3_ALERT_HANDSHAKE_FAILURE"):
        error = tls_error(failed(reason), PEER, "")
        assert type(error) is TlsError
        assert str(error) == f"TLS with broker:6651 failed: {reason}"


def test_a_client_that_shows_no_certificate(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    server = authority.server(trust=authority.file, require_client_certificate=True)
    with pytest.raises(ssl.SSLError) as caught:
        handshake(TlsConfig(trust=authority.file).make_context(), server.make_context())
    error = tls_error(caught.value, PEER, None)
    assert type(error) is ClientCertificateRefused
    assert str(error) == (
        "the client at broker:6651 shows no certificate, and this side requires one "
        "(of an authority in tls.trust): PEER_DID_NOT_RETURN_A_CERTIFICATE"
    )


def test_contexts_without_a_common_version(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    server: ServerTls = authority.server()
    old, new = TlsConfig(trust=authority.file).make_context(), server.make_context()
    old.maximum_version, new.minimum_version = ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3
    with pytest.raises(ssl.SSLError) as caught:
        handshake(old, new)
    assert type(tls_error(caught.value, PEER, None)) is TlsProtocolMismatch
