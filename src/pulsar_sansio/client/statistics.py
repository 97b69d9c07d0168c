"""`ProducerStatistics` and `ConsumerStatistics`: the counts of producers and consumers.

The machines count by entry and not by message, and count nothing that follows from another count. Reading
statistics therefore costs more than counting. No count is reset: an application reads twice and divides to
get a rate.
"""

from collections.abc import Iterable
from dataclasses import astuple, dataclass, fields
from operator import add


@dataclass(frozen=True, slots=True)
class SendLatency:
    """Seconds from the moment an entry (a message, or a batch) was closed until its receipt arrived.

    The samples are the latest entries, at most 1024 of a producer or of each partition. When receipts arrive
    together, the first entry counts, which has waited longest. Half of the samples took no longer than `p50`,
    99.9 % no longer than `p999`.
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
        """Sort latencies in nanoseconds; return None when nothing was measured."""
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
    """The counts of a producer.

    `messages_sent`, `bytes_sent`: messages written to a connection, and the bytes of their payloads before
    compression; a resent message counts again. `batches`, `batched_messages`: entries of several messages,
    and their messages. `confirmed`, `failed`: settled messages, each counted once. `pending`,
    `pending_bytes`: messages that are taken and not settled, and the bytes of their payloads.
    `key_failures`: attempts to read the encryption keys that failed while the producer went on.
    """

    messages_sent: int = 0
    bytes_sent: int = 0
    batches: int = 0
    batched_messages: int = 0
    confirmed: int = 0
    failed: int = 0
    pending: int = 0
    pending_bytes: int = 0
    key_failures: int = 0
    latency: SendLatency | None = None


_COUNTERS = [field.name for field in fields(ProducerStatistics) if field.name != "latency"]


@dataclass(frozen=True, slots=True)
class ConsumerStatistics:
    """The counts of a consumer.

    `messages_received`: messages delivered to the application. `bytes_received`: bytes of payload as stored:
    compressed, with the headers of batches. `acknowledgements_sent`: message ids written in acknowledgements,
    one for a whole batch. A resent id counts again; that of a message that is discarded does not count.
    `acknowledgements_failed`: acknowledgements that the broker refused, or whose answer was lost with a
    non-durable subscription. `available`: messages in the receiver queue. `batches_forgotten`: entries whose
    acknowledged and delivered messages the consumer had to discard for lack of room; when such an entry is
    redelivered, all its messages are.
    """

    messages_received: int = 0
    bytes_received: int = 0
    acknowledgements_sent: int = 0
    acknowledgements_failed: int = 0
    available: int = 0
    batches_forgotten: int = 0

    def __add__(self, other: "ConsumerStatistics") -> "ConsumerStatistics":
        """Add up the counts of two consumers."""
        return ConsumerStatistics(*map(add, astuple(self), astuple(other)))


def together(parts: Iterable[ProducerStatistics], latencies: Iterable[int]) -> ProducerStatistics:
    """Add up the counts of several producers, with the latencies of all."""
    parts = list(parts)
    sums = {name: sum(getattr(part, name) for part in parts) for name in _COUNTERS}
    return ProducerStatistics(**sums, latency=SendLatency.of(latencies))
