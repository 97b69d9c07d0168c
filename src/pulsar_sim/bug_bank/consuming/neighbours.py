"""Bugs of one bad message in a batch: the fate of its neighbours, and the number of tries of each message."""

from typing import Any

from pulsar_sansio.client.acknowledging.ack_commands import AckCommands
from pulsar_sansio.client.acknowledging.ack_tracker import AckTracker
from pulsar_sansio.client.acknowledging.held_back import HeldBack
from pulsar_sansio.client.acknowledging.redelivery import NegativeAcknowledgements, Redelivery
from pulsar_sansio.client.delivery.received_entries import ReceivedBatch
from pulsar_sansio.client.letter_topics.dead_letter_sorter import DeadLetterSorter
from pulsar_sansio.client.letter_topics.delivery_counts import DeliveryCounts

from ..planted_bug import Patches, bug, nothing
from ..preconditions import general as needs
from ..preconditions import reading as reading_needs


@bug("own", caught_by=("INV-C19",), needs=[needs.bad_messages])
def acknowledged_neighbours_are_delivered_again(patches: Patches) -> None:
    """The client forgets what is acknowledged of a batch when the batch is redelivered."""

    def batch(original: Any, self: Any, position: Any, *arguments: Any) -> Any:
        self._batches.pop(position, None)
        return original(self, position, *arguments)

    patches.around(AckTracker, "batch", batch)


@bug("own", caught_by=("INV-C10",), needs=[needs.bad_messages])
def acknowledged_neighbours_are_copied(patches: Patches) -> None:
    """When one message of a batch has come too often, all of the batch are copied."""

    def add_batch(original: Any, self: Any, batch: Any) -> None:
        if batch.entry.redelivery_count > self._maximum and batch.entry.batch is not None:
            payloads = batch.entry.batch.payloads
            batch = ReceivedBatch(batch.entry, payloads, range(len(payloads)))
        original(self, batch)

    patches.around(DeadLetterSorter, "add_batch", add_batch)


@bug("own", caught_by=("INV-C9",), needs=[needs.bad_messages])
def asked_for_while_neighbours_wait(patches: Patches) -> None:
    """A batch is asked for when the delay of one message is over, whatever the others are doing."""
    patches.replace(HeldBack, "sort", lambda self, positions, delay: list(positions))


@bug("own", caught_by=("INV-C9", "INV-N5"), needs=[needs.bad_messages])
def neighbours_are_waited_for_and_forgotten(patches: Patches) -> None:
    """The last neighbour is settled, and the batch is not asked for then."""
    patches.replace(HeldBack, "settled", nothing)


@bug("own", caught_by=("INV-C10",), needs=[needs.bad_messages, needs.detaches])
def queued_messages_count_as_delivered(patches: Patches) -> None:
    """Deliveries that were dropped from the queue count towards the dead letters."""
    patches.replace(DeliveryCounts, "taken_back", nothing)


@bug("own", caught_by=("INV-C10",), needs=[needs.bad_messages])
def a_batch_counts_deliveries_of_its_entry(patches: Patches) -> None:
    """One message has come too often, and its neighbours that were not tried so often are copied as well."""
    patches.replace(DeliveryCounts, "of", lambda self, entry, index: entry.redelivery_count)


@bug("own", caught_by=("INV-C4", "INV-C9", "INV-N5"), needs=[needs.bad_messages])
def a_copy_acknowledges_the_whole_batch(patches: Patches) -> None:
    """One message of a batch is copied, and all of the batch is acknowledged."""

    def copied(self: Any, record: Any, index: int) -> Any:
        return record, self.entry(record.position)

    patches.replace(AckTracker, "copied", copied)


@bug("own", caught_by=("INV-C19",), needs=[needs.bad_messages, needs.detaches, needs.kept])
def acknowledged_in_the_queue_and_delivered(patches: Patches) -> None:
    """The application acknowledges a message while a second copy waits in the queue. The client delivers that
    copy to the application all the same."""
    patches.replace(Redelivery, "take_back", nothing)


@bug("own", caught_by=("INV-C9",), needs=[needs.batches, needs.nacks_when_shared])
def a_delay_is_cut_short_by_a_neighbour(patches: Patches) -> None:
    """A batch is asked for when the delay of the first message is over, not of the last."""

    def add_message(self: Any, position: Any, redelivery_count: int, now: int) -> None:
        self.add_after_delay(position, redelivery_count, now)

    patches.replace(NegativeAcknowledgements, "add_message", add_message)


@bug(
    "own",
    caught_by=("INV-C7", "INV-C3", "INV-N5"),
    needs=[reading_needs.roams_and_acknowledges, needs.batches],
)
def knowledge_survives_a_seek(patches: Patches) -> None:
    """Messages that were acknowledged before a seek are not delivered after it."""
    patches.replace(AckTracker, "moved", nothing)
    patches.replace(AckCommands, "renew", nothing)
