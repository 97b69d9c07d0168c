"""`KeyFiles`: the files of a query's encryption keys, as Spark carries their names to the executors."""

from dataclasses import dataclass
from pathlib import Path

from pulsar_sansio import CryptoError, EncryptionKeyInfo, Secret

MAX_KEY_FILE = 64 * 1024
"""Bytes of a file with a key."""


@dataclass(frozen=True)
class KeyFiles:
    """PEM files by the names of keys; `every`: the file of all other keys. Each executor needs the files; a
    key is read each time that it is wanted."""

    named: tuple[tuple[str, str], ...] = ()
    every: str | None = None

    def read(self, key: str) -> EncryptionKeyInfo:
        """Return the key of that name. Raises `CryptoError`."""
        file = dict(self.named).get(key, self.every)
        if file is None:
            raise CryptoError("option encryption.keyFiles has no file of that name")
        try:
            with Path(file).open("rb") as source:
                content = source.read(MAX_KEY_FILE + 1)
        except (OSError, ValueError) as error:  # ValueError: a name with a NUL
            reason = error.strerror if isinstance(error, OSError) else str(error)
            raise CryptoError(f"encryption.keyFiles {file!r}: {reason}") from error
        if len(content) > MAX_KEY_FILE:
            raise CryptoError(f"encryption.keyFiles {file!r}: more than {MAX_KEY_FILE} bytes")
        return EncryptionKeyInfo(Secret(content))
