"""`KeyReader`: the source of a producer's or consumer's encryption keys, as an application gives it."""

import os
from collections.abc import Awaitable, Callable, Mapping
from typing import TypeAlias

from pulsar_sansio import CryptoError, EncryptionKeyInfo, InvalidConfiguration, Secret
from pulsar_security import KeyFiles as NamedFiles

from ..application_function import ApplicationFunction, described

KeyText: TypeAlias = EncryptionKeyInfo | Secret | bytes | str
"""A key in PEM, by itself or with the metadata of a public key."""

KeyFiles: TypeAlias = os.PathLike[str] | Mapping[str, os.PathLike[str]]
"""The PEM file of all keys, or of each key by its name."""

KeyFunction: TypeAlias = Callable[[str, Mapping[str, str]], KeyText | Awaitable[KeyText]]
"""A function, perhaps an async one, that is given the name of a key and the metadata of its public key."""

KeySource: TypeAlias = KeyFiles | KeyFunction


class KeyReader:
    """One source of keys. It is asked each time that a key is needed, so keys may be replaced.

    A file is read, and a function that is not async is called, in a thread. Raises `InvalidConfiguration`
    for anything else.
    """

    def __init__(self, source: KeySource) -> None:
        is_files = isinstance(source, Mapping) and all(
            isinstance(name, str) and isinstance(file, os.PathLike) for name, file in source.items()
        )
        if not (is_files or isinstance(source, os.PathLike) or callable(source)):
            raise InvalidConfiguration(
                "crypto_key_reader: a Path, a mapping of names to Paths, or a function of name and metadata, "
                f"not {type(source).__name__}"
            )
        self._source = source
        self._function = ApplicationFunction(source if callable(source) else _reading(source))

    async def read(self, key: str, metadata: Mapping[str, str]) -> EncryptionKeyInfo:
        """Return the key of that name. Raises `CryptoError`."""
        try:
            return _info(await self._function.call(key, metadata))
        except CryptoError:
            raise
        except Exception as error:
            raise CryptoError(described(error, "the key reader")) from error

    def __repr__(self) -> str:
        source = self._source
        return f"KeyReader({source if isinstance(source, os.PathLike | Mapping) else '…'})"


def _reading(source: KeyFiles) -> Callable[[str, Mapping[str, str]], EncryptionKeyInfo]:
    """Return the function that reads these files, whichever metadata a key has."""
    if isinstance(source, Mapping):
        return lambda key, _: NamedFiles(tuple(source.items())).read(key)
    files = NamedFiles(every=source)
    return lambda key, _: files.read(key)


def _info(found: object) -> EncryptionKeyInfo:
    if isinstance(found, EncryptionKeyInfo):
        return found
    if isinstance(found, str | bytes | Secret):
        return EncryptionKeyInfo(Secret(found))
    raise CryptoError(f"the key reader returned {type(found).__name__}, and no key")
