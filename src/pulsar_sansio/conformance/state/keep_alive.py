"""`ObservedKeepAlive`: PINGs that wait for their PONGs."""

from collections import deque


class ObservedKeepAlive:
    """The PINGs of both sides and their PONGs."""

    __slots__ = ("last_of_client", "of_broker", "of_client", "quiet")

    def __init__(self) -> None:
        self.of_client: deque[int] = deque()
        """Frames of the client's PINGs that have no PONG yet."""
        self.of_broker: deque[int] = deque()
        """Frames of the broker's PINGs that have no PONG yet."""
        self.last_of_client = -1
        """The frame of the client's last PING; where one was sent, a request may have timed out."""
        self.quiet = False
        """The broker has sent no frame since the client's last PING."""
