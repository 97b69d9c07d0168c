"""Certificates of an authority that exists for one test run, in files."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import IPv4Address
from pathlib import Path

import trustme
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

from pulsar_trio import ServerTls


@dataclass(frozen=True, slots=True)
class Files:
    """A certificate with its chain, and its private key."""

    certificate: Path
    key: Path


class Authority:
    """An authority that issues certificates into a folder."""

    def __init__(self, folder: Path, name: str = "authority") -> None:
        self._authority = trustme.CA(organization_name=name)
        self._folder = folder
        self._issued = 0
        self.file = folder / f"{name}.pem"
        self._authority.cert_pem.write_to_path(str(self.file))

    @property
    def text(self) -> str:
        return self.file.read_text()

    def issue(
        self,
        *names: str,
        common_name: str | None = None,
        begins: datetime | None = None,
        ends: datetime | None = None,
    ) -> Files:
        """Issue a certificate for these hosts, or for this role."""
        self._issued += 1
        stem = f"{self.file.stem}-{self._issued}"
        issued = self._authority.issue_cert(
            *(names or ("client.example",)), common_name=common_name, not_before=begins, not_after=ends
        )
        files = Files(self._folder / f"{stem}.pem", self._folder / f"{stem}.key")
        chain: Sequence[trustme.Blob] = issued.cert_chain_pems
        files.certificate.write_bytes(b"".join(each.bytes() for each in chain))
        key = load_pem_private_key(issued.private_key_pem.bytes(), None)
        files.key.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
        return files

    def server(self, *names: str, **options: object) -> ServerTls:
        """Return the broker's side with a certificate for these hosts."""
        files = self.issue(*(names or ("localhost", "127.0.0.1")))
        return ServerTls(files.certificate, files.key, **options)  # type: ignore[arg-type]


def self_signed(folder: Path) -> Files:
    """Write a certificate for 127.0.0.1 that no authority has signed."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.oid.NameOID.COMMON_NAME, "localhost")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(1))
        .not_valid_after(now + timedelta(1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(IPv4Address("127.0.0.1"))]), False)
        .sign(key, hashes.SHA256())
    )
    files = Files(folder / "self-signed.pem", folder / "self-signed.key")
    files.certificate.write_bytes(certificate.public_bytes(Encoding.PEM))
    files.key.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    return files
