"""The permits of one consumer: how many messages the broker may send, and when a FLOW grants more.

A permit is the right to send one message. The broker gets as many as the receiver queue holds when the
consumer is attached. It gets one more for every message that has left the queue, reported when half a queue
of them has come together (rules FLOW-02, FLOW-04, FLOW-05). A message leaves the queue when it is delivered
to the application, skipped, discarded, found to be a duplicate, or cleared for redelivery. Its permit comes
back exactly once in each case (CONS-25, CONS-29, CONS-36, FLOW-11), so that at any time within one attachment

    at the broker + in the queue + not yet reported = size of the queue

A new attachment begins with a new grant; permits that were not reported before are void (FLOW-09). While the
consumer is paused nothing is reported, not even the first grant (FLOW-06, FLOW-10).

`Permits` also notices a broker that sends without permits. It knows counts only: no commands, no messages.
"""

from collections.abc import Callable

from ...model.errors import RemoteProtocolError

MAX_ENTRIES_BEYOND_GRANT = 1_000
"""Entries accepted in a row while the broker has no permits left.

A broker serves whole entries and looks at permits before it reads, not before it sends: Apache Pulsar reads
up to `dispatcherMaxReadBatchSize` (100) entries once there is one permit, each of them a batch of any size.
Ten times that leaves room for other configurations; a broker that ignores permits soon passes it."""

MAX_BYTES_BEYOND_GRANT = 256 * 1024 * 1024
"""Bytes, uncompressed, accepted in a row while the broker has no permits left (Apache Pulsar reads 5 MiB)."""


class PermitsExceeded(RemoteProtocolError):
    """The broker kept sending long after its permits were used up."""


class Permits:
    """Permits of one consumer over all its attachments."""

    __slots__ = (
        "_beyond_bytes",
        "_beyond_entries",
        "_grant",
        "at_broker",
        "paused",
        "queue_size",
        "threshold",
        "unreported",
    )

    def __init__(self, queue_size: int) -> None:
        self.queue_size = queue_size
        self.threshold = max(1, queue_size // 2)
        """Unreported permits that make a FLOW; at least 1, because a FLOW never grants 0 (FLOW-05,
        FLOW-08)."""
        self.at_broker = 0
        """Permits the broker still holds; below 0 after a batch larger than the rest."""
        self.unreported = 0
        """Permits that came back and are not reported yet."""
        self.paused = False
        """True while no FLOW is sent."""
        self._grant: Callable[[int], None] | None = None
        self._beyond_entries = 0
        self._beyond_bytes = 0

    def attach(self, grant: Callable[[int], None]) -> None:
        """Start with a full queue; `grant(n)` sends a FLOW of `n` permits and counts it (FLOW-02)."""
        self._grant = grant
        self.give_back(self.queue_size)

    def detach(self) -> None:
        """Drop the broker's permits with the connection. Permits that come back while detached are void."""
        self.at_broker = 0
        self.unreported = 0
        self._beyond_entries = 0
        self._beyond_bytes = 0
        self._grant = None

    def charge(self, messages: int, size: int) -> None:
        """The broker used `messages` permits for an entry of `size` bytes.

        Raises `PermitsExceeded` for one entry too many, see `MAX_ENTRIES_BEYOND_GRANT`.
        """
        if self.at_broker <= 0:
            self._beyond_entries += 1
            self._beyond_bytes += size
            if self._beyond_entries > MAX_ENTRIES_BEYOND_GRANT or self._beyond_bytes > MAX_BYTES_BEYOND_GRANT:
                raise PermitsExceeded(
                    f"the broker sent {self._beyond_entries} entries ({self._beyond_bytes} bytes) "
                    f"after its permits were used up"
                )
        self.at_broker -= messages

    def give_back(self, messages: int) -> None:
        """Take back the permits of `messages` that have left the queue; do nothing while detached
        (FLOW-12)."""
        if self._grant is None:
            return
        self.unreported += messages
        if self.unreported >= self.threshold and not self.paused:
            granted = self.unreported
            self.unreported = 0
            self._report(granted)

    def _report(self, granted: int) -> None:
        assert self._grant is not None
        self.at_broker += granted
        if self.at_broker > 0:
            self._beyond_entries = 0
            self._beyond_bytes = 0
        self._grant(granted)

    def pause(self) -> None:
        """Report nothing until `resume`; messages that the broker has permits for may still come
        (FLOW-06)."""
        self.paused = True

    def resume(self) -> None:
        """Report the permits that came back meanwhile, if they are enough for a FLOW (FLOW-07)."""
        self.paused = False
        self.give_back(0)

    @property
    def until_report(self) -> int:
        """Return how many messages may leave the queue before `give_back` sends a FLOW; at least 1."""
        return max(1, self.threshold - self.unreported)
