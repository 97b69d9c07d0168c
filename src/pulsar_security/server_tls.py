"""`ServerTls`: the broker's side of TLS."""

import ssl
from dataclasses import dataclass, field
from pathlib import Path

from pulsar_sansio import InvalidConfiguration, Secret

from .tls_config import File, check_files, check_flags, harden, is_pem, load_identity, load_trust


@dataclass(frozen=True, slots=True)
class ServerTls:
    """The broker shows its certificate by these options, and may ask for the client's. TLS is 1.2 or later.

    `certificate`, `key`: PEM files of the broker's certificate with its chain, and of its private key; None
    for the key when the certificate's file has it, too. `key_password`: opens the key.
    `trust`: the authorities of client certificates: a file, a folder or PEM text. None: the broker asks for
    no client certificate. `require_client_certificate`: refuse a client that shows none; needs `trust`.
    `ciphers`: the cipher list for TLS 1.2 in OpenSSL's syntax; None for the defaults of Python.

    A file that changes on disk is used from the next connection on. Raises `InvalidConfiguration` for options
    that contradict each other.
    """

    certificate: File
    key: File | None = None
    key_password: Secret | str | None = field(default=None, repr=False)
    trust: File | None = None
    require_client_certificate: bool = False
    ciphers: str | None = None

    def __post_init__(self) -> None:
        check_files(trust=self.trust)
        check_files(pem=False, certificate=self.certificate, key=self.key)
        check_flags(require_client_certificate=self.require_client_certificate)
        if self.key_password is not None:  # text would be in pickles
            object.__setattr__(self, "key_password", Secret(self.key_password))
        if self.require_client_certificate and self.trust is None:
            raise InvalidConfiguration("tls: require_client_certificate needs trust")

    def files(self) -> tuple[Path, ...]:
        """Return the files and folders that the options name."""
        named = (self.certificate, self.key, None if is_pem(self.trust) else self.trust)
        return tuple(Path(each) for each in named if each is not None)

    def make_context(self) -> ssl.SSLContext:
        """Read the files and return the context.

        Raises `InvalidConfiguration`, which names the option and the file, for a file that cannot be used.
        """
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        harden(context, self.ciphers)
        load_identity(context, self.certificate, self.key, self.key_password)
        if self.trust is not None:
            load_trust(context, self.trust)
            required = self.require_client_certificate
            context.verify_mode = ssl.CERT_REQUIRED if required else ssl.CERT_OPTIONAL
        return context
