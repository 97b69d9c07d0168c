"""`TlsConfig`: the options of a client, the context that is made of them, and the faults of its files."""

import ssl
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
)

from pulsar_sansio import InvalidConfiguration, Secret
from pulsar_security import TlsConfig, common_name
from tests.canary import CANARY
from tests.security.certificates import Authority, Files

from .memory import handshake


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


def locked(files: Files, password: str) -> Files:
    """Encrypt the private key with a password."""
    key = load_pem_private_key(files.key.read_bytes(), None)
    encryption = BestAvailableEncryption(password.encode())
    files.key.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption))
    return files


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"trust": 7}, "trust: a path, not int"),
        ({"certificate": b"c"}, "certificate: a path, not bytes"),
        ({"certificate": "c", "key": 7}, "key: a path, not int"),
        ({"certificate": "-----BEGIN canary-secret"}, "certificate: the path of a file, no PEM text"),
        (
            {"certificate": "c", "key": "\n-----BEGIN canary-secret"},
            "key: the path of a file, no PEM text",
        ),
        ({"trust": "canary-secret\0"}, "trust: a path has no NUL"),
        (
            {"insecure_accept_any_certificate": "false"},
            "insecure_accept_any_certificate: True or False, not 'false'",
        ),
        ({"insecure_accept_any_host": 0}, "insecure_accept_any_host: True or False, not 0"),
        ({"key": "k"}, "key needs certificate"),
        ({"key_password": CANARY}, "key_password needs certificate"),
    ],
)
def test_options_that_are_refused(options: dict[str, Any], text: str) -> None:
    with pytest.raises(InvalidConfiguration) as caught:
        TlsConfig(**options)
    assert str(caught.value) == f"tls: {text}"
    assert CANARY not in str(caught.value)


def test_a_context_of_the_application_is_used_as_it_is_and_excludes_every_other_option() -> None:
    context = ssl.create_default_context()
    assert TlsConfig(context=context).make_context() is context
    with pytest.raises(InvalidConfiguration, match="excludes every other option, found trust, ciphers"):
        TlsConfig(context=context, trust="a", ciphers="HIGH")
    with pytest.raises(InvalidConfiguration, match="found insecure_accept_any_host"):
        TlsConfig(context=context, insecure_accept_any_host=True)


def test_a_password_is_in_no_text() -> None:
    tls = TlsConfig(certificate="a", key="b", key_password=CANARY)
    assert CANARY not in repr(tls)
    assert tls.key_password == Secret(CANARY)


def test_the_files_are_those_that_the_options_name() -> None:
    tls = TlsConfig(trust="t", certificate="c", key=Path("k"))
    assert tls.files() == (Path("t"), Path("c"), Path("k"))
    assert TlsConfig(trust=" -----BEGIN", certificate="c").files() == (Path("c"),)
    assert TlsConfig().files() == ()


def test_the_context_is_of_tls_1_2_without_renegotiation() -> None:
    """The application may weaken verification only by the options whose names tell so."""
    context = TlsConfig(ciphers="ECDHE-RSA-AES256-GCM-SHA384").make_context()
    assert context.minimum_version is ssl.TLSVersion.TLSv1_2
    assert context.options & ssl.OP_NO_RENEGOTIATION
    older = [each["name"] for each in context.get_ciphers() if each["protocol"] != "TLSv1.3"]
    assert older == ["ECDHE-RSA-AES256-GCM-SHA384"]


@pytest.mark.parametrize(
    ("options", "verified", "named"),
    [
        ({}, ssl.CERT_REQUIRED, True),
        ({"insecure_accept_any_host": True}, ssl.CERT_REQUIRED, False),
        ({"insecure_accept_any_certificate": True}, ssl.CERT_NONE, False),
    ],
)
def test_what_is_verified(options: dict[str, bool], verified: ssl.VerifyMode, named: bool) -> None:
    context = TlsConfig(**options).make_context()  # type: ignore[arg-type]
    assert context.verify_mode is verified
    assert context.check_hostname is named


def test_trust_is_of_the_system_where_none_is_named(
    authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(authority.file))
    handshake(TlsConfig().make_context(), authority.server().make_context())


@pytest.mark.parametrize("form", ["path", "name", "text"])
def test_trust_is_a_file_or_pem_text(authority: Authority, tmp_path: Path, form: str) -> None:
    """Only the authority that it holds is trusted."""
    name = str(authority.file)
    trusts: dict[str, str | Path] = {"path": authority.file, "name": name, "text": f"\n{authority.text}"}
    trust = trusts[form]
    context = TlsConfig(trust=trust).make_context()
    handshake(context, authority.server().make_context())
    with pytest.raises(ssl.SSLCertVerificationError):
        handshake(context, Authority(tmp_path, "other").server().make_context())


