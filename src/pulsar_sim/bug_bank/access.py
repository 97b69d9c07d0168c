"""Bugs of access and sequence ids: exclusive access, ids that applications choose, batches by key, the memory
limit."""

from copy import copy
from typing import Any

from pulsar_sansio.broker.topics.producing.producers import Producers
from pulsar_sansio.client.memory import MemoryLimit
from pulsar_sansio.client.producing.entry_builder import EntryBuilder
from pulsar_sansio.client.producing.key_batches import KeyBatch
from pulsar_sansio.client.producing.producer import Producer
from pulsar_sansio.client.producing.send_window import SendWindow
from pulsar_sansio.wire import proto

from .planted_bug import Patches, bug, nothing
from .preconditions import general as needs

# --- exclusive access --------------------------------------------------------------------------------------


@bug("own", caught_by=("INV-P11",), needs=[needs.exclusive, needs.detaches])
def late_holders_are_let_in(patches: Patches) -> None:
    """The broker ignores the epoch of a returning producer, although another producer had the topic
    meanwhile."""
    patches.replace(Producers, "_check_epoch", nothing)


@bug("own", caught_by=("CHECK-26", "INV-P11"), needs=[needs.exclusive, needs.detaches])
def epoch_forgotten_on_a_reconnect(patches: Patches) -> None:
    """After a reconnect the client asks for exclusive access as if its producer had never had it."""

    def open_command(original: Any, self: Any, *arguments: Any) -> Any:
        self._registration._topic_epoch = None
        return original(self, *arguments)

    patches.around(Producer, "open_command", open_command)


@bug("own", caught_by=("INV-P11",), needs=[needs.exclusive])
def epoch_never_moves(patches: Patches) -> None:
    """The broker gives every holder of exclusive access the same epoch."""

    def admit(original: Any, self: Any, producer: Any) -> None:
        if producer.mode != proto.Shared and producer.topic_epoch is None:
            producer.topic_epoch = self.topic_epoch or 0
        original(self, producer)

    patches.around(Producers, "_admit", admit)


@bug("own", caught_by=("INV-P11",), needs=[needs.fencing])
def fenced_producers_go_on(patches: Patches) -> None:
    """The broker admits a producer with exclusive access, and does not send the fenced producers away."""

    def fence(self: Any) -> None:
        self.by_name.clear()
        self.exclusive = None

    patches.replace(Producers, "_fence_all", fence)


@bug("own", caught_by=("INV-N5",), needs=[needs.waiting])
def waiting_producers_are_forgotten(patches: Patches) -> None:
    """A topic becomes free, and the broker does not tell the producers that wait for it."""

    def leave(original: Any, self: Any, producer: Any) -> None:
        waiting = list(self.waiting)
        if producer not in self.waiting:
            self.waiting.clear()
        original(self, producer)
        if producer not in waiting:
            self.waiting.update(dict.fromkeys(waiting))

    patches.around(Producers, "detach", leave)


# --- sequence ids ------------------------------------------------------------------------------------------


@bug("BUG-024", caught_by=("INV-P4", "INV-P3"), needs=[needs.explicit_ids, needs.detaches])
def sequence_ids_of_the_application_ignored(patches: Patches) -> None:
    """The producer sends a message under the next id instead of the application's. A resent message is stored
    again."""

    def take(original: Any, self: Any, message: Any, ticket: int, publish_time: int) -> None:
        if not isinstance(message, bytes) and message.sequence_id is not None:
            message = copy(message)
            message.sequence_id = None
        original(self, message, ticket, publish_time)

    patches.around(EntryBuilder, "take", take)


@bug("own", caught_by=("INV-P6",), needs=[needs.initial_ids])
def initial_sequence_id_ignored(patches: Patches) -> None:
    """The first message has the sequence id 0, whatever initial id the application gave."""

    def init(original: Any, self: Any, *arguments: Any) -> None:
        original(self, *arguments)
        self.next_sequence_id = 0

    patches.around(EntryBuilder, "__init__", init)


@bug("BUG-023", caught_by=("INV-P6",), needs=[needs.batches_by_key])
def batches_by_key_overlap(patches: Patches) -> None:
    """A batch by key declares the ids from its first to its last message. These ranges overlap between
    keys."""

    def seal(self: Any, encoder: Any) -> Any:
        count = len(self.tickets)
        lowest = self.highest - (self.tickets[-1] - self.tickets[0])
        if count == 1:
            return encoder.single(self.first, self.highest, self.publish_time)
        return encoder.batch(self.first, self.publish_time, lowest, self.highest, count, self.members)

    patches.replace(KeyBatch, "seal", seal)


@bug("BUG-089", caught_by=("INV-P1", "INV-P8", "INV-N5"), needs=[needs.batches_by_key])
def batches_by_key_never_confirmed(patches: Patches) -> None:
    """The producer does not report the receipt of a batch by key to the application."""
    patches.replace(SendWindow, "_confirm_key_batch", nothing)


@bug("own", caught_by=("INV-P1", "INV-P2"), needs=[needs.batches_by_key])
def batches_by_key_confirm_a_row(patches: Patches) -> None:
    """A batch by key confirms consecutive tickets from its first one on, although some belong to other
    batches."""

    def confirm(original: Any, self: Any, entry: Any, ledger_id: int, entry_id: int) -> None:
        first = entry.tickets[0]
        entry.tickets = list(range(first, first + entry.count))
        original(self, entry, ledger_id, entry_id)

    patches.around(SendWindow, "_confirm_key_batch", confirm)


# --- memory ------------------------------------------------------------------------------------------------


@bug("BUG-083", caught_by=("INV-P7",), needs=[needs.memory_limited, needs.producers_close])
def memory_released_twice(patches: Patches) -> None:
    """Messages that fail together give their memory back twice, so that the limit loses its effect."""

    def fail_all(original: Any, self: Any, error: Any) -> None:
        size = sum(entry.size for entry in self.entries)
        original(self, error)
        self._memory.free += size

    patches.around(SendWindow, "fail_all", fail_all)


@bug("BUG-084", caught_by=("INV-P7", "INV-N5"), needs=[needs.memory_limited, needs.producers_close])
def memory_of_failures_not_released(patches: Patches) -> None:
    """Messages that fail together do not give their memory back."""

    def fail_all(original: Any, self: Any, error: Any) -> None:
        size = sum(entry.size for entry in self.entries)
        original(self, error)
        self._memory.free -= size

    patches.around(SendWindow, "fail_all", fail_all)


@bug("BUG-084", caught_by=("INV-N5",), needs=[needs.memory_limited])
def free_memory_is_not_announced(patches: Patches) -> None:
    """Memory becomes free, and the client does not tell the producers that wait for it."""
    patches.replace(MemoryLimit, "notify", nothing)
