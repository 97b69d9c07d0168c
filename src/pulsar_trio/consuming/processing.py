"""`Processing`: a block of the application around one message, whose end acknowledges the message.

The block itself waits for nothing. Its consumer acknowledges or negatively acknowledges the message.
"""

from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, Any

from pulsar_sansio import LocalProtocolError, Message

if TYPE_CHECKING:
    from .consumer import Consumer


class Processing:
    """One block around one message; see `Message.processing` (rule NACK-04)."""

    __slots__ = ("_consumer", "_message")

    def __init__(self, consumer: "Consumer[Any]", message: Message[Any]) -> None:
        self._consumer = consumer
        self._message = message

    def __repr__(self) -> str:
        return f"<Processing of {self._message!r}>"

    async def __aenter__(self) -> Message[Any]:
        return self._message

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Settle the message by the end of the block: see `Message.processing`.

        Cancellation, and every other exception that is no `Exception`, leaves the message alone.
        """
        if kind is None:
            self._consumer.acknowledge(self._message)
        elif issubclass(kind, Exception):
            with suppress(LocalProtocolError):  # the consumer closed meanwhile: the broker redelivers
                self._consumer.negative_acknowledge(self._message)
