"""The values that `TlsConfig` and `ServerTls` refuse, and the secrets that no text or pickle of them has."""

import pickle
from collections.abc import Callable
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
)

from pulsar_trio import InvalidConfiguration, ServerTls, TlsConfig
from tests.canary import CANARY
from tests.security.certificates import Authority

PRIVATE_KEY = f"-----BEGIN PRIVATE KEY-----\n{CANARY}\n-----END PRIVATE KEY-----\n"


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: TlsConfig(certificate="a", key=PRIVATE_KEY), "key: the path of a file, no PEM text"),
        (lambda: TlsConfig(certificate=PRIVATE_KEY), "certificate: the path of a file, no PEM text"),
        (lambda: ServerTls(PRIVATE_KEY), "certificate: the path of a file, no PEM text"),
        (lambda: ServerTls("a", PRIVATE_KEY), "key: the path of a file, no PEM text"),
        (lambda: TlsConfig(trust=b"a.pem"), "trust: a path, not bytes"),  # type: ignore[arg-type]
        (lambda: TlsConfig(trust="a\0b"), "trust: a path has no NUL"),
        (lambda: ServerTls("a\0b"), "certificate: a path has no NUL"),
        (
            lambda: TlsConfig(insecure_accept_any_certificate="false"),  # type: ignore[arg-type]
            "insecure_accept_any_certificate: True or False, not 'false'",
        ),
        (
            lambda: TlsConfig(insecure_accept_any_host="no"),  # type: ignore[arg-type]
            "insecure_accept_any_host: True or False, not 'no'",
        ),
        (
            lambda: ServerTls("a", trust="b", require_client_certificate="no"),  # type: ignore[arg-type]
            "require_client_certificate: True or False, not 'no'",
        ),
        (lambda: TlsConfig(key_password=7), "a secret is text or bytes"),  # type: ignore[arg-type]
        (lambda: TlsConfig(ciphers="a\0b").make_context(), "ciphers"),
    ],
)
def test_a_wrong_value_is_refused_without_its_secret(make: Callable[[], object], words: str) -> None:
    """A text such as "false" is true to Python: it would turn the verification off."""
    with pytest.raises(InvalidConfiguration, match=words) as caught:
        make()
    assert CANARY not in str(caught.value)


def test_a_password_that_openssl_cannot_take(tmp_path: Path) -> None:
    files = Authority(tmp_path).issue()
    key = load_pem_private_key(files.key.read_bytes(), None)
    locked = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"password"))
    files.key.write_bytes(locked)
    with pytest.raises(InvalidConfiguration, match="key_password: "):
        TlsConfig(certificate=files.certificate, key=files.key, key_password=CANARY * 100).make_context()


@pytest.mark.parametrize(
    "options",
    [TlsConfig(certificate="a", key_password=CANARY), ServerTls("a", key_password=CANARY)],
    ids=["client", "server"],
)
def test_a_password_is_in_no_pickle(options: object) -> None:
    """INV-X1"""
    with pytest.raises(TypeError, match="cannot be pickled"):
        pickle.dumps(options)
