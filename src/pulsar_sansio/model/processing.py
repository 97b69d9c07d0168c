"""`Processing`: a block of the application around one message, whose end acknowledges the message.

The block waits for nothing, so it is the same under every event loop. The driver of the client acknowledges
or negatively acknowledges the message: `AckHandler`. The message's consumer knows its handler.
"""

from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, Protocol

from .errors import LocalProtocolError

if TYPE_CHECKING:
    from .message import Message


class AckHandler(Protocol):
    """Acknowledges a consumer's messages, or negatively acknowledges them, and does the work that follows."""

    def acknowledge(self, what: "Message") -> object: ...
    def negative_acknowledge(self, what: "Message") -> object: ...


class Processing:
    """One block around one message; see `Message.processing`."""

    __slots__ = ("_ack_handler", "_message")

    def __init__(self, message: "Message", ack_handler: AckHandler | None) -> None:
        if ack_handler is None:
            raise LocalProtocolError(
                f"message {message.message_id} does not know its consumer: it came out of a pickle, or the "
                "client is driven by hand; acknowledge it, or its id, there"
            )
        self._message = message
        self._ack_handler = ack_handler

    def __repr__(self) -> str:
        return f"<Processing of {self._message!r}>"

    async def __aenter__(self) -> "Message":
        return self._message

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Settle the message by the end of the block: see `Message.processing`.

        Cancellation, in every event loop, and all else that is no `Exception` leaves the message alone.
        """
        if kind is None:
            self._ack_handler.acknowledge(self._message)
        elif issubclass(kind, Exception):
            with suppress(LocalProtocolError):  # closed meanwhile: it is redelivered, and the error counts
                self._ack_handler.negative_acknowledge(self._message)
