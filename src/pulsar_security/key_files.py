"""`KeyFiles`: PEM files of encryption keys, by the names of the keys."""

from dataclasses import dataclass
from os import PathLike
from pathlib import Path

from pulsar_sansio import CryptoError, EncryptionKeyInfo, Secret

MAX_KEY_FILE = 64 * 1024
"""Bytes of a file with a key."""


@dataclass(frozen=True)
class KeyFiles:
    """`every`: the file of all keys that are not in `named`. A file is read each time that its key is
    wanted, so it may be replaced. A pickle has the names of the files only: each executor of Spark needs
    them."""

    named: tuple[tuple[str, str | PathLike[str]], ...] = ()
    every: str | PathLike[str] | None = None

    def read(self, key: str) -> EncryptionKeyInfo:
        """Return the key of that name. Raises `CryptoError`, which names the file."""
        file = dict(self.named).get(key, self.every)
        if file is None:
            raise CryptoError("there is no file for a key of that name")
        try:
            with Path(file).open("rb") as source:
                content = source.read(MAX_KEY_FILE + 1)
        except (OSError, ValueError) as error:  # ValueError: a name with a NUL
            reason = error.strerror if isinstance(error, OSError) else str(error)
            raise CryptoError(f"key file {str(file)!r}: {reason}") from error
        if len(content) > MAX_KEY_FILE:
            raise CryptoError(f"key file {str(file)!r}: more than {MAX_KEY_FILE} bytes")
        return EncryptionKeyInfo(Secret(content))
