"""Bugs with messages in chunks: at the producer, at the consumer, at the broker."""

from typing import Any

from pulsar_sansio.broker.topics import topic as broker_topic
from pulsar_sansio.client.acknowledging.ack_tracker import AckTracker
from pulsar_sansio.client.arrival.chunk_assembly import ChunkAssembly
from pulsar_sansio.client.producing.admission import Admission
from pulsar_sansio.client.producing.receipt_ids import ReceiptIds
from pulsar_sansio.core.callbacks import ignore

from .planted_bug import Patches, bug
from .preconditions import general as needs

# --- producer ----------------------------------------------------------------------------------------------


@bug("BUG-081", caught_by=("INV-P7", "INV-N5"), needs=[needs.chunks_in_small_windows])
def message_larger_than_the_window(patches: Patches) -> None:
    """A message with more chunks than the window has places waits for room that never comes."""

    def send(original: Any, self: Any, message: Any, publish_time: int) -> Any:
        spec, limit = self._spec, self._limit
        payload = message if isinstance(message, bytes) else message.payload or b""
        most = spec.chunk_max_message_size
        if spec.chunking and most is not None and len(payload) > limit * most:
            self._limit = 0
        try:
            return original(self, message, publish_time)
        finally:
            self._limit = limit

    patches.around(Admission, "_send", send)


@bug("own", caught_by=("INV-P2",), needs=[needs.chunks])
def id_of_the_last_chunk_alone(patches: Patches) -> None:
    """The id of a message in chunks does not contain the position of its first chunk."""

    def add(original: Any, self: Any, ledger: int, entry: int, count: int, first_chunk: Any = None) -> None:
        original(self, ledger, entry, count, None)

    patches.around(ReceiptIds, "add", add)


# --- consumer ----------------------------------------------------------------------------------------------


@bug("BUG-075", caught_by=("INV-N5", "INV-C1", "INV-C3"), needs=[needs.chunks_received, needs.detaches])
def redelivered_first_chunk_spoils_the_message(patches: Patches) -> None:
    """A reconnected producer sends all chunks again. The consumer discards the message and never assembles
    it."""

    def begin(original: Any, self: Any, uuid: Any, before: Any, *rest: Any) -> Any:
        message = original(self, uuid, before, *rest)
        if before is not None:
            message.broken = True
        return message

    patches.around(ChunkAssembly, "_begin", begin)


@bug("BUG-076", caught_by=("INV-N5",), needs=[needs.chunks_received, needs.detaches])
def chunks_of_no_use_are_kept_for_ever(patches: Patches) -> None:
    """The consumer forgets chunks that can never make a message, and never acknowledges them."""

    def expire(original: Any, self: Any) -> None:
        done, self._done_with = self._done_with, ignore
        original(self)
        self._done_with = done

    patches.around(ChunkAssembly, "_expire", expire)


@bug(
    "BUG-080",
    caught_by=("INV-N5", "INV-C1", "INV-C3", "INV-A3"),
    needs=[needs.chunks_received, needs.detaches],
)
def discarded_chunked_messages_are_not_asked_for(patches: Patches) -> None:
    """After a repeated chunk the consumer discards the beginning of its message, and does not ask for
    redelivery."""

    def take(original: Any, self: Any, position: Any, metadata: Any, payload: Any) -> Any:
        before = self._incomplete.get((metadata.producer_name, metadata.uuid or ""))
        again = before is not None and 0 < (metadata.chunk_id or 0) < len(before.positions)
        complete = original(self, position, metadata, payload)
        if again and before is not None:
            before.broken = True
        return complete

    patches.around(ChunkAssembly, "take", take)


@bug("BUG-076", caught_by=("INV-N5",), needs=[needs.chunks_received, needs.detaches])
def first_attempts_are_not_acknowledged(patches: Patches) -> None:
    """When a producer sends a message twice, the chunks of the first attempt stay in the backlog."""

    def take(original: Any, self: Any, *arguments: Any) -> Any:
        done, self._done_with = self._done_with, ignore
        complete = original(self, *arguments)
        self._done_with = done
        return complete

    patches.around(ChunkAssembly, "take", take)


@bug("BUG-077", caught_by=("INV-C9",), needs=[needs.chunks_refused])
def redelivery_of_the_last_chunk_alone(patches: Patches) -> None:
    """A consumer that negatively acknowledges a message in chunks asks only for the last chunk, which makes
    no message."""

    def positions(self: Any, position: Any) -> list[Any]:
        return [position]

    patches.replace(AckTracker, "positions", positions)


@bug("BUG-079", caught_by=("INV-N5", "INV-C4"), needs=[needs.chunks_received])
def last_chunk_alone_is_acknowledged(patches: Patches) -> None:
    """The consumer acknowledges only the last chunk of a message in chunks."""

    def entry(original: Any, self: Any, position: Any) -> Any:
        self._chunked.pop(position, None)
        return original(self, position)

    patches.around(AckTracker, "entry", entry)


@bug("BUG-006", caught_by=("INV-C11", "INV-N5", "INV-C1"), needs=[needs.several_send_chunks])
def chunks_of_other_consumers_acknowledged(patches: Patches) -> None:
    """When a message begins while another is incomplete, the consumer drops the other and acknowledges its
    chunks."""

    def begin(original: Any, self: Any, uuid: Any, *rest: Any) -> Any:
        for other in [each for each in self._incomplete if each != uuid]:
            self._done_with(self._incomplete.pop(other).positions)
        return original(self, uuid, *rest)

    patches.around(ChunkAssembly, "_begin", begin)


@bug("own", caught_by=("INV-C2",), needs=[needs.chunks_received])
def chunks_joined_backwards(patches: Patches) -> None:
    """The consumer joins the payloads of chunks in the wrong order."""

    def take(original: Any, self: Any, *arguments: Any) -> Any:
        complete = original(self, *arguments)
        if complete is not None:
            half = len(complete.payload) // 2
            complete.payload = complete.payload[half:] + complete.payload[:half]
        return complete

    patches.around(ChunkAssembly, "take", take)


# --- broker --------------------------------------------------------------------------------------------


@bug("BUG-082", caught_by=("INV-N5", "INV-P2", "INV-P1", "GAP-11"), needs=[needs.chunks, needs.deduplication])
def deduplication_drops_chunks(patches: Patches) -> None:
    """All chunks of a message have one sequence id. Deduplication takes all after the first for
    duplicates."""

    def every_one(_metadata: Any) -> bool:
        return True

    patches.replace(broker_topic, "is_last_chunk", every_one)
