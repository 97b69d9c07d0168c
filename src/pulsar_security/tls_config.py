"""`TlsConfig`: a client's side of TLS, and the `ssl` context that is made of it."""

import os
import ssl
from dataclasses import dataclass, field
from pathlib import Path

from pulsar_sansio import InvalidConfiguration, Secret

File = str | os.PathLike[str]

PEM = "-----BEGIN"


@dataclass(frozen=True, slots=True)
class TlsConfig:
    """A client verifies brokers by these options, and shows its own certificate. TLS is 1.2 or later.

    `trust`: the certificates of the authorities that the client trusts: a file or a folder (as `c_rehash`
    makes it), or PEM text. None is the system's trust store.
    `certificate`, `key`: PEM files of the client's own certificate with its chain, and of its private key;
    None for the key when the certificate's file has it, too. `key_password`: opens the key.
    `ciphers`: the cipher list for TLS 1.2 in OpenSSL's syntax; None for the defaults of Python.
    `context`: an `ssl.SSLContext` of the application, used as it is. It excludes every other option.
    `insecure_accept_any_certificate`: accept every certificate of every peer. Any machine on the way can then
    read and change all messages, and take the credentials. `insecure_accept_any_host`: verify the chain of a
    certificate and not its name.

    A file that changes on disk is used from the next connection on. Raises `InvalidConfiguration` for options
    that contradict each other.
    """

    trust: File | None = None
    certificate: File | None = None
    key: File | None = None
    key_password: Secret | str | None = field(default=None, repr=False)
    ciphers: str | None = None
    context: ssl.SSLContext | None = None
    insecure_accept_any_certificate: bool = False
    insecure_accept_any_host: bool = False

    def __post_init__(self) -> None:
        check_files(trust=self.trust)
        check_files(pem=False, certificate=self.certificate, key=self.key)
        check_flags(
            insecure_accept_any_certificate=self.insecure_accept_any_certificate,
            insecure_accept_any_host=self.insecure_accept_any_host,
        )
        if self.key_password is not None:  # text would be in pickles
            object.__setattr__(self, "key_password", Secret(self.key_password))
        others = [name for name in self.__slots__ if name != "context" and getattr(self, name)]
        if self.context is not None and others:
            raise InvalidConfiguration(f"tls: context excludes every other option, found {', '.join(others)}")
        if self.key is not None and self.certificate is None:
            raise InvalidConfiguration("tls: key needs certificate")
        if self.key_password is not None and self.certificate is None:
            raise InvalidConfiguration("tls: key_password needs certificate")

    def files(self) -> tuple[Path, ...]:
        """Return the files and folders that the options name."""
        named = (None if is_pem(self.trust) else self.trust, self.certificate, self.key)
        return tuple(Path(each) for each in named if each is not None)

    def make_context(self) -> ssl.SSLContext:
        """Read the files and return the context.

        Raises `InvalidConfiguration`, which names the option and the file, for a file that cannot be used.
        """
        if self.context is not None:
            return self.context
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        harden(context, self.ciphers)
        load_trust(context, self.trust)
        if self.certificate is not None:
            load_identity(context, self.certificate, self.key, self.key_password)
        if self.insecure_accept_any_host or self.insecure_accept_any_certificate:
            context.check_hostname = False
        if self.insecure_accept_any_certificate:
            context.verify_mode = ssl.CERT_NONE
        return context


def is_pem(trust: File | None) -> bool:
    """True for PEM text in place of a file name."""
    return isinstance(trust, str) and trust.lstrip().startswith(PEM)


def check_files(*, pem: bool = True, **files: File | None) -> None:
    """Raise `InvalidConfiguration` for a value that is no path, without showing it: it may be a private key.

    `pem`: PEM text may take the place of a path.
    """
    for option, file in files.items():
        if file is None:
            continue
        if not isinstance(file, (str, os.PathLike)):
            raise InvalidConfiguration(f"tls: {option}: a path, not {type(file).__name__}")
        if is_pem(file) and not pem:
            raise InvalidConfiguration(f"tls: {option}: the path of a file, no PEM text")
        if "\0" in os.fsdecode(file):
            raise InvalidConfiguration(f"tls: {option}: a path has no NUL")


def check_flags(**flags: bool) -> None:
    """Raise `InvalidConfiguration` for a value that is no bool: the text "false" counts as true."""
    for option, value in flags.items():
        if not isinstance(value, bool):
            raise InvalidConfiguration(f"tls: {option}: True or False, not {value!r:.200}")


def harden(context: ssl.SSLContext, ciphers: str | None) -> None:
    """Allow TLS 1.2 and later without renegotiation, and these ciphers of TLS 1.2."""
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.options |= ssl.OP_NO_RENEGOTIATION
    if ciphers is not None:
        try:
            context.set_ciphers(ciphers)
        except (ssl.SSLError, ValueError):
            raise InvalidConfiguration(f"tls: OpenSSL knows none of the ciphers {ciphers!r}") from None


def load_trust(context: ssl.SSLContext, trust: File | None) -> None:
    """Trust the authorities in a file, a folder or PEM text; None for those of the system."""
    if trust is None:
        context.load_default_certs()
        return
    try:
        if isinstance(trust, str) and is_pem(trust):
            context.load_verify_locations(cadata=trust)
        elif Path(trust).is_dir():
            context.load_verify_locations(capath=trust)
        else:
            context.load_verify_locations(cafile=trust)
    except ssl.SSLError as error:
        where = "its text" if is_pem(trust) else repr(str(trust))
        raise InvalidConfiguration(f"tls: trust: no certificate in {where}: {error.reason}") from None
    except OSError as error:
        raise InvalidConfiguration(f"tls: trust {str(trust)!r}: {error.strerror}") from None


def load_identity(
    context: ssl.SSLContext, certificate: File, key: File | None, password: Secret | str | None
) -> None:
    """Show this certificate to peers."""
    secret = None if password is None else Secret(password)

    def tell() -> bytes:
        if secret is None:  # without this call OpenSSL would ask at the terminal
            raise InvalidConfiguration(f"tls: the key {str(key or certificate)!r} needs key_password")
        return secret.reveal()

    try:
        context.load_cert_chain(certificate, key, tell)
    except ssl.SSLError as error:
        named = repr(str(certificate)) + (f" and {str(key)!r}" if key else "")
        reason = error.reason or "no PEM certificate and key, or a wrong key_password"
        raise InvalidConfiguration(f"tls: certificate and key {named}: {reason}") from None
    except InvalidConfiguration:  # of `tell`; it is a ValueError, too
        raise
    except ValueError as error:  # of a password that is too long
        raise InvalidConfiguration(f"tls: key_password: {error}") from None
    except OSError as error:
        files = " or ".join(repr(str(each)) for each in (certificate, key) if each is not None)
        raise InvalidConfiguration(f"tls: certificate or key {files}: {error.strerror}") from None
