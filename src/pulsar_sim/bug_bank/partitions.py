"""Bugs of producers of partitioned topics: routing, growth, and several producers that appear as one."""

from typing import Any

from pulsar_sansio.client.partitions.partition_sender import PartitionSender
from pulsar_sansio.client.partitions.partitioned_producer import PartitionedProducer
from pulsar_sansio.client.partitions.routing import HASHES, Router
from pulsar_sansio.client.producing.receipt_ids import ReceiptIds
from pulsar_sansio.model.config import HashingScheme, OutgoingMessage

from .planted_bug import Patches, bug, nothing
from .preconditions import general as needs

# --- where a message goes -----------------------------------------------------------------------------


@bug("own", caught_by=("ROUTE-02",), needs=[needs.keys_over_partitions])
def keys_by_another_hash(patches: Patches) -> None:
    """The producer hashes keys by the scheme that was not requested. Other producers choose other
    partitions."""

    def init(original: Any, self: Any, spec: Any, *rest: Any) -> None:
        original(self, spec, *rest)
        swapped = {
            HashingScheme.JAVA_STRING: HashingScheme.MURMUR3_32,
            HashingScheme.MURMUR3_32: HashingScheme.JAVA_STRING,
        }
        self._hash = HASHES[swapped[spec.hashing]]

    patches.around(Router, "__init__", init)


@bug("own", caught_by=("ROUTE-02",), needs=[needs.keys_over_partitions])
def keys_do_not_count(patches: Patches) -> None:
    """The producer routes a message with a key like one without."""

    def choose(self: Any, now: int, message: Any, partitions: int) -> Any:
        if self._custom is not None:
            return self._ask(self._custom, message, partitions)
        return self.keyless(now, partitions)

    patches.replace(Router, "choose", choose)


@bug("own", caught_by=("ROUTE-04",), needs=[needs.round_robin_over_partitions])
def no_turn_after_a_message_with_a_key(patches: Patches) -> None:
    """The round robin advances with every message, even if its key chooses the partition."""

    def advance(self: Any, message: Any) -> None:
        if self._moves:
            self._counter += 1

    patches.replace(Router, "advance", advance)


@bug("own", caught_by=("ROUTE-05",), needs=[needs.single_partition])
def single_partition_changes(patches: Patches) -> None:
    """The producer draws a new single partition for every message."""

    def keyless(original: Any, self: Any, now: int, partitions: int) -> Any:
        if self._single:
            self._counter += 1
            return self._counter % partitions
        return original(self, now, partitions)

    patches.around(Router, "keyless", keyless)


# --- growth ---------------------------------------------------------------------------------------------


@bug("BUG-106", caught_by=("INV-N5",), needs=[needs.grows])
def growth_not_noticed(patches: Patches) -> None:
    """The producer keeps the number of partitions that it began with."""
    patches.replace(PartitionedProducer, "_partitions_known", nothing)


@bug("BUG-106", caught_by=("INV-N9", "INV-P1", "INV-N5"), needs=[needs.grows])
def growth_closes_healthy_partitions(patches: Patches) -> None:
    """When a topic grows, the client closes the producers of all its partitions and opens only those of new
    ones."""

    def known(original: Any, self: Any, partitions: int) -> None:
        before = list(self._alive) if partitions > len(self._sender.partitions) else []
        original(self, partitions)
        for partition in before:
            partition.producer.close()

    patches.around(PartitionedProducer, "_partitions_known", known)


@bug(
    "BUG-106",
    caught_by=("PART-12", "INV-P1", "INV-N5"),
    needs=[needs.partitioned, needs.fault("partitions_out_of_date")],
)
def partitions_shrink(patches: Patches) -> None:
    """The client believes a smaller number of partitions, and closes the producers beyond it."""

    def known(original: Any, self: Any, partitions: int) -> None:
        present = self._sender.partitions
        if partitions < len(present):
            gone = [each for each in present[partitions:] if each is not None]
            del present[partitions:]
            for partition in gone:
                partition.producer.close()
        original(self, partitions)

    patches.around(PartitionedProducer, "_partitions_known", known)


@bug("BUG-106", caught_by=("INV-N5",), needs=[needs.grows, needs.fault("partitions_refused")])
def failed_question_is_the_last_one(patches: Patches) -> None:
    """When a request for the number of partitions fails once, the client never repeats it."""
    patches.replace(PartitionedProducer, "_not_known", nothing)


# --- several producers as one -----------------------------------------------------------------------------


@bug("own", caught_by=("INV-P8",), needs=[needs.flushes_over_partitions])
def flush_of_one_partition(patches: Patches) -> None:
    """A flush is done when the flush of one partition is done."""

    def flushed(original: Any, self: Any, partition: Any, outcome: Any) -> None:
        asked = self._flushes._asked.get(outcome.request)
        if asked is not None:
            asked.waiting = {str(partition.topic)}
        original(self, partition, outcome)

    patches.around(PartitionedProducer, "on_partition_flushed", flushed)


@bug("own", caught_by=("INV-P1", "INV-P2", "INV-N5"), needs=[needs.partitioned])
def early_messages_forgotten(patches: Patches) -> None:
    """The producer forgets messages sent before it knows that the topic has partitions."""
    patches.replace(PartitionSender, "take_unsealed", nothing)


@bug("own", caught_by=("INV-P9",), needs=[needs.partitioned])
def message_ids_without_the_partition(patches: Patches) -> None:
    """The id of a message does not contain its partition."""

    def init(original: Any, self: Any, partition: int) -> None:
        original(self, -1)

    patches.around(ReceiptIds, "__init__", init)


@bug("own", caught_by=("INV-N5",), needs=[needs.partitioned, needs.small_windows])
def room_in_a_partition_is_not_announced(patches: Patches) -> None:
    """An application that found one partition full is never told that it has room again."""
    patches.replace(PartitionedProducer, "on_partition_writable", nothing)


@bug("own", caught_by=("ROUTE-06",), needs=[needs.partitioned])
def routing_function_sees_half_the_message(patches: Patches) -> None:
    """The producer gives the application's routing function a message without its payload."""

    original = Router._ask

    def ask(custom: Any, message: Any, partitions: int) -> Any:
        key = None if isinstance(message, bytes) else message.key
        return original(custom, OutgoingMessage(b"", key=key), partitions)

    def choose(whole: Any, self: Any, now: int, message: Any, partitions: int) -> Any:
        if self._custom is not None:
            return ask(self._custom, message, partitions)
        return whole(self, now, message, partitions)

    patches.around(Router, "choose", choose)


@bug("own", caught_by=("INV-N6",), needs=[needs.grows])
def partitions_are_asked_for_all_the_time(patches: Patches) -> None:
    """The client asks for the number of partitions every 20 ms, whatever the interval is."""

    def ask(original: Any, self: Any) -> None:
        original(self)
        self._update.set(self._context.now + 20_000_000)

    patches.around(PartitionedProducer, "_ask_for_partitions", ask)
