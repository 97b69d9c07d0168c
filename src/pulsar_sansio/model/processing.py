"""`Processing`: a block of the application around one message, whose end is the verdict on the message.

It waits for nothing, so it is the same under every event loop. Who gives the verdict is whoever drives the
client: `AckHandler`; the message's consumer knows it.
"""

from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, Protocol

from .errors import LocalProtocolError

if TYPE_CHECKING:
    from .message import Message


class AckHandler(Protocol):
    """Gives verdicts on a consumer's messages, and sees to what follows from them."""

    def acknowledge(self, what: "Message") -> object: ...
    def negative_acknowledge(self, what: "Message") -> object: ...


class Processing:
    """See `Message.processing`."""

    __slots__ = ("_judge", "_message")

    def __init__(self, message: "Message", judge: AckHandler | None) -> None:
        if judge is None:
            raise LocalProtocolError(
                f"message {message.message_id} does not know its consumer: it came out of a pickle, or the "
                "client is driven by hand; acknowledge it, or its id, there"
            )
        self._message = message
        self._judge = judge

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
        """Cancellation, in every event loop, and whatever else is no `Exception` leaves the message alone."""
        if kind is None:
            self._judge.acknowledge(self._message)
        elif issubclass(kind, Exception):
            with suppress(LocalProtocolError):  # closed meanwhile: it comes again, and the error counts
                self._judge.negative_acknowledge(self._message)
