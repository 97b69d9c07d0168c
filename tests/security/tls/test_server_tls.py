"""`ServerTls`: the options of a broker, and the context that is made of them."""

import ssl
from pathlib import Path
from typing import Any

import pytest

from pulsar_sansio import InvalidConfiguration, Secret
from pulsar_security import ServerTls, TlsConfig
from tests.canary import CANARY
from tests.security.certificates import Authority

from .memory import handshake


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"certificate": 7}, "certificate: a path, not int"),
        ({"certificate": "-----BEGIN canary-secret"}, "certificate: the path of a file, no PEM text"),
        ({"key": "-----BEGIN canary-secret"}, "key: the path of a file, no PEM text"),
        ({"trust": b"t"}, "trust: a path, not bytes"),
        (
            {"trust": "t", "require_client_certificate": "no"},
            "require_client_certificate: True or False, not 'no'",
        ),
        ({"require_client_certificate": True}, "require_client_certificate needs trust"),
    ],
)
def test_options_that_are_refused(options: dict[str, Any], text: str) -> None:
    with pytest.raises(InvalidConfiguration) as caught:
        ServerTls(**{"certificate": "c", **options})
    assert str(caught.value) == f"tls: {text}"


def test_a_password_is_in_no_text() -> None:
    tls = ServerTls("a", "b", key_password=CANARY)
    assert CANARY not in repr(tls)
    assert tls.key_password == Secret(CANARY)


def test_the_files_are_those_that_the_options_name() -> None:
    assert ServerTls("c").files() == (Path("c"),)
    assert ServerTls("c", "k", trust=Path("t")).files() == (Path("c"), Path("k"), Path("t"))
    assert ServerTls("c", trust="-----BEGIN").files() == (Path("c"),)


@pytest.mark.parametrize(
    ("trusts", "required", "verified"),
    [
        (False, False, ssl.CERT_NONE),
        (True, False, ssl.CERT_OPTIONAL),
        (True, True, ssl.CERT_REQUIRED),
    ],
)
def test_a_broker_asks_for_certificates_of_the_authorities_that_it_trusts(
    tmp_path: Path, trusts: bool, required: bool, verified: ssl.VerifyMode
) -> None:
    """A client that shows the certificate of a foreign authority is refused where the broker asks."""
    authority = Authority(tmp_path)
    server = authority.server(
        trust=authority.text if trusts else None, require_client_certificate=required
    ).make_context()
    assert server.verify_mode is verified
    foreign = Authority(tmp_path, "foreign").issue()
    for files, served in ((authority.issue(), True), (foreign, not trusts), (None, not required)):
        own = (files.certificate, files.key) if files else ()
        client = TlsConfig(authority.file, *own).make_context()
        if served:
            handshake(client, server)
            continue
        with pytest.raises(ssl.SSLError):
            handshake(client, server)


def test_the_context_is_of_tls_1_2_with_the_ciphers_of_the_options(tmp_path: Path) -> None:
    files = Authority(tmp_path).issue()
    context = ServerTls(files.certificate, files.key, ciphers="ECDHE-RSA-AES256-GCM-SHA384").make_context()
    assert context.minimum_version is ssl.TLSVersion.TLSv1_2
    assert context.options & ssl.OP_NO_RENEGOTIATION
    older = [each["name"] for each in context.get_ciphers() if each["protocol"] != "TLSv1.3"]
    assert older == ["ECDHE-RSA-AES256-GCM-SHA384"]
