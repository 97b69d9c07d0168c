"""`ArrivalCounters`: messages that arrived at a consumer and were not delivered, by reason."""

from dataclasses import dataclass, field


@dataclass(slots=True)
class ArrivalCounters:
    """Messages that arrived and were not queued. An entry that cannot be read counts as one message."""

    discarded: int = 0
    """Corrupt messages: a wrong checksum, a payload that cannot be decompressed, a malformed batch. They are
    acknowledged with the error, and the broker does not redeliver them."""
    duplicates: int = 0
    """Messages that were acknowledged before the broker redelivered them (ACK-18)."""
    outdated: int = 0
    """Messages that the broker sent before it began a redelivery, known by their consumer epoch."""
    before_start: int = 0
    """Messages at or before the start id of a non-durable subscription (CONS-33)."""
    compacted_out: int = 0
    """Placeholders that compaction left in a batch (CONS-33)."""
    markers: int = 0
    """Marker entries of the broker itself; they are acknowledged and ignored."""
    undecryptable: int = 0
    """Encrypted messages that the consumer could not decrypt, and did not deliver. They stay unacknowledged,
    so nothing is lost, unless its failure action discards them (CRYPTO-05). A redelivered message counts
    again."""
    dead_letters: int = 0
    """Messages that go to the dead-letter topic instead of the application (DLQ-03)."""
    chunk_duplicates: int = 0
    """Chunks that arrived a second time, in another entry: the producer resent them after a reconnect."""
    chunk_orphans: int = 0
    """Chunks whose predecessor is missing, or that do not fit the other chunks of their message."""
    last_orphan: tuple[int, int] | None = field(default=None, compare=False)
    """Ledger and entry of the last orphan."""
    last_chunk: tuple[int, int] | None = field(default=None, compare=False)
    """Ledger and entry of the last chunk that arrived. All messages before it have arrived; None while that
    is not certain after a reconnect."""
    chunks_dropped: int = 0
    """Chunks dropped because too many messages were incomplete: those of the message that began first."""
    chunks_expired: int = 0
    """Chunks of messages that were not complete in time. They are acknowledged."""
    chunks_oversized: int = 0
    """Chunks of messages larger than `max_chunked_message_size`. They stay unacknowledged."""
    unreadable: tuple[tuple[int, int], tuple[int, int]] | None = field(default=None, compare=False)
    """The first and the last entry, by ledger and entry, from which a message was withheld: discarded,
    undecryptable, too large or dropped."""

    def note_unreadable(self, position: tuple[int, int]) -> None:
        """Record an entry from which a message was withheld from the application."""
        if self.unreadable is None:
            self.unreadable = position, position
        else:
            first, last = self.unreadable
            self.unreadable = min(first, position), max(last, position)
