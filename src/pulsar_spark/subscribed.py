"""Consumers of one topic over a blocking link: those that read, and those that only hold a subscription."""

import time
from typing import TYPE_CHECKING, Any

from pulsar_sansio import LATEST, ClosedError, LastPosition, MessageId, PulsarError, ReaderSpec, TopicName
from pulsar_sansio import client_outputs as outputs

from .errors import LinkTimeout
from .reading.offsets import Position

if TYPE_CHECKING:
    from .link import Link


def full_name(topic: str) -> str:
    """With domain, tenant and namespace. Raises `InvalidTopicName`."""
    return str(TopicName.parse(topic))


class Subscribed:
    """A consumer of one topic or partition that is driven by a link.

    `over`: why it is no more, None while it is. `undecryptable`: why the first encrypted message could not be
    decrypted; None if each could.
    """

    def __init__(self, link: "Link", topic_partition: str, handle: int) -> None:
        self.link = link
        self.topic = topic_partition
        self.handle = handle
        self.over: PulsarError | None = None
        self.undecryptable: PulsarError | None = None
        self._subscribed = False
        link.listen(handle, self._on_output)

    def _on_output(self, output: outputs.Output) -> None:
        match output:
            case outputs.ConsumerReady():
                self._subscribed = True
            case outputs.ConsumerFailed(_, error):
                self.over = error
            case outputs.Undecryptable(_, _, error):
                self.undecryptable = error
            case outputs.Closed(_, error):
                self.over = error or ClosedError(f"the consumer on {self.topic} was closed")

    def ready(self, timeout: float) -> None:
        """Wait until it is subscribed. Raises what it failed with, and `LinkTimeout`; then it is closed."""
        try:
            self.link.wait(self._begun, timeout, f"subscribing to {self.topic}")
        except (PulsarError, LinkTimeout):
            self.close()
            raise

    def _begun(self) -> bool | None:
        if self.over is not None:
            raise self.over
        return self._subscribed or None

    def where(self, timeout: float = 30.0) -> LastPosition:
        """Return where the topic ends, and how far the subscription is."""
        if self.over is not None:
            raise self.over
        answer: LastPosition = self.link.call(
            lambda now: self.link.client.last_position(now, self.handle),
            timeout,
            f"the last position of {self.topic}",
        )
        return answer

    def close(self) -> None:
        """Leave the topic, without waiting for the broker to confirm that."""
        self.link.listen(self.handle, None)
        if self.link.closed:
            return
        self.link.client.abandon(time.monotonic_ns(), self.handle)
        self.link._drain()


class Reading(Subscribed):
    """A reader of one topic or partition. `start`: the id behind which it begins, as a whole entry;
    `EARLIEST`, `LATEST`, or milliseconds since 1970. `paused`: it gets nothing."""

    def __init__(
        self,
        link: "Link",
        topic_partition: str,
        start: "MessageId | int",
        *,
        paused: bool = False,
        **options: Any,
    ) -> None:
        placed = start if isinstance(start, int) or start == LATEST else {full_name(topic_partition): start}
        spec = ReaderSpec(topic_partition, placed, **{"subscription_prefix": "spark-reader", **options})
        now = time.monotonic_ns()
        super().__init__(link, full_name(topic_partition), link.client.open_reader(now, spec))
        if paused:
            link.client.pause(now, self.handle)


class Hold(Subscribed):
    """A durable subscription that is held, so that what is behind it stays, and moved on."""

    def mark_delete(self, timeout: float = 30.0) -> Position | None:
        """Up to where everything is acknowledged; None where the broker does not say."""
        return self.where(timeout).mark_delete

    def acknowledge_up_to(self, position: Position, timeout: float = 30.0) -> None:
        """Everything up to and including this entry is done with, and that is confirmed."""
        client = self.link.client
        client.acknowledge_cumulative(time.monotonic_ns(), self.handle, MessageId(*position))
        self.link.call(
            lambda now: client.flush_acknowledgements(now, self.handle),
            timeout,
            f"acknowledging {self.topic} up to {position}",
        )
