"""Bugs of dead letters and of messages to reconsume later: which are copied, the content of a copy, and the
fate of the original."""

from dataclasses import replace
from typing import Any

from pulsar_sansio.client.acknowledging.ack_commands import AckCommands
from pulsar_sansio.client.commands import consumers as commands_module
from pulsar_sansio.client.consuming.consumer_requests import ConsumerRequests
from pulsar_sansio.client.delivery.received_entries import ReceivedBatch
from pulsar_sansio.client.letter_topics import letter_topics as letters_module
from pulsar_sansio.client.letter_topics.copy_producer import CopyProducer
from pulsar_sansio.client.letter_topics.dead_letter_sorter import DeadLetterSorter
from pulsar_sansio.client.letter_topics.letter_topics import LetterTopics
from pulsar_sansio.client.outputs import RequestDone
from pulsar_sansio.model.config import OutgoingMessage

from ..planted_bug import Patches, bug, nothing
from ..preconditions import general as needs
from ..preconditions import multi_topics as group_needs


@bug("BUG-055", caught_by=("INV-C9", "INV-C10"), needs=[needs.dead_letters])
def dead_letters_are_asked_for_again(patches: Patches) -> None:
    """The client requests redelivery of a message while its copy is on its way."""

    def dead_letter(original: Any, self: Any, messages: Any) -> None:
        original(self, messages)
        bits = sum(1 << max(each.batch_index, 0) for each in messages)
        self._acknowledgements.redelivery.not_copied({messages[0].entry.position: bits})

    patches.around(LetterTopics, "dead_letter", dead_letter)


@bug("BUG-056", caught_by=("INV-C10",), needs=[needs.dead_letters, needs.index_acknowledgement_of_batches])
def what_was_acknowledged_of_a_batch_is_copied(patches: Patches) -> None:
    """All messages of a batch are copied, also those that the broker says are acknowledged."""

    def add_batch(original: Any, self: Any, batch: Any) -> None:
        payloads = batch.entry.batch.payloads
        size = len(payloads)
        if batch.entry.redelivery_count > self._maximum and len(batch.indexes) < size:
            batch = ReceivedBatch(batch.entry, list(payloads), range(size))
        original(self, batch)

    patches.around(DeadLetterSorter, "add_batch", add_batch)


@bug("BUG-057", caught_by=("INV-C10",), needs=[needs.dead_letters])
def dead_letters_are_delivered_as_well(patches: Patches) -> None:
    """Messages that are copied get into the queue all the same."""

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

    def dead_letter(original: Any, self: Any, messages: Any) -> None:
        original(self, messages)
        pending = self._pending_copies.get(messages[0].entry.position)
        if pending is not None:
            pending.permits = 0

    patches.around(LetterTopics, "dead_letter", dead_letter)


@bug("BUG-058", caught_by=("INV-N5",), needs=[needs.dead_letters_of_several])
def producers_of_dead_letters_have_one_name(patches: Patches) -> None:
    """All consumers of a subscription give their producers of dead letters the same name: only the first one
    gets a producer."""

    def producer(original: Any, self: Any, topic: Any, name: Any, *others: Any) -> Any:
        return original(self, topic, "letters" if name is not None else None, *others)

    patches.around(LetterTopics, "_producer", producer)


@bug("BUG-059", caught_by=("INV-C10",), needs=[needs.dead_letters, needs.rich])
def dead_letters_lose_their_properties(patches: Patches) -> None:
    """A copy has the payload, and neither key nor properties of the original."""

    def copy_of(original: Any, message: Any, properties: Any, deliver_at: Any = None) -> Any:
        told = {name: value for name, value in properties.items() if name not in message.properties}
        return OutgoingMessage(message.value, properties=told, deliver_at=deliver_at)

    patches.around(letters_module, "copy_of", copy_of)


