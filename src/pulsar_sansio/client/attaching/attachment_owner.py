"""`AttachmentOwner`: a producer or consumer as its attachment and its connection see it.

The attachment asks the owner for the commands to send, and reports each outcome to the owner.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol

from ...model.errors import PulsarError
from ..connecting.refusal_policy import Decision
from ..lookup.questions import Withdrawable

if TYPE_CHECKING:
    from ..connecting.connection import Connection
    from .attachment import Attachment


class AttachmentOwner(Protocol):
    """The owner of an attachment: the producer machine and the consumer machine."""

    handle: int
    """The id by which the application names the owner."""
    wire_id: int
    """producer_id or consumer_id."""

    @property
    def kind(self) -> Literal["producer", "consumer"]: ...

    @property
    def described(self) -> str:
        """The owner and its topic in words, for error texts."""
        ...

    attachment: "Attachment"
    open_reply: ClassVar[int]
    """The command type that answers `open_command`: PRODUCER_SUCCESS or SUCCESS."""

    def ask_first(
        self,
        connection: "Connection",
        proceed: Callable[[], None],
        failed: Callable[[PulsarError], None],
    ) -> Withdrawable | None:
        """Ask the broker what the open command needs; `proceed` or `failed` follows, later and once. Return
        None when nothing has to be asked."""
        ...

    def open_command(self, request_id: int, connection: "Connection") -> bytes:
        """The PRODUCER or SUBSCRIBE frame."""
        ...

    def has_to_wait(self, reply: Any) -> bool:
        """True when the broker queued the producer for exclusive access and will answer once more."""
        ...

    def on_opened(self, connection: "Connection", reply: Any) -> None:
        """The broker accepted: resend pending messages, or grant permits."""
        ...

    @property
    def positioned(self) -> bool:
        """True when the owner needs no further step after being attached.

        Otherwise the owner calls `Attachment.on_positioned` once it reaches its start position.
        """
        ...

    def on_open_refused(self, error: PulsarError) -> Decision:
        """The broker refused; return DEFAULT to decide by the table of `refusal_policy`."""
        ...

    def on_detached(self, cause: PulsarError) -> None:
        """The attachment was lost; the attachment reconnects without help from the owner."""
        ...

    def on_failed(self, error: PulsarError) -> None:
        """Opening failed, or a permanent error ended the attached owner."""
        ...

    def close_command(self, request_id: int) -> bytes:
        """The CLOSE_PRODUCER or CLOSE_CONSUMER frame."""
        ...

    def on_closed(self) -> None:
        """The close that the application asked for is complete."""
        ...
