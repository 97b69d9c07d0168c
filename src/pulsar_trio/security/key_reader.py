"""`KeyReader`: the source of a producer's or consumer's encryption keys, as an application gives it."""

import os
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from inspect import isawaitable, iscoroutinefunction
from pathlib import Path
from typing import TypeAlias

from pulsar_sansio import CryptoError, EncryptionKeyInfo, InvalidConfiguration, Secret

from ..application_function import Threads

KeyText: TypeAlias = EncryptionKeyInfo | Secret | bytes | str
"""A key in PEM, by itself or with the metadata of a public key."""

KeyFiles: TypeAlias = os.PathLike[str] | Mapping[str, os.PathLike[str]]
"""The PEM file of all keys, or of each key by its name."""

KeyFunction: TypeAlias = Callable[[str, Mapping[str, str]], KeyText | Awaitable[KeyText]]
"""A function, perhaps an async one, that is given the name of a key and the metadata of its public key."""

KeySource: TypeAlias = KeyFiles | KeyFunction

MAX_KEY_FILE = 64 * 1024
"""Bytes of a file with a key."""


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
        self._threads = Threads()

    async def read(self, key: str, metadata: Mapping[str, str]) -> EncryptionKeyInfo:
        """Return the key of that name. Raises `CryptoError`."""
        try:
            return _info(await self._found(key, metadata))
        except CryptoError:
            raise
        except Exception as error:
            raise CryptoError(_described(error)) from error

    async def _found(self, key: str, metadata: Mapping[str, str]) -> object:
        source = self._source
        if isinstance(source, Mapping):
            if key not in source:
                raise CryptoError("the key reader has no file of that name")
            source = source[key]
        if isinstance(source, os.PathLike):
            return await self._threads.run(partial(_read, Path(source)))
        if iscoroutinefunction(source):
            return await source(key, metadata)
        [found] = await self._threads.run(lambda: [source(key, metadata)])  # perhaps an awaitable
        return await found if isawaitable(found) else found

    def __repr__(self) -> str:
        source = self._source
        return f"KeyReader({source if isinstance(source, os.PathLike | Mapping) else '…'})"


def _read(file: Path) -> bytes:
    with file.open("rb") as source:
        content = source.read(MAX_KEY_FILE + 1)
    if len(content) > MAX_KEY_FILE:
        raise CryptoError(f"the file {file} has more than {MAX_KEY_FILE} bytes")
    return content


def _info(found: object) -> EncryptionKeyInfo:
    if isinstance(found, EncryptionKeyInfo):
        return found
    if isinstance(found, str | bytes | Secret):
        return EncryptionKeyInfo(Secret(found))
    raise CryptoError(f"the key reader returned {type(found).__name__}, and no key")


def _described(error: Exception) -> str:
    """Return an error's text where it cannot hold a key, else its type; the `__cause__` has the rest."""
    if isinstance(error, OSError) and error.errno is not None:
        return str(error)
    return f"the key reader raised {type(error).__name__}"
