"""`AttachmentOwner`: what a producer or a consumer is for its attachment, and for the connection it is open on.

The attachment asks it what to say to the broker and tells it what became of that; everything else about it is
its own business.
"""

from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol

from ...model.errors import PulsarError
from .refusal_policy import Decision

if TYPE_CHECKING:
    from .attachment import Attachment
    from .connection import Connection


class AttachmentOwner(Protocol):
    """The owner of an attachment: the producer machine and the consumer machine."""

    handle: int
    """The id the application knows it by."""
    wire_id: int
    """producer_id or consumer_id."""

    @property
    def kind(self) -> Literal["producer", "consumer"]: ...

    @property
    def described(self) -> str:
        """The owner in words, with the topic: for texts."""
        ...

    attachment: "Attachment"
    open_reply: ClassVar[int]
    """The command type that answers `open_command`: PRODUCER_SUCCESS or SUCCESS."""

    def open_command(self, request_id: int, connection: "Connection") -> bytes:
        """The PRODUCER or SUBSCRIBE frame."""
        ...

    def has_to_wait(self, reply: Any) -> bool:
        """Whether the broker accepted, but not yet: the same request will be answered once more."""
        ...

    def on_opened(self, connection: "Connection", reply: Any) -> None:
        """The broker accepted: send again what is pending, or grant permits."""
        ...

    @property
    def in_place(self) -> bool:
        """Whether being attached is all there is to opening; else it calls `Attachment.arrived` when the rest
        is done."""
        ...

    def on_open_refused(self, error: PulsarError) -> Decision:
        """The broker refused; DEFAULT leaves it to the table."""
        ...

    def on_detached(self, cause: PulsarError) -> None:
        """It was attached, and is not any more; it comes back by itself."""
        ...

    def on_failed(self, error: PulsarError) -> None:
        """Never attached and never will be, or ended for good after it was."""
        ...

    def close_command(self, request_id: int) -> bytes:
        """The CLOSE_PRODUCER or CLOSE_CONSUMER frame."""
        ...

    def on_closed(self) -> None:
        """The user's close is complete."""
        ...
