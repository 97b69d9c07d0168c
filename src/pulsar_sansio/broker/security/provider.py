"""`AuthenticationProvider`: decides which role belongs to credentials. Applications may write their own.

A provider is pure: it makes no input or output, knows no clock and keeps nothing of a connection.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias


@dataclass(frozen=True, slots=True)
class Identity:
    """The role that credentials prove. `begins_at_ms`, `expires_at_ms`: the time in which they are valid.

    Times are milliseconds since 1970; None is without limit. The broker compares them with its own time.
    """

    role: str
    expires_at_ms: int | None = None
    begins_at_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Challenge:
    """The broker has to send `data` to the client, and pass the client's answer to `then`.

    `then` raises `AuthenticationError` for an answer that proves nothing.
    """

    data: bytes
    then: "Callable[[bytes], Identity | Challenge]" = field(repr=False)


Outcome: TypeAlias = Identity | Challenge


class AuthenticationProvider(Protocol):
    """One method of authentication, by which a broker judges its clients."""

    @property
    def method(self) -> str:
        """The name of the method, which CONNECT of a client carries."""
        ...

    def authenticate(self, data: bytes, certificate: str | None) -> Outcome:
        """Judge the credentials of a client.

        `certificate`: the common name of the verified certificate that the client showed. Raises
        `AuthenticationError`, whose text goes into logs and must hold no secret.
        """
        ...
