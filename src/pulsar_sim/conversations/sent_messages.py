"""Messages that are sent: what each batch holds, and when; their receipts, flushes, timeouts and counts.

Owns a model of one producer with exact limits. A batch is sealed by its number, its bytes or its delay
(BATCH-03, BATCH-04, BATCH-05), batches of keys together (BATCH-01). Messages are settled in order (PROD-42,
PROD-43), fail together after the send timeout (PROD-47), and are sent again on another connection.
"""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pulsar_sansio.client.outputs import (
    Detached,
    ProducerReady,
    Receipts,
    RequestDone,
    RequestFailed,
    SendFailed,
)
from pulsar_sansio.client.outputs import Writable as HasRoom
from pulsar_sansio.model.config import BatchingPolicy, OutgoingMessage, ProducerSpec
from pulsar_sansio.model.errors import ProducerQueueIsFull, TimedOut
from pulsar_sansio.model.message_id import MessageId
from pulsar_sansio.wire import split_batch, unpack_payload

from ..engine.clock import MILLISECOND, SECOND
from .raw_broker import WALL, RawBroker, T

if TYPE_CHECKING:
    from ..engine.randomness import Stream

STEPS = 60
TOPIC = "persistent://public/default/raw"


@dataclass
class _Sent:
    """A message that is taken."""

    ticket: int
    sequence_id: int
    payload: bytes
    key: str | None


@dataclass
class _Entry:
    """A message by itself, or a batch."""

    messages: list[_Sent]
    sealed: int
    """The moment at which it was complete."""


@dataclass
class _Counts:
    messages_sent: int = 0
    bytes_sent: int = 0
    batches: int = 0
    batched_messages: int = 0
    confirmed: int = 0
    failed: int = 0
    latencies: list[int] = field(default_factory=list)


