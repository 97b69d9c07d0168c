"""Files of keys and passwords that change while the broker uses them."""

import os
from pathlib import Path
from typing import Any

import jwt
import pytest

from pulsar_sansio import AuthenticationError, InvalidConfiguration
from pulsar_trio import AuthenticationProvider, HtpasswdFile, TokenProvider
from pulsar_trio.security import provider_file

ADA = "ada:$apr1$12345678$XsuVNBMt1BhIqqVcUl6NI1\n"
"""The user ada with the password p."""

EVE = ADA.replace("ada", "eve")


def accepts(provider: AuthenticationProvider, data: bytes) -> bool:
    try:
        provider.authenticate(data, None)
    except AuthenticationError:
        return False
    return True


def signed(key: bytes) -> bytes:
    return jwt.encode({"sub": "ada"}, key, algorithm="HS256").encode()


def test_a_user_who_is_added_or_removed_counts_at_once(tmp_path: Path) -> None:
    file = tmp_path / "htpasswd"
    file.write_text(ADA)
    provider = HtpasswdFile(file)
    assert provider.authenticate(b"ada:p", None).role == "ada"
    assert not accepts(provider, b"eve:p")
    file.write_text(EVE + "# and another size\n")
    assert not accepts(provider, b"ada:p")
    assert provider.authenticate(b"eve:p", None).role == "eve"


def test_a_token_of_the_key_before_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "secret.key"
    file.write_bytes(b"a" * 32)
    provider = TokenProvider(secret_key=file)
    assert accepts(provider, signed(b"a" * 32))
    file.write_bytes(b"b" * 64)
    assert not accepts(provider, signed(b"a" * 32))
    assert accepts(provider, signed(b"b" * 64))
    assert TokenProvider(secret_key=file).algorithms == ("HS256", "HS384", "HS512")


def test_a_changed_file_that_cannot_be_used_refuses_all_until_it_is_mended(tmp_path: Path) -> None:
    """An administrator who removes a user must not find that user accepted because of a slip."""
    file = tmp_path / "htpasswd"
    file.write_text(ADA)
    provider = HtpasswdFile(file)
    file.write_text("no colon here")
    for _ in range(2):
        with pytest.raises(AuthenticationError, match=r"has changed and cannot be used: .* line 1 is not"):
            provider.authenticate(b"ada:p", None)
    file.unlink()
    with pytest.raises(AuthenticationError, match="No such file"):
        provider.authenticate(b"ada:p", None)
    file.write_text(ADA)
    assert accepts(provider, b"ada:p")


def test_an_unchanged_file_is_read_once(tmp_path: Path) -> None:
    file = tmp_path / "htpasswd"
    file.write_text(ADA)
    made: list[bytes] = []
    source = provider_file.ProviderFile("htpasswd", os.fspath(file), made.append)
    for _ in range(3):
        source.current()
    assert made == [ADA.encode()]


def test_a_file_is_of_bounded_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(provider_file, "MAX_FILE", 10)
    file = tmp_path / "htpasswd"
    file.write_text(ADA)
    with pytest.raises(InvalidConfiguration, match="more than 10 bytes"):
        HtpasswdFile(file)


@pytest.mark.parametrize("make", [HtpasswdFile, lambda path: TokenProvider(secret_key=path)])
def test_a_file_that_is_not_there_from_the_start_is_an_error_of_configuration(
    make: Any, tmp_path: Path
) -> None:
    with pytest.raises(InvalidConfiguration, match="No such file"):
        make(tmp_path / "none")
