"""What arrived at a consumer and was not handed out, counted by reason."""

from dataclasses import dataclass, field


@dataclass(slots=True)
class ArrivalCounters:
    """Messages that arrived and were not queued, by reason. An entry that cannot be read counts as one."""

    discarded: int = 0
    """Corrupt: a wrong checksum, a payload that cannot be decompressed, a malformed batch. The broker was
    told, and does not deliver them again."""
    duplicates: int = 0
    """Acknowledged before they came again (ACK-18)."""
    outdated: int = 0
    """Sent before the broker had gone back for a redelivery (consumer epoch)."""
    before_start: int = 0
    """At or before the start id of a non-durable subscription (CONS-33)."""
    compacted_out: int = 0
    """Placeholders that compaction left in a batch (CONS-33)."""
    markers: int = 0
    """The broker's own entries; acknowledged and ignored."""
    undecryptable: int = 0
    """Encrypted, and there is no key: they stay unacknowledged, so nothing is lost (CRYPTO-05). One that the
    broker sends again counts again."""
    dead_letters: int = 0
    """Copied to the dead-letter topic in place of being delivered, or on their way there (DLQ-03)."""
    chunk_duplicates: int = 0
    """Chunks that came a second time, in another entry: the producer sent them again after a reconnect."""
    chunk_orphans: int = 0
    """Chunks of which one before them is missing, or that do not fit to the others."""
    last_orphan: tuple[int, int] | None = field(default=None, compare=False)
    """Ledger and entry of the last of these."""
    last_chunk: tuple[int, int] | None = field(default=None, compare=False)
    """Ledger and entry of the last chunk that came, whatever became of it. Everything before it has come, and
    is no longer in the queue when that is empty; None while that is not so after a reconnect."""
    chunks_dropped: int = 0
    """Chunks held when too many messages were incomplete at a time, of the one that began first."""
    chunks_expired: int = 0
    """Chunks of a message that was not complete in time; acknowledged."""
    chunks_oversized: int = 0
    """Chunks of a message larger than `max_chunked_message_size`. They stay unacknowledged."""
    unreadable: tuple[tuple[int, int], tuple[int, int]] | None = field(default=None, compare=False)
    """First and last entry, by ledger and entry, of which something was discarded, undecryptable or too
    large, or dropped though it was not broken."""

    def note_unreadable(self, place: tuple[int, int]) -> None:
        """Something of this entry is not for the application, which might miss it."""
        if self.unreadable is None:
            self.unreadable = place, place
        else:
            first, last = self.unreadable
            self.unreadable = min(first, place), max(last, place)
