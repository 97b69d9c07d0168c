"""The identity of a client: `Token`, `Basic`, `MutualTls`, and the base for other methods."""

import os
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from functools import partial
from typing import ClassVar, TypeAlias

from pulsar_sansio import CredentialsFailed, InvalidConfiguration, Secret
from pulsar_security import checked_token, read_token

from ..application_function import ApplicationFunction

TokenText: TypeAlias = str | Secret
TokenSource: TypeAlias = TokenText | os.PathLike[str] | Callable[[], TokenText | Awaitable[TokenText]]
"""A token's text, the file that holds it, or a function (an async one, too) that returns it."""


class CredentialSteps(ABC):
    """The credentials of one connection: the first step, and the answers to the broker's challenges."""

    @abstractmethod
    async def first(self) -> Secret:
        """Return the credentials that CONNECT carries. Any exception ends the connection."""

    async def answer(self, challenge: bytes) -> Secret:
        """Return the answer to one challenge. Any exception ends the connection."""
        raise CredentialsFailed("this method has one step, and the broker asks for another")


class Authentication:
    """Base of the methods by which a client shows its identity.

    `method`: the name that CONNECT carries, which a provider of the broker has, too. A method with one step
    overrides `credentials`. One with several steps overrides `steps`, and keeps the state of one connection
    in the `CredentialSteps`. A method that keeps credentials for later connections overrides `discard`.
    """

    method: ClassVar[str] = ""

    def steps(self, host: str) -> CredentialSteps:
        """Begin for one connection to `host`, and again each time that the broker wants new credentials."""
        return _OneStep(self, host)

    async def credentials(self, host: str) -> Secret:
        """Return the credentials for a connection to `host`, fetched anew.

        Raises `CredentialsFailed` where a class overrides neither this method nor `steps`.
        """
        raise CredentialsFailed(f"the class {type(self).__name__} overrides neither credentials nor steps")

    def discard(self, credentials: Secret) -> None:
        """The broker refused these credentials, or wants new ones in their place: return them no more.

        The base class keeps none. The call may come several times, also after newer ones were returned.
        """


class _OneStep(CredentialSteps):
    def __init__(self, owner: Authentication, host: str) -> None:
        self._owner = owner
        self._host = host

    async def first(self) -> Secret:
        return await self._owner.credentials(self._host)


class Token(Authentication):
    """A token, as a rule a JSON Web Token.

    `source`: the text, a `Path` to a file, or a function without arguments that returns the text. A file or
    function is asked for each connection, and each time that the broker wants a new token. A function that
    is not async runs in a thread. Raises `InvalidConfiguration` for a text that is no token.
    """

    method = "token"

    def __init__(self, source: TokenSource) -> None:
        self._file = os.fspath(source) if isinstance(source, os.PathLike) else None
        self._source: Secret | ApplicationFunction
        if isinstance(source, (str, Secret)):
            self._source = checked_token(source)
        elif isinstance(source, os.PathLike):
            self._source = ApplicationFunction(partial(read_token, source))
        elif callable(source):
            self._source = ApplicationFunction(source)
        else:
            raise InvalidConfiguration(
                f"Token: its source is text, a Path, or a function, not {type(source).__name__}"
            )

    async def credentials(self, host: str) -> Secret:
        if isinstance(self._source, Secret):
            return self._source
        found = await self._source.call()
        if not isinstance(found, (str, Secret)):
            raise CredentialsFailed(f"the function of a Token returned {type(found).__name__}, not text")
        return checked_token(found)

    def __repr__(self) -> str:
        return "Token(***)" if self._file is None else f"Token({self._file!r})"


class Basic(Authentication):
    """A user's name and password (htpasswd at the broker). Raises `InvalidConfiguration` for a name that is
    empty or has a colon."""

    method = "basic"

    def __init__(self, user: str, password: str | Secret) -> None:
        if not isinstance(user, str) or not user or ":" in user:
            raise InvalidConfiguration("Basic: a user is text without a colon, and not empty")
        self._user = user
        self._credentials = Secret(Secret(f"{user}:").reveal() + Secret(password).reveal())

    async def credentials(self, host: str) -> Secret:
        return self._credentials

    def __repr__(self) -> str:
        return f"Basic({self._user!r}, ***)"


class MutualTls(Authentication):
    """The client's certificate is its identity (`TlsConfig.certificate`); CONNECT carries nothing."""

    method = "tls"

    async def credentials(self, host: str) -> Secret:
        return Secret(b"")

    def __repr__(self) -> str:
        return "MutualTls()"