class SentMessages:
    """One producer that sends, flushes and waits at random, and a broker that confirms."""

    def __init__(self, raw: RawBroker, stream: "Stream") -> None:
        self._raw = raw
        self._client = raw.client
        self._stream = stream
        self._max_messages = stream.between(2, 6)
        self._max_bytes = stream.choice((16, 40, 1000))
        self._delay = stream.choice((0, 10 * MILLISECOND, SECOND))
        self._is_batching = stream.chance(800)
        self._by_key = self._is_batching and stream.chance(400)
        self._window = stream.choice((3, 8, 1000))
        self._timeout = stream.choice((0, 2 * SECOND, 5 * SECOND))
        first = stream.choice((None, -1, 5))
        policy = BatchingPolicy(self._max_messages, self._max_bytes, self._delay / SECOND, self._by_key)
        spec = ProducerSpec(
            topic=TOPIC,
            name="raw",
            batching=policy if self._is_batching else None,
            max_pending_messages=self._window,
            send_timeout=self._timeout / SECOND,
            initial_sequence_id=first,
        )
        self._handle: int = raw.call(self._client.open_producer, spec)
        known = stream.choice((-1, 7))
        self._wire_id = 0
        self._accept(known)
        raw.said(ProducerReady(self._handle, "raw", known, TOPIC))
        self._append = self._client.appender(self._handle)
        self._sequence_id = known + 1 if first is None else first + 1
        self._highest = known
        """The highest sequence id that is confirmed."""
        self._ticket = 0
        self._open: list[_Sent] = []
        """The messages of the open batch, or batches."""
        self._opened = 0
        self._entries: list[_Entry] = []
        self._flushes: list[tuple[int, int, bool]] = []
        """Each request, the ticket that it waits for, and whether a message failed."""
        self._wants_room = False
        self._entry = 0
        self._counts = _Counts()
        self._attached = raw.now
        """The moment at which the producer was attached last."""
        self._to_write: list[tuple[int, _Entry]] = []
        """Entries that are to be written, each with its moment."""

    def _accept(self, known: int) -> None:
        command = self._raw.expect(T.PRODUCER)
        self._wire_id = command.producer_id
        self._raw.open_producer(command, known)

    def hold(self) -> None:
        steps = (
            (self._send, 40),
            (self._send_several, 10),
            (self._append_one, 20),
            (self._confirm, 30),
            (self._flush, 8),
            (self._push, 5),
            (self._wait, 20),
            (self._reattach, 3),
        )
        for _ in range(STEPS):
            self._stream.weighted(steps)()
            self._check()

    # --- what happens ---

    def _message(self) -> bytes | OutgoingMessage:
        stream = self._stream
        payload = b"x" * stream.below(20)
        if stream.chance(600):
            return payload
        return OutgoingMessage(payload, key=stream.choice((None, "a", "b")))

    def _send(self) -> None:
        raw, message = self._raw, self._message()
        if self._pending >= self._window:
            try:
                raw.call(self._client.send, self._handle, message, WALL)
            except ProducerQueueIsFull:
                self._wants_room = True
                return
            raw.fail(f"{self._pending} messages are pending, and one more is taken")
        ticket = raw.call(self._client.send, self._handle, message, WALL)
        raw.agree("ticket", ticket, self._ticket)
        self._take(message)

    def _send_several(self) -> None:
        raw = self._raw
        messages = [self._message() for _ in range(self._stream.between(1, 8))]
        fitting = messages[: max(0, self._window - self._pending)]
        first = self._ticket
        for message in fitting:
            self._take(message)
        self._wants_room = self._wants_room or len(fitting) < len(messages)
        tickets = raw.call(self._client.send_many, self._handle, messages, WALL)
        raw.agree("tickets", list(tickets), list(range(first, first + len(fitting))))

    def _append_one(self) -> None:
        """Use the fast path, which takes no message that needs a decision."""
        message = self._message()
        ticket = self._append(message)
        self._raw.settle()
        if ticket < 0:
            return
        sealed = len(self._entries)
        self._raw.agree("ticket", ticket, self._ticket)
        if not self._open or self._pending >= self._window:
            self._raw.fail("the fast path takes a message that needs a decision")
        self._take(message)
        self._raw.agree("batches that the fast path seals", len(self._entries), sealed)

    @property
    def _pending(self) -> int:
        return len(self._open) + sum(len(each.messages) for each in self._entries)

    def _take(self, message: bytes | OutgoingMessage) -> None:
        """Take a message into the model."""
        payload = message if isinstance(message, bytes) else message.payload or b""
        key = None if isinstance(message, bytes) else message.key
        sent = _Sent(self._ticket, self._sequence_id, payload, key)
        self._ticket += 1
        self._sequence_id += 1
        if not self._is_batching:
            self._add(_Entry([sent], self._raw.now))
            return
        if self._open and self._open_bytes + len(payload) > self._max_bytes:
            self._seal(self._raw.now)
        if not self._open:
            self._opened = self._raw.now
        self._open.append(sent)
        full = len(self._open) >= self._max_messages or self._open_bytes >= self._max_bytes
        if full or self._pending >= self._window:
            self._seal(self._raw.now)

    @property
    def _open_bytes(self) -> int:
        return sum(len(each.payload) for each in self._open)

    def _seal(self, now: int) -> None:
        messages, self._open = self._open, []
        if not self._by_key:
            self._add(_Entry(messages, now))
            return
        keys: dict[str | None, list[_Sent]] = {}
        for each in messages:
            keys.setdefault(each.key, []).append(each)
        for batch in sorted(keys.values(), key=lambda batch: batch[-1].sequence_id):
            self._add(_Entry(batch, now))

    def _add(self, entry: _Entry) -> None:
        self._entries.append(entry)
        size = len(entry.messages)
        if size > 1:
            self._counts.batches += 1
            self._counts.batched_messages += size
        self._write(entry)

    def _write(self, entry: _Entry) -> None:
        """Count an entry that is written, perhaps again."""
        counts, messages = self._counts, entry.messages
        counts.messages_sent += len(messages)
        counts.bytes_sent += sum(len(each.payload) for each in messages)
        self._to_write.append((max(entry.sealed, self._attached), entry))

    def _confirm(self) -> None:
        """Confirm the oldest entry."""
        if not self._entries:
            return
        raw, entry = self._raw, self._entries.pop(0)
        first, last = entry.messages[0].sequence_id, entry.messages[-1].sequence_id
        named = last if self._by_key else first
        highest = last if len(entry.messages) > 1 else 2**64 - 1
        self._highest = max(self._highest, last)
        self._counts.confirmed += len(entry.messages)
        self._counts.latencies.append(raw.now - entry.sealed)
        raw.receipt(self._wire_id, named, highest, self._entry)
        size = len(entry.messages)
        ids = [
            MessageId(1, self._entry, -1, index if size > 1 else -1, size if size > 1 else 0)
            for index in range(size)
        ]
        self._entry += 1
        for run in _runs([each.ticket for each in entry.messages]):
            receipts = raw.output(Receipts)
            raw.agree("confirmed", (receipts.producer, receipts.first), (self._handle, run[0]))
            found = [(*each,) for each in receipts.message_ids]
            raw.agree("message ids", found, [(*each,) for each in ids[: len(run)]])
            del ids[: len(run)]
        self._settled()

    def _settled(self) -> None:
        """Expect what follows when messages are settled."""
        raw = self._raw
        if self._wants_room and self._pending < self._window:
            self._wants_room = False
            raw.agree("room", raw.output(HasRoom).producer, self._handle)
        unsettled = [each.ticket for entry in self._entries for each in entry.messages]
        oldest = min([*unsettled, *(each.ticket for each in self._open)], default=self._ticket)
        while self._flushes and self._flushes[0][1] <= oldest:
            request, _, failed = self._flushes.pop(0)
            if failed:
                raw.agree("a flush that failed", raw.output(RequestFailed).request, request)
            else:
                raw.agree("a flush", raw.output(RequestDone), RequestDone(request, None))

    def _flush(self) -> None:
        if self._open:
            self._seal(self._raw.now)
        request = self._raw.call(self._client.flush, self._handle)
        self._flushes.append((request, self._ticket, False))
        self._settled()

    def _push(self) -> None:
        if self._open:
            self._seal(self._raw.now)
        self._raw.call(self._client.push, self._handle)

    def _wait(self) -> None:
        """Let time pass, often exactly until something is due or a moment less."""
        raw, stream = self._raw, self._stream
        moment = raw.now + stream.spread(1, 2 * SECOND)
        if (due := self._next_due()) is not None:
            moment = stream.choice((moment, due, due - 1))
        self._until(moment)

    def _until(self, moment: int) -> None:
        raw = self._raw
        raw.until(moment)
        while (due := self._next_due()) is not None and due <= raw.now:
            is_batch_due = bool(self._open) and self._opened + self._delay == due
            if is_batch_due and len(raw.frames) > len(
                self._to_write
            ):  # perhaps before a timeout of that moment
                self._seal(due)
            else:
                self._time_out()

    def _next_due(self) -> int | None:
        dues = [self._opened + self._delay] if self._open else []
        dues += [self._entries[0].sealed + self._timeout] if self._timeout and self._entries else []
        return min(dues, default=None)

    def _time_out(self) -> None:
        """Expect that all messages fail."""
        raw = self._raw
        lost = {each.ticket for entry in self._entries for each in entry.messages}
        lost |= {each.ticket for each in self._open}
        self._entries, self._open = [], []
        self._counts.failed += len(lost)
        self._flushes = [(request, end, True) for request, end, _ in self._flushes]
        while lost:
            failed = raw.output(SendFailed)
            raw.agree("the error", type(failed.error), TimedOut)
            tickets = set(range(failed.first, failed.first + failed.count))
            if not tickets or not tickets <= lost or min(tickets) != min(lost):
                raw.fail(f"{failed} comes, and {sorted(lost)} are lost")
            lost -= tickets
        self._settled()

    def _reattach(self) -> None:
        """Lose the connection: everything is sent again over the next one."""
        self._push()
        self._check()
        raw = self._raw
        raw.lose()
        raw.agree("the lost producer", raw.output(Detached).id, self._handle)
        if self._timeout and self._entries:
            until = min(raw.now + 2 * SECOND, self._entries[0].sealed + self._timeout - 1)
        else:
            until = raw.now + 2 * SECOND
        raw.until(until)
        if not any(kind == T.PRODUCER for _, kind, _ in raw.frames):
            raw.until(raw.now + 2 * SECOND)
            if self._entries:
                self._time_out()
        self._attached = raw.now
        for entry in self._entries:
            self._write(entry)
        self._accept(self._highest)
        raw.outputs.clear()

    # --- the rest ---

    def _check(self) -> None:
        raw, counts = self._raw, self._counts
        self._until(raw.now)
        for at, entry in self._to_write:
            self._expect(entry, at)
        self._to_write.clear()
        raw.nothing()
        found = self._client.producer_statistics(self._handle)
        for name in ("messages_sent", "bytes_sent", "batches", "batched_messages", "confirmed", "failed"):
            raw.agree(name, getattr(found, name), getattr(counts, name))
        raw.agree("pending", found.pending, self._pending)
        size = sum(len(each.payload) for entry in self._entries for each in entry.messages)
        raw.agree("pending bytes", found.pending_bytes, size + self._open_bytes)
        raw.agree("memory", self._client.memory_held, size + self._open_bytes)
        raw.agree("last sequence id", self._client.last_sequence_id(self._handle)(), self._highest)
        ordered = sorted(counts.latencies)
        if found.latency is None:
            raw.agree("latencies", ordered, [])
            return
        latency, last = found.latency, len(ordered) - 1
        raw.agree("latencies", latency.samples, len(ordered))
        for name, permille in (("p50", 500), ("p75", 750), ("p95", 950), ("p99", 990), ("p999", 999)):
            wanted = ordered[min(last, len(ordered) * permille // 1000)] / SECOND
            raw.agree(name, getattr(latency, name), wanted)
        raw.agree("the longest latency", latency.maximum, ordered[-1] / SECOND)

    def _expect(self, entry: _Entry, at: int) -> None:
        """Expect SEND with exactly this entry."""
        raw, messages = self._raw, entry.messages
        send = raw.expect(T.SEND, at)
        first, last, size = messages[0].sequence_id, messages[-1].sequence_id, len(messages)
        wanted = last if self._by_key else first
        raw.agree("sequence id", (send.sequence_id, send.num_messages), (wanted, size))
        unpacked = unpack_payload(send.payload)
        raw.agree("publish time", unpacked.metadata.publish_time, WALL)
        if size > 1:
            raw.agree("highest sequence id", send.highest_sequence_id, last)
            found = split_batch(bytes(unpacked.payload), size).payloads
        else:
            found = [bytes(unpacked.payload)]
        raw.agree("payloads", found, [each.payload for each in messages])


def _runs(tickets: list[int]) -> list[list[int]]:
    """Split ascending tickets where one is missing."""
    found: list[list[int]] = []
    for ticket in tickets:
        if found and found[-1][-1] + 1 == ticket:
            found[-1].append(ticket)
        else:
            found.append([ticket])
    return found
