"""Bugs of dead letters: what is copied, what is in a copy, and what becomes of the original."""

from typing import Any

from ...client import letters as letters_module
from ...client.items import BatchItem
from ...client.letter_box import LetterBox
from ...client.letters import DeadLetterSorter, Letters
from ...model.config import OutgoingMessage
from . import needs
from .mutation import Patches, bug, nothing


@bug("BUG-055", caught_by=("INV-C9", "INV-C10"), needs=[needs.dead_letters])
def dead_letters_are_asked_for_again(patches: Patches) -> None:
    """While a message is copied it is asked for again as well."""

    def bury(original: Any, self: Any, messages: Any) -> None:
        original(self, messages)
        self._again([messages[0].entry.place])

    patches.around(Letters, "bury", bury)


@bug("BUG-056", caught_by=("INV-C10",), needs=[needs.dead_letters, needs.index_acknowledgement_of_batches])
def what_was_acknowledged_of_a_batch_is_copied(patches: Patches) -> None:
    """All messages of a batch are copied, also those that the broker says are acknowledged."""

    def add_batch(original: Any, self: Any, batch: Any) -> None:
        payloads = batch.entry.batch.payloads
        size = len(payloads)
        if batch.entry.redelivery_count > self._maximum and len(batch.indexes) < size:
            batch = BatchItem(batch.entry, list(payloads), range(size))
        original(self, batch)

    patches.around(DeadLetterSorter, "add_batch", add_batch)


@bug("BUG-057", caught_by=("INV-C10",), needs=[needs.dead_letters])
def dead_letters_are_delivered_as_well(patches: Patches) -> None:
    """What is copied gets into the queue all the same."""

    def add_batch(original: Any, self: Any, batch: Any) -> None:
        original(self, batch)
        if batch.entry.redelivery_count > self._maximum:
            self._queue.add_batch(batch)

    def add(original: Any, self: Any, message: Any) -> None:
        original(self, message)
        if message.entry.redelivery_count > self._maximum:
            self._queue.add(message)

    patches.around(DeadLetterSorter, "add_batch", add_batch)
    patches.around(DeadLetterSorter, "add", add)


@bug("BUG-057", caught_by=("INV-C6", "INV-N5"), needs=[needs.dead_letters])
def permits_of_dead_letters_lost(patches: Patches) -> None:
    """A message that is copied gives no permit back."""

    def bury(original: Any, self: Any, messages: Any) -> None:
        original(self, messages)
        burial = self._burials.get(messages[0].entry.place)
        if burial is not None:
            burial.permits = 0

    patches.around(Letters, "bury", bury)


@bug("BUG-058", caught_by=("INV-N5",), needs=[needs.dead_letters_of_several])
def producers_of_dead_letters_have_one_name(patches: Patches) -> None:
    """All consumers of a subscription give their producers of dead letters the same name: only the first one
    gets a producer."""

    def producer(original: Any, topic: Any, name: Any, initial: Any) -> Any:
        return original(topic, "letters" if name is not None else None, initial)

    patches.around(letters_module, "_producer", producer)


@bug("BUG-059", caught_by=("INV-C10",), needs=[needs.dead_letters, needs.rich])
def dead_letters_lose_what_is_said_of_them(patches: Patches) -> None:
    """A copy has the payload, and neither key nor properties of the original."""

    def copy_of(original: Any, message: Any, properties: Any, deliver_at: Any = None) -> Any:
        told = {name: value for name, value in properties.items() if name not in message.properties}
        return OutgoingMessage(message.value, properties=told, deliver_at=deliver_at)

    patches.around(letters_module, "copy_of", copy_of)


@bug("BUG-059", caught_by=("INV-C10", "INV-C4", "INV-N5"), needs=[needs.dead_letters, needs.batches])
def only_the_first_of_a_batch_is_copied(patches: Patches) -> None:
    """Of a batch one message is copied, and the batch is acknowledged."""

    def bury(original: Any, self: Any, messages: Any) -> None:
        original(self, messages[:1])

    patches.around(Letters, "bury", bury)


@bug("own", caught_by=("INV-C4",), needs=[needs.dead_letters])
def acknowledged_before_the_copy_is_safe(patches: Patches) -> None:
    """The original is acknowledged when its copy is on its way."""

    def bury(original: Any, self: Any, messages: Any) -> None:
        original(self, messages)
        self._safe(messages[0].entry.place)

    patches.around(Letters, "bury", bury)


@bug("own", caught_by=("INV-N5", "INV-C9"), needs=[needs.dead_letters])
def dead_letters_are_never_acknowledged(patches: Patches) -> None:
    """The copy is safe, and the original stays in the subscription."""
    patches.replace(Letters, "_copied", nothing)


@bug("own", caught_by=("INV-C10",), needs=[needs.dead_letters])
def a_dead_letter_one_delivery_too_early(patches: Patches) -> None:
    """What has come as often as it may is copied already."""

    def init(original: Any, self: Any, queue: Any, letters: Any) -> None:
        original(self, queue, letters)
        self._maximum -= 1

    patches.around(DeadLetterSorter, "__init__", init)


@bug("own", caught_by=("INV-N11", "INV-N4", "INV-N5"), needs=[needs.dead_letters])
def letter_boxes_are_left_open(patches: Patches) -> None:
    """A consumer is closed, and its producer of dead letters is not."""
    patches.replace(LetterBox, "close", nothing)
