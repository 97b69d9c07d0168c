"""`Interposer`: stands between the bytes of a connection and its handlers, where a broker has faults."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from .connection import Connection


class Interposer(Protocol):
    """Sees every command of one connection, in both directions."""

    held_bytes: int
    """Bytes of frames that the client is to get later."""

    def receive(
        self,
        number: int,
        handler: "Callable[[Connection, Any], None]",
        connection: "Connection",
        command: Any,
    ) -> None:
        """Take a command in place of its handler."""

    def transmit(self, chunks: Sequence[bytes]) -> list[bytes]:
        """Return the bytes to write in place of these, which are whole frames."""
        ...

    def release(self) -> list[bytes]:
        """Carry out what is held back, and return the frames for the client among it."""
        ...

    def stop(self) -> None:
        """The connection has ended."""
