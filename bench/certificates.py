"""Certificates of an authority, and a key pair for encryption; each exists for one run."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import trustme
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from bench.jobs import PRIVATE_KEY, PUBLIC_KEY

KEY_BITS = 2048
"""Bits of the RSA key: what docs/encryption.md makes."""


@dataclass(frozen=True, slots=True)
class Certificates:
    """The files of a broker on this machine and of its clients, in PEM."""

    trust: Path
    """The authority."""
    certificate: Path
    """The broker's certificate with its chain."""
    key: Path


@contextmanager
def certificates() -> Iterator[Certificates]:
    """Write the files into a folder that is removed at the end."""
    with TemporaryDirectory() as folder:
        files = Certificates(*(Path(folder) / name for name in ("trust.pem", "broker.pem", "broker.key")))
        authority = trustme.CA()
        authority.cert_pem.write_to_path(files.trust)
        issued = authority.issue_cert("localhost", "127.0.0.1")
        for blob in issued.cert_chain_pems:
            blob.write_to_path(files.certificate, append=True)
        issued.private_key_pem.write_to_path(files.key)
        yield files


@contextmanager
def key_pair() -> Iterator[Path]:
    """Write an RSA key pair in PEM into a folder that is removed at the end."""
    with TemporaryDirectory() as folder:
        private = rsa.generate_private_key(65537, KEY_BITS)
        (Path(folder) / PRIVATE_KEY).write_bytes(
            private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        )
        (Path(folder) / PUBLIC_KEY).write_bytes(
            private.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
        )
        yield Path(folder)
