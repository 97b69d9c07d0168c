"""`BatchReceivePolicy`: it says how many messages wake a waiting application (rule CONS-41)."""

from dataclasses import dataclass

from ..errors import InvalidConfiguration
from .checks import duration, integer


@dataclass(frozen=True, slots=True)
class BatchReceivePolicy:
    """Three limits of one batch receive; the limit that is reached first completes it.

    `max_messages`: 1 to 1 000 000; the application never gets more at once. None for no limit.
    `max_bytes`: bytes of payload, 1 to 2**31 - 1. The application gets more at once only if a single message
    is larger. None for no limit.
    `timeout`: seconds since the application asked. The messages that have arrived by then are enough; if
    none has, the first message is enough. 0 for no limit, which needs one of the other limits.

    A full receiver queue is always enough, because nothing more could arrive.
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
