"""What producers and consumers count (rules STATS-02 to STATS-05), for whoever asks.

Counted is by entry and not by message, and nothing is counted that follows from something else; so asking
costs more than counting. Nothing is reset: who wants rates asks twice and divides.
"""

from collections.abc import Iterable
from dataclasses import astuple, dataclass, fields
from operator import add


@dataclass(frozen=True, slots=True)
class SendLatency:
    """Seconds from the moment an entry (a message, or a batch) was closed until its receipt came, over the
    latest entries: at most 1024 of a producer, or of each partition. Of entries whose receipts came together
    the first one counts, which had waited longest.

    Half of them took no longer than `p50`, 99.9 % no longer than `p999`.
    """

    samples: int
    p50: float
    p75: float
    p95: float
    p99: float
    p999: float
    maximum: float

    @classmethod
    def of(cls, nanoseconds: Iterable[int]) -> "SendLatency | None":
        """None where nothing was measured."""
        ordered = sorted(nanoseconds)
        if not ordered:
            return None
        last = len(ordered) - 1

        def within(permille: int) -> float:
            return ordered[min(last, len(ordered) * permille // 1000)] / 1e9

        return cls(
            len(ordered), within(500), within(750), within(950), within(990), within(999), ordered[last] / 1e9
        )


@dataclass(frozen=True, slots=True)
class ProducerStatistics:
    """`messages_sent`, `bytes_sent`: messages written to a connection and the bytes of their payloads before
    compression, again each time they are sent again. `batches`, `batched_messages`: entries of several
    messages. `confirmed`, `failed`: what became of the messages that were taken, each counted once.
    `pending`, `pending_bytes`: those taken and not settled, and their payloads."""

    messages_sent: int = 0
    bytes_sent: int = 0
    batches: int = 0
    batched_messages: int = 0
    confirmed: int = 0
    failed: int = 0
    pending: int = 0
    pending_bytes: int = 0
    latency: SendLatency | None = None


_COUNTERS = [field.name for field in fields(ProducerStatistics) if field.name != "latency"]


@dataclass(frozen=True, slots=True)
class ConsumerStatistics:
    """`messages_received`: handed out to the application. `bytes_received`: of payload that arrived, as it
    was stored: compressed, with the headers of batches. `acknowledgements_sent`: message ids written in
    acknowledgements, one for a whole batch, and again each time they are sent again.
    `acknowledgements_failed`: those that the broker refused, or whose answer was lost with a subscription
    that is not durable. `available`: messages that have arrived and wait to be received. `batches_forgotten`:
    entries of which the consumer had to forget, for want of room, which messages were acknowledged or tried;
    when one is delivered again, all its messages are."""

    messages_received: int = 0
    bytes_received: int = 0
    acknowledgements_sent: int = 0
    acknowledgements_failed: int = 0
    available: int = 0
    batches_forgotten: int = 0

    def __add__(self, other: "ConsumerStatistics") -> "ConsumerStatistics":
        """Of both together."""
        return ConsumerStatistics(*map(add, astuple(self), astuple(other)))


def together(parts: Iterable[ProducerStatistics], latencies: Iterable[int]) -> ProducerStatistics:
    """The sum of several, with the latencies of all."""
    parts = list(parts)
    sums = {name: sum(getattr(part, name) for part in parts) for name in _COUNTERS}
    return ProducerStatistics(**sums, latency=SendLatency.of(latencies))
