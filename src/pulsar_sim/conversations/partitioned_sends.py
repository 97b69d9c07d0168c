"""Messages for the partitions of a topic, which are confirmed in any order among each other.

Owns a model of the tickets: one sequence for all partitions, each settled by its own partition, also by one
that ends (PART-02). A call with several messages stops at the first partition without room.
"""

from typing import TYPE_CHECKING

from pulsar_sansio.client.outputs import (
    Attached,
    Detached,
    PartitionEnded,
    ProducerReady,
    Receipts,
    RequestDone,
    RequestFailed,
    SendFailed,
)
from pulsar_sansio.client.outputs import Writable as HasRoom
from pulsar_sansio.model.config import OutgoingMessage, ProducerSpec, RoutingMode
from pulsar_sansio.model.errors import ProducerQueueIsFull
from pulsar_sansio.wire import proto, unpack_payload

from .raw_broker import WALL, RawBroker, T

if TYPE_CHECKING:
    from ..engine.randomness import Stream

STEPS = 60
PARTITIONS = 3
TOPIC = "persistent://public/default/raw-partitioned"


def _route(message: OutgoingMessage, partitions: int) -> int:
    """The first byte of a payload names the partition."""
    return (message.payload or b"\0")[0] % partitions


class PartitionedSends:
    """One producer of a topic with three partitions, and a broker that confirms."""

    def __init__(self, raw: RawBroker, stream: "Stream") -> None:
        raw.partitions = PARTITIONS
        self._raw = raw
        self._client = raw.client
        self._stream = stream
        self._window = stream.between(1, 4)
        across = stream.choice((self._window * PARTITIONS, 50_000))
        is_single = stream.chance(300)
        spec = ProducerSpec(
            topic=TOPIC,
            name="raw",
            batching=None,
            max_pending_messages=self._window if across == 50_000 else 1000,
            max_pending_messages_across_partitions=across,
            routing=RoutingMode.SINGLE_PARTITION if is_single else _route,
            send_timeout=0.0,
            partitions_update_interval=None,
        )
        self._handle: int = raw.call(self._client.open_producer, spec)
        connected = [each.connected for each in self._client.partition_statistics(self._handle)]
        raw.agree("connected partitions", connected, [False] * PARTITIONS)
        self._wire_ids = [0] * PARTITIONS
        for _ in range(PARTITIONS):
            command = raw.expect(T.PRODUCER)
            index = int(command.topic.rpartition("-")[2])
            self._wire_ids[index] = command.producer_id
            raw.open_producer(command)
        raw.said(ProducerReady(self._handle, "raw", -1, TOPIC))
        self._ticket = 0
        self._pending: list[list[int]] = [[] for _ in range(PARTITIONS)]
        """The tickets of each partition."""
        self._sequence_ids = [0] * PARTITIONS
        """The sequence id of the next message of each partition."""
        self._ended: set[int] = set()
        self._flushes: list[tuple[int, int]] = []
        """Each request, and the ticket that it waits for."""
        self._broken: set[int] = set()
        """The flushes that wait for a message that failed."""
        self._wants_room = False
        self._entry = 0
        self._counts = [[0, 0] for _ in range(PARTITIONS)]
        """The confirmed and failed messages of each partition."""
        self._single: int | None = None
        """The partition of all messages without a key."""
        if is_single:
            raw.call(self._client.send, self._handle, b"single", WALL)
            self._single = self._wire_ids.index(raw.expect(T.SEND).producer_id)
            self._sequence_ids[self._single] = self._ticket = 1
            self._pending[self._single].append(0)

    def hold(self) -> None:
        steps = (
            (self._send, 30),
            (self._send_several, 20),
            (self._confirm, 40),
            (self._refuse, 5),
            (self._flush, 10),
            (self._end, 3),
        )
        for _ in range(STEPS):
            self._stream.weighted(steps)()
            self._check()
        self._reattach()
        self._check()

    # --- what happens ---

    def _message(self) -> tuple[bytes | OutgoingMessage, int]:
        index = self._stream.below(PARTITIONS) if self._single is None else self._single
        payload = bytes([index]) + b"x" * self._stream.below(5)
        if self._single is not None:
            return payload, index
        return OutgoingMessage(payload, key="k") if self._stream.chance(300) else payload, index

    def _send(self) -> None:
        raw = self._raw
        message, index = self._message()
        if index not in self._ended and len(self._pending[index]) >= self._window:
            try:
                raw.call(self._client.send, self._handle, message, WALL)
            except ProducerQueueIsFull:
                self._wants_room = True
                return
            raw.fail(f"partition {index} has no room, and takes a message")
        raw.agree("ticket", raw.call(self._client.send, self._handle, message, WALL), self._ticket)
        self._take(message, index)

    def _send_several(self) -> None:
        raw = self._raw
        messages = [self._message() for _ in range(self._stream.between(1, 6))]
        first, room = self._ticket, [self._window - len(each) for each in self._pending]
        fitting = 0
        for _, index in messages:
            if index not in self._ended and room[index] <= 0:
                self._wants_room = True
                break
            room[index] -= 1
            fitting += 1
        tickets = raw.call(self._client.send_many, self._handle, [each for each, _ in messages], WALL)
        raw.agree("tickets", list(tickets), list(range(first, first + fitting)))
        for message, index in messages[:fitting]:
            self._take(message, index)

    def _take(self, message: bytes | OutgoingMessage, index: int) -> None:
        """Expect the SEND of a message, or its failure where the partition has ended."""
        raw, ticket = self._raw, self._ticket
        self._ticket += 1
        if index in self._ended:
            failed = raw.output(SendFailed)
            raw.agree("a message of an ended partition", (failed.first, failed.count), (ticket, 1))
            return
        send = raw.expect(T.SEND, raw.now)
        raw.agree("the producer", send.producer_id, self._wire_ids[index])
        raw.agree("sequence id", send.sequence_id, self._sequence_ids[index])
        payload = message if isinstance(message, bytes) else message.payload
        raw.agree("payload", bytes(unpack_payload(send.payload).payload), payload)
        self._sequence_ids[index] += 1
        self._pending[index].append(ticket)

    def _confirm(self) -> None:
        """Confirm the oldest message of a partition."""
        raw = self._raw
        index = self._stream.below(PARTITIONS)
        if not self._pending[index]:
            return
        sequence_id = self._sequence_ids[index] - len(self._pending[index])
        ticket = self._pending[index].pop(0)
        self._counts[index][0] += 1
        raw.receipt(self._wire_ids[index], sequence_id, 2**64 - 1, self._entry)
        receipts = raw.output(Receipts)
        raw.agree("confirmed", receipts.first, ticket)
        ids = [(each.ledger_id, each.entry_id, each.partition) for each in receipts.message_ids]
        raw.agree("message ids", ids, [(1, self._entry, index)])
        self._entry += 1
        self._settled()

    def _refuse(self) -> None:
        """Refuse the oldest message of a partition, which goes on."""
        raw = self._raw
        index = self._stream.below(PARTITIONS)
        if not self._pending[index]:
            return
        sequence_id = self._sequence_ids[index] - len(self._pending[index])
        error = proto.CommandSendError(
            producer_id=self._wire_ids[index],
            sequence_id=sequence_id,
            error=proto.ServerError.NotAllowedError,
            message="refused",
        )
        ticket = self._pending[index].pop(0)
        self._counts[index][1] += 1
        raw.send(T.SEND_ERROR, error)
        self._lose([ticket])
        self._settled()

    def _end(self) -> None:
        """End a partition, while another one is left."""
        raw = self._raw
        index = self._stream.below(PARTITIONS)
        if index in self._ended or len(self._ended) + 1 == PARTITIONS:
            return
        error = proto.CommandSendError(
            producer_id=self._wire_ids[index],
            sequence_id=0,
            error=proto.ServerError.TopicTerminatedError,
            message="terminated",
        )
        lost, self._pending[index] = self._pending[index], []
        self._ended.add(index)
        self._counts[index][1] += len(lost)
        raw.send(T.SEND_ERROR, error)
        self._lose(lost)
        self._look_for_flushes()
        self._look_for_room()
        ended = [each for each in raw.notices if isinstance(each, PartitionEnded)]
        raw.notices.clear()
        raw.agree("ended partitions", [each.topic for each in ended], [f"{TOPIC}-partition-{index}"])

    def _lose(self, tickets: list[int]) -> None:
        """Expect that these messages fail."""
        raw = self._raw
        left = list(tickets)
        while left:
            failed = raw.output(SendFailed)
            found = list(range(failed.first, failed.first + failed.count))
            raw.agree("messages that fail", found, left[: len(found)] or left)
            del left[: len(found)]
        self._broken |= {request for request, end in self._flushes if any(each < end for each in tickets)}

    def _settled(self) -> None:
        self._look_for_room()
        self._look_for_flushes()

    def _look_for_room(self) -> None:
        """Expect that an application is told of room when all partitions have some; perhaps it is told
        earlier."""
        outputs = self._raw.outputs
        if self._wants_room and outputs and isinstance(outputs[0], HasRoom):
            outputs.popleft()
            self._wants_room = False
        elif self._wants_room and all(len(each) < self._window for each in self._pending):
            self._raw.fail("there is room, and the application is not told")

    def _look_for_flushes(self) -> None:
        raw = self._raw
        oldest = min((each for tickets in self._pending for each in tickets), default=self._ticket)
        for request, end in list(self._flushes):
            if end > oldest:
                continue
            self._flushes.remove((request, end))
            if request in self._broken:
                raw.agree("a flush that fails", raw.output(RequestFailed).request, request)
            else:
                raw.agree("a flush", raw.output(RequestDone), RequestDone(request, None))

    def _flush(self) -> None:
        request = self._raw.call(self._client.flush, self._handle)
        self._flushes.append((request, self._ticket))
        self._settled()

    def _reattach(self) -> None:
        """Lose the connection of all partitions: the application is told once, and all is sent again."""
        raw = self._raw
        raw.lose()
        raw.agree("the lost producer", raw.output(Detached).id, self._handle)
        connected = [each.connected for each in self._client.partition_statistics(self._handle)]
        raw.agree("connected partitions", connected, [False] * PARTITIONS)
        raw.pass_time(3)
        for command in raw.taken(T.PRODUCER):
            index = self._wire_ids.index(command.producer_id)
            known = self._sequence_ids[index] - len(self._pending[index]) - 1
            raw.open_producer(command, known)
        raw.agree("the producer", raw.output(Attached).id, self._handle)
        again: list[list[int]] = [[] for _ in range(PARTITIONS)]
        for send in raw.taken(T.SEND):
            again[self._wire_ids.index(send.producer_id)].append(send.sequence_id)
        wanted = [
            list(range(self._sequence_ids[index] - len(tickets), self._sequence_ids[index]))
            for index, tickets in enumerate(self._pending)
        ]
        raw.agree("messages that are sent again", again, wanted)

    def _check(self) -> None:
        raw = self._raw
        raw.nothing()
        found = self._client.partition_statistics(self._handle)
        for index, each in enumerate(found):
            raw.agree("topic", each.topic, f"{TOPIC}-partition-{index}")
            raw.agree("connected", each.connected, index not in self._ended)
            raw.agree("pending", each.pending, len(self._pending[index]))
            raw.agree("settled", [each.confirmed, each.failed], self._counts[index])