def test_trust_in_a_folder_is_looked_up_in_the_handshake(authority: Authority, tmp_path: Path) -> None:
    """A folder that is empty trusts no authority."""
    context = TlsConfig(trust=tmp_path).make_context()
    with pytest.raises(ssl.SSLCertVerificationError):
        handshake(context, authority.server().make_context())


@pytest.mark.parametrize("password", [CANARY, Secret(CANARY)])
def test_the_client_shows_its_certificate_whose_key_a_password_opens(
    authority: Authority, password: str | Secret
) -> None:
    own = locked(authority.issue(common_name="worker"), CANARY)
    tls = TlsConfig(authority.file, own.certificate, own.key, key_password=password)
    server = authority.server(trust=authority.file, require_client_certificate=True)
    _, far = handshake(tls.make_context(), server.make_context())
    assert common_name(far.getpeercert()) == "worker"


def test_a_key_may_be_in_the_file_of_the_certificate(authority: Authority) -> None:
    own = authority.issue(common_name="worker")
    both = own.certificate.with_suffix(".both.key")
    both.write_bytes(own.key.read_bytes() + own.certificate.read_bytes())
    server = authority.server(trust=authority.file, require_client_certificate=True)
    tls = TlsConfig(authority.file, both)
    _, far = handshake(tls.make_context(), server.make_context())
    assert common_name(far.getpeercert()) == "worker"


def test_a_key_that_its_password_does_not_open(authority: Authority) -> None:
    """Without a password OpenSSL would ask for it at the terminal."""
    own = locked(authority.issue(), CANARY)
    for password, text in (
        (None, f"tls: the key {str(own.key)!r} needs key_password"),
        (
            f"not {CANARY}",
            f"tls: certificate and key {str(own.certificate)!r} and {str(own.key)!r}: "
            "no PEM certificate and key, or a wrong key_password",
        ),
        (CANARY * 1000, "tls: key_password: password cannot be longer than 1024 bytes"),
    ):
        with pytest.raises(InvalidConfiguration) as caught:
            TlsConfig(None, own.certificate, own.key, password).make_context()
        assert str(caught.value) == text


def test_the_key_that_needs_a_password_may_be_in_the_file_of_the_certificate(authority: Authority) -> None:
    own = locked(authority.issue(), CANARY)
    both = own.key
    both.write_bytes(own.key.read_bytes() + own.certificate.read_bytes())
    with pytest.raises(InvalidConfiguration) as caught:
        TlsConfig(certificate=both).make_context()
    assert str(caught.value) == f"tls: the key {str(both)!r} needs key_password"


def test_a_file_that_cannot_be_used_is_named(authority: Authority, tmp_path: Path) -> None:
    nothing, empty = tmp_path / "nothing.pem", tmp_path / "empty.pem"
    empty.write_text("")
    own, other = authority.issue(), authority.issue()
    for tls, text in (
        (TlsConfig(trust=nothing), f"tls: trust {str(nothing)!r}: No such file or directory"),
        (TlsConfig(trust=empty), f"tls: trust: no certificate in {str(empty)!r}: "),
        (TlsConfig(trust="-----BEGIN canary-secret"), "tls: trust: no certificate in its text: "),
        (TlsConfig(certificate=nothing), f"tls: certificate or key {str(nothing)!r}: No such file"),
        (
            TlsConfig(certificate=own.certificate, key=nothing),
            f"tls: certificate or key {str(own.certificate)!r} or {str(nothing)!r}: No such file",
        ),
        (TlsConfig(certificate=authority.file), f"tls: certificate and key {str(authority.file)!r}: "),
        (
            TlsConfig(certificate=own.certificate, key=other.key),
            f"tls: certificate and key {str(own.certificate)!r} and {str(other.key)!r}: KEY_VALUES_MISMATCH",
        ),
        (TlsConfig(ciphers="NONSENSE"), "tls: OpenSSL knows none of the ciphers 'NONSENSE'"),
        (TlsConfig(ciphers="HIGH\0"), "tls: OpenSSL knows none of the ciphers 'HIGH\\x00'"),
    ):
        with pytest.raises(InvalidConfiguration) as caught:
            tls.make_context()
        assert str(caught.value).startswith(text)
        assert CANARY not in str(caught.value)