@bug("BUG-059", caught_by=("INV-C10", "INV-C4", "INV-N5"), needs=[needs.dead_letters, needs.batches])
def only_the_first_of_a_batch_is_copied(patches: Patches) -> None:
    """The consumer copies one message of a batch, and acknowledges the batch."""

    def dead_letter(original: Any, self: Any, messages: Any) -> None:
        original(self, messages[:1])

    patches.around(LetterTopics, "dead_letter", dead_letter)


@bug("own", caught_by=("INV-C4",), needs=[needs.dead_letters])
def acknowledged_before_the_copy_is_safe(patches: Patches) -> None:
    """The original is acknowledged when its copy is on its way."""

    def dead_letter(original: Any, self: Any, messages: Any) -> None:
        original(self, messages)
        for message in messages:
            self._acknowledgements.commands.copied(message)

    patches.around(LetterTopics, "dead_letter", dead_letter)


@bug("own", caught_by=("INV-N5", "INV-C9"), needs=[needs.dead_letters])
def dead_letters_are_never_acknowledged(patches: Patches) -> None:
    """The copy is safe, and the original stays in the subscription."""
    patches.replace(LetterTopics, "_copied", nothing)


@bug("own", caught_by=("INV-C10",), needs=[needs.dead_letters])
def a_dead_letter_one_delivery_too_early(patches: Patches) -> None:
    """The consumer copies a message that has been delivered exactly as often as it may be."""

    def init(original: Any, self: Any, queue: Any, letters: Any) -> None:
        original(self, queue, letters)
        self._maximum -= 1

    patches.around(DeadLetterSorter, "__init__", init)


@bug("own", caught_by=("INV-N11", "INV-N4", "INV-N5"), needs=[needs.dead_letters])
def copy_producers_are_left_open(patches: Patches) -> None:
    """A consumer is closed, and its producer of dead letters is not."""
    patches.replace(CopyProducer, "close", nothing)


@bug("BUG-078", caught_by=("INV-N5", "INV-C11", "INV-C9"), needs=[needs.dead_letters_of_chunks])
def only_the_last_chunk_of_a_dead_letter_is_acknowledged(patches: Patches) -> None:
    """A message in chunks is copied, and the client loses the record of its chunks on the way. Only the last
    chunk of the original is acknowledged."""

    def copied(original: Any, self: Any, message: Any) -> None:
        self._tracker._chunked.pop(message.entry.position, None)
        original(self, message)

    patches.around(AckCommands, "copied", copied)


# --- later ---------------------------------------------------------------------------------------------


@bug("own", caught_by=("INV-C10",), needs=[group_needs.retries])
def reconsume_count_begins_anew(patches: Patches) -> None:
    """A copy of a copy says that it is the first one: nothing ever goes to the dead letters."""
    patches.replace(letters_module, "times_reconsumed", lambda properties: 0)


@bug("own", caught_by=("INV-C10",), needs=[group_needs.retries])
def reconsumed_without_end(patches: Patches) -> None:
    """A message that was already reconsumed later as often as it may be goes to the retry topic once more."""

    def later(original: Any, self: Any, *arguments: Any) -> None:
        policy = self.policy
        self.policy = replace(policy, max_redeliver_count=policy.max_redeliver_count + 1)
        original(self, *arguments)
        self.policy = policy

    patches.around(LetterTopics, "reconsume_later", later)


@bug("own", caught_by=("INV-C4", "INV-C10"), needs=[group_needs.retries])
def reconsumed_messages_are_acknowledged_at_once(patches: Patches) -> None:
    """The original is acknowledged when its copy is on its way."""

    def later(original: Any, self: Any, *arguments: Any) -> None:
        arguments[-1](None)
        original(self, *arguments)

    patches.around(LetterTopics, "reconsume_later", later)


@bug("own", caught_by=("INV-N5", "INV-C9"), needs=[group_needs.retries])
def reconsumed_messages_are_never_acknowledged(patches: Patches) -> None:
    """The copy is safe, and the original stays in the subscription."""

    def reconsumed_later(original: Any, self: Any, *arguments: Any) -> None:
        if arguments[-1] is not None:  # the copy has failed
            original(self, *arguments)

    patches.around(ConsumerRequests, "_reconsumed_later", reconsumed_later)


