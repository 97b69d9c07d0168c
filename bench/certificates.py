"""Certificates of an authority that exists for one run."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import trustme


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
