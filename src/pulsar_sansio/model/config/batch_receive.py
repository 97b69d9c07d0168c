"""`BatchReceivePolicy`: how many messages are worth waking up for (rule CONS-41)."""

from dataclasses import dataclass

from ..errors import InvalidConfiguration
from .checks import duration, integer


@dataclass(frozen=True, slots=True)
class BatchReceivePolicy:
    """When messages received together are enough; whichever of the three comes first.

    `max_messages`: 1 to 1 000 000, never more are given at once; None for no limit.
    `max_bytes`: of payload, 1 to 2**31 - 1; what is given at once has no more, unless a single message has.
    None for no limit.
    `timeout`: seconds since somebody asked; whatever has arrived by then is enough, and if nothing has, the
    first message is. 0 for no limit, with one of the others.

    What the receiver queue has room for is always enough: nothing more could arrive.
    """

    max_messages: int | None = None
    max_bytes: int | None = 10 * 1024 * 1024
    timeout: float = 0.1

    def __post_init__(self) -> None:
        if self.max_messages is not None:
            integer("batch_receive.max_messages", self.max_messages, 1, 1_000_000)
        if self.max_bytes is not None:
            integer("batch_receive.max_bytes", self.max_bytes, 1, 2**31 - 1)
        duration("batch_receive.timeout", self.timeout, maximum=3600.0)
        if self.max_messages is None and self.max_bytes is None and not self.timeout:
            raise InvalidConfiguration(
                "batch_receive: max_messages, max_bytes or a timeout has to say when it is enough"
            )
