"""`ProviderFile`: a provider made from a file, and made anew when the file has changed; `HtpasswdFile`."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Generic, TypeVar

from pulsar_sansio import AuthenticationError, BasicProvider, Identity, InvalidConfiguration
from pulsar_security import file_stamps

MadeT = TypeVar("MadeT")

MAX_FILE = 16 * 1024 * 1024
"""Bytes of the largest file of keys or passwords."""


class ProviderFile(Generic[MadeT]):
    """`option`: names the file in errors. `make`: makes the value from the content of the file.

    Raises `InvalidConfiguration` for a file that cannot be read, and lets `make` raise it.
    """

    def __init__(self, option: str, file: str | os.PathLike[str], make: Callable[[bytes], MadeT]) -> None:
        self._option = option
        self.path = Path(file)
        self._make = make
        self._stamps = file_stamps([self.path])
        self._made = make(self._content())

    def current(self) -> MadeT:
        """Return the value for the file as it is now.

        Raises `AuthenticationError` when the file has changed and cannot be used; the next call tries again.
        The value before the change is not returned: the file may have lost credentials since.
        """
        stamps = file_stamps([self.path])
        if stamps != self._stamps:
            try:
                self._made = self._make(self._content())
            except InvalidConfiguration as error:
                raise AuthenticationError(f"the file has changed and cannot be used: {error}") from None
            self._stamps = stamps
        return self._made

    def _content(self) -> bytes:
        try:
            with self.path.open("rb") as source:
                content = source.read(MAX_FILE + 1)
        except OSError as error:
            raise InvalidConfiguration(f"{self._option} {str(self.path)!r}: {error.strerror}") from None
        if len(content) > MAX_FILE:
            raise InvalidConfiguration(f"{self._option} {str(self.path)!r}: more than {MAX_FILE} bytes")
        return content


class HtpasswdFile:
    """Users and passwords in a file of Apache's htpasswd (method "basic"), as `BasicProvider` takes them.

    A file that changes on disk is used from the next connection on; the broker refuses every user while a
    changed file cannot be used. Raises `InvalidConfiguration` for a file that cannot be used from the start.
    """

    method = "basic"

    def __init__(self, file: str | os.PathLike[str]) -> None:
        self._file = ProviderFile("htpasswd", file, BasicProvider)

    def authenticate(self, data: bytes, certificate: str | None) -> Identity:
        """Return the role of a user. Raises `AuthenticationError`."""
        return self._file.current().authenticate(data, certificate)

    def __repr__(self) -> str:
        return f"HtpasswdFile({str(self._file.path)!r})"