@bug("own", caught_by=("INV-C4",), needs=[group_needs.retries_in_order])
def reconsume_later_acknowledges_earlier_messages(patches: Patches) -> None:
    """Where one consumer has all messages, the original is acknowledged with everything before it."""

    def reconsumed_later(original: Any, self: Any, what: Any, error: Any) -> None:
        original(self, what._replace(cumulative=not self._redelivery._single_entries), error)

    patches.around(ConsumerRequests, "_reconsumed_later", reconsumed_later)


@bug("own", caught_by=("INV-C4",), needs=[group_needs.retries_with_all_before])
def earlier_messages_do_not_wait_for_the_copy(patches: Patches) -> None:
    """A message is reconsumed later, and all messages before it are acknowledged while its copy is on its
    way."""

    def later(original: Any, self: Any, request: Any, what: Any, judge: Any) -> None:
        if what.cumulative:
            judge(None)
        original(self, request, what, judge)

    patches.around(LetterTopics, "reconsume_later", later)


@bug("own", caught_by=("INV-C4", "INV-N5"), needs=[group_needs.retries_with_all_before])
def earlier_messages_are_not_acknowledged(patches: Patches) -> None:
    """A message is reconsumed later, with all messages before it to be acknowledged; the client acknowledges
    it alone."""

    def reconsumed_later(original: Any, self: Any, what: Any, error: Any) -> None:
        original(self, what._replace(cumulative=False), error)

    patches.around(ConsumerRequests, "_reconsumed_later", reconsumed_later)


@bug("own", caught_by=("INV-C10",), needs=[group_needs.retries, needs.detaches])
def what_was_copied_once_is_not_copied_again(patches: Patches) -> None:
    """A message that was reconsumed later is redelivered, because its acknowledgement was lost. The
    application asks to reconsume it later again. The client takes the copy that is there already for the one
    that is asked for."""
    safe: dict[Any, set[Any]] = {}

    def later(original: Any, self: Any, request: int, what: Any, judge: Any) -> None:
        message, known = what.message, safe.setdefault(self, set())

        def judged(error: Any) -> None:
            if error is None:
                known.add(message.message_id)
            judge(error)

        if message.message_id in known:
            judge(None)
            self._emit(RequestDone(request, None))
        else:
            original(self, request, what, judged)

    patches.around(LetterTopics, "reconsume_later", later)


@bug("own", caught_by=("INV-C10",), needs=[group_needs.retries])
def reconsumed_messages_come_at_once(patches: Patches) -> None:
    """A copy says how long it is to wait, and does not wait."""

    def copy_of(original: Any, message: Any, properties: Any, deliver_at: Any = None) -> Any:
        return original(message, properties)

    patches.around(letters_module, "copy_of", copy_of)


@bug("own", caught_by=("INV-C10",), needs=[group_needs.retries_often])
def a_copy_of_a_copy_is_of_the_copy(patches: Patches) -> None:
    """A message that is reconsumed later for the second time names the topic where it waited as its
    origin."""

    def origin(original: Any, message: Any, topic: str, subscription: str) -> Any:
        told = original(message, topic, subscription)
        return {**told, "REAL_TOPIC": topic, "ORIGIN_MESSAGE_ID": str(message.message_id)}

    patches.around(letters_module, "origin", origin)


@bug("own", caught_by=("INV-N5", "INV-C10", "INV-C16"), needs=[group_needs.retries])
def no_consumer_where_messages_wait(patches: Patches) -> None:
    """A consumer that may put messages off is not subscribed to the topic where they wait."""

    def with_retry_topic(original: Any, spec: Any) -> Any:
        made = original(spec)
        return made if made is spec else replace(made, topic=spec.topic)

    patches.around(commands_module, "with_retry_topic", with_retry_topic)
