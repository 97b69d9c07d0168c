"""`ReloadedContext`: a context is made anew when a file has changed, and only then."""

import ssl
from pathlib import Path

import pytest
from OpenSSL import crypto

from pulsar_sansio import InvalidConfiguration
from pulsar_security import ReloadedContext, ServerTls, TlsConfig
from tests.security.certificates import Authority

from .memory import handshake


def test_files_that_change_count_from_the_next_connection_on(tmp_path: Path) -> None:
    old, new = Authority(tmp_path, "old"), Authority(tmp_path, "new")
    trusted, served, renewed = tmp_path / "trusted.pem", old.issue("localhost"), new.issue("localhost")
    trusted.write_text(old.text)
    client = ReloadedContext(TlsConfig(trust=trusted))
    server = ReloadedContext(ServerTls(served.certificate, served.key))
    first = client.current(), server.current()
    handshake(*first)
    assert (client.current(), server.current()) == first
    trusted.write_text(f"{new.text}\n")
    renewed.certificate.replace(served.certificate)
    renewed.key.replace(served.key)
    second = client.current(), server.current()
    handshake(*second)
    assert (client.current(), server.current()) == second


def test_an_authority_that_is_removed_from_a_trust_folder_in_place_is_trusted_no_more(tmp_path: Path) -> None:
    """OpenSSL finds an authority by the hash of its name, and keeps what it has found."""
    old, new = Authority(tmp_path, "old"), Authority(tmp_path, "new")
    folder = tmp_path / "trust"
    folder.mkdir()
    name = crypto.load_certificate(crypto.FILETYPE_PEM, old.text.encode()).subject_name_hash()
    trusted = folder / f"{name:08x}.0"
    trusted.write_text(old.text)
    reloaded, server = ReloadedContext(TlsConfig(trust=folder)), old.server().make_context()
    handshake(reloaded.current(), server)
    trusted.write_text(new.text)
    with pytest.raises(ssl.SSLCertVerificationError):
        handshake(reloaded.current(), server)


def test_a_changed_file_that_cannot_be_used_is_refused_until_it_is_mended(tmp_path: Path) -> None:
    authority, trusted = Authority(tmp_path), tmp_path / "trusted.pem"
    trusted.write_text(authority.text)
    reloaded = ReloadedContext(TlsConfig(trust=trusted))
    trusted.write_text("")
    for _ in range(2):
        with pytest.raises(InvalidConfiguration, match="no certificate in"):
            reloaded.current()
    trusted.write_text(authority.text)
    handshake(reloaded.current(), authority.server().make_context())


def test_files_that_cannot_be_used_from_the_start(tmp_path: Path) -> None:
    with pytest.raises(InvalidConfiguration, match="No such file"):
        ReloadedContext(TlsConfig(trust=tmp_path / "nothing"))
