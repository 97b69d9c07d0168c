"""`Intake`: what becomes of a message from `send` until it is sealed (rules PROD-32 to PROD-40, BATCH).

It owns the tickets and sequence ids, the checks that a message passes, the messages that are *early* (the
producer was never attached, so there is no name to seal them with), the open batch or batches and their
timer, and the limits of unconfirmed messages and their bytes. Sealed entries go to the window and, while
there is a connection, onto it. It knows nothing of receipts, of errors of the broker, or of how a connection
is found.

`send` has a short path, `append`: what fits into the open batch without filling it is appended, and nothing
else is done.
"""

from collections import deque
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import TypeAlias

from ..model.config import BatchingPolicy, CompressionType, OutgoingMessage, ProducerSpec, seconds_to_ns
from ..model.errors import (
    ClosedError,
    InvalidMessage,
    MemoryBufferIsFull,
    MessageTooLarge,
    ProducerQueueIsFull,
    PulsarError,
)
from .batching import MEMBER_ALLOWANCE, OpenBatch
from .connection import Connection
from .envelopes import Frame, Sealer, encode_member
from .key_batches import KeyBatches
from .memory import MemoryLimit, payload_size
from .outputs import Output, Writable
from .services import ClientContext
from .window import Window

MAX_PUBLISH_TIME = 2**63 - 1


Early: TypeAlias = tuple[int, bytes | OutgoingMessage, int]
"""Ticket, message and publish time of a message that cannot be sealed yet."""


class Intake:
    """One producer's. `max_message_size` counts until a broker has said its own; `emit` is where it says that
    there is room again."""

    def __init__(
        self,
        context: ClientContext,
        handle: int,
        spec: ProducerSpec,
        window: Window,
        max_message_size: int,
        memory: MemoryLimit,
        emit: Callable[[Output], None],
    ) -> None:
        self.connection: Connection | None = None
        """Where sealed messages go at once; None while detached."""
        self.ended: PulsarError | None = None
        """Why nothing can be taken any more."""
        self.was_full = False
        """Somebody was told that there is no room, and waits for `Writable`."""
        self.waits_for_memory = False
        """It `was_full` because of the client's memory."""
        self.sealer: Sealer | None = None
        self._plain_sealer: Sealer | None = None
        """The same, while bare payloads go out by themselves: nothing to join, nothing to wait for."""
        self._context = context
        self._emit = emit
        self._handle = handle
        self._spec = spec
        self._window = window
        self._memory = memory
        self._max_message_size = max_message_size
        initial = spec.initial_sequence_id
        self._next_sequence_id = 0 if initial is None else initial + 1
        """For the next message that has none of its own; messages in the batch's run come before it."""
        self._limit = spec.max_pending_messages
        self._next_ticket = 0
        self._early: deque[Early] = deque()
        policy = spec.batching or BatchingPolicy()
        self._batch = OpenBatch(policy, max_message_size)
        """Stays empty where the producer does not batch, or batches by key."""
        self._key_batches: KeyBatches | None = None
        if policy.by_key:
            self._key_batches = KeyBatches()
            self._key_batches.limit(*self._batch.limits)
        self.messages_sent = 0
        """Written to a connection, again each time."""
        self.bytes_sent = 0
        """Of their payloads."""
        self.batches = 0
        """Batches sealed."""
        self.batched = 0
        """The messages in them."""
        self._batch_delay = seconds_to_ns(policy.max_delay)
        self._batch_timer = context.deadlines.slot(self.close_batch)
        window.on_settled = self.settled

    # --- taking messages ---

    def send(self, message: bytes | OutgoingMessage, publish_time: int) -> int:
        """Take a message; returns its ticket. Raises, having changed nothing: `ClosedError`,
        `ProducerQueueIsFull`, `MessageTooLarge`, `InvalidMessage`."""
        if self._plain_sealer is None:
            ticket = self.append(message)
            if ticket >= 0:
                return ticket
        return self._send(message, publish_time)

    def append(self, message: bytes | OutgoingMessage) -> int:
        """Take a message into the open batch, if it does not begin or fill it; returns its ticket. Gives -1,
        having changed nothing, for every other message, for which `send` is."""
        batch = self._batch
        if type(message) is bytes and batch.room > 0 and (space := batch.space - len(message)) > 0:
            batch.space = space
            batch.room -= 1
            batch.run.append(message)
            ticket = self._next_ticket
            self._next_ticket = ticket + 1
            return ticket
        if type(message) is OutgoingMessage and batch.room > 0 and not batch.run:
            return self._append_member(batch, message)
        return -1

    def _append_member(self, batch: OpenBatch, message: OutgoingMessage) -> int:
        """A message with a key or properties, among others of its kind."""
        if message.sequence_id is not None or message.deliver_at is not None or message.replicate_to:
            return -1
        sequence_id = self._next_sequence_id
        try:
            member = encode_member(message, sequence_id)
        except InvalidMessage:
            return -1  # `send` says why
        payload = message.payload
        size = len(payload) if payload else 0
        extra = len(member) - size - MEMBER_ALLOWANCE
        if not batch.append_member(member, size, extra if extra > 0 else 0, sequence_id):
            return -1
        self._next_sequence_id = sequence_id + 1
        ticket = self._next_ticket
        self._next_ticket = ticket + 1
        return ticket

    def send_many(self, messages: Sequence[bytes | OutgoingMessage], publish_time: int) -> range:
        """Take messages, in order, as many as the window has room for; returns their tickets.

        Raises as `send`, having taken none, except that a full window makes the range short and not an error.
        """
        self.check_open()
        first = self._next_ticket
        room = self._room()
        if len(messages) > room:
            self.wait_for_room()
            messages = messages[:room]
        bare = set(map(type, messages)) <= {bytes}
        if not bare:
            for message in messages:
                self.check(message, publish_time)
        elif messages:
            self._check_size(max(map(len, messages)))  # type: ignore[arg-type]
        fitting = self._memory.fitting(self._handle, messages)
        taken = messages[:fitting] if fitting < len(messages) else messages
        self._memory.turn = self._handle
        try:
            if bare:
                self._send_payloads(taken, publish_time)  # type: ignore[arg-type]
            else:
                for message in taken:
                    self._send_or_fail(message, publish_time, first)
        finally:
            self._memory.turn = 0
        if fitting < len(messages):
            self._wait_for_memory(messages[fitting])
        return range(first, self._next_ticket)

    def _send(self, message: bytes | OutgoingMessage, publish_time: int) -> int:
        sealer = self._plain_sealer
        memory = self._memory
        if (
            sealer is not None
            and type(message) is bytes
            and (size := len(message)) <= self._max_message_size
            and self._window.messages < self._limit
            and size <= memory.free
            and not memory.blocked
            and type(publish_time) is int
            and 0 <= publish_time <= MAX_PUBLISH_TIME
        ):
            sequence_id = self._next_sequence_id
            frame = sealer.single(message, sequence_id, publish_time)
            memory.free -= size
            self._next_sequence_id = sequence_id + 1
            ticket = self._next_ticket
            self._next_ticket = ticket + 1
            self._pend(ticket, 1, sequence_id, None, frame, size)
            return ticket
        self.check_open()
        if self._room() <= 0:
            self.wait_for_room()
            raise ProducerQueueIsFull(
                f"producer {self._handle}: {self._limit} messages are unconfirmed (max_pending_messages)"
            )
        self.check(message, publish_time)
        ticket = self._next_ticket
        size = payload_size(message)
        if not memory.take(self._handle, size, self._memory_free):
            self._wait_for_memory(message)
            raise MemoryBufferIsFull(
                f"producer {self._handle}: payloads of {memory.held} bytes are unconfirmed, there is no room "
                f"for {size} more (memory_limit of the client: {memory.limit})"
            )
        try:
            if self.sealer is None:
                if not isinstance(message, bytes):
                    encode_member(message, 0)  # raises for text that cannot be sent, while somebody hears it
                self.take_early(message, publish_time)
            else:
                self._take(self.sealer, message, publish_time)
        except InvalidMessage:
            memory.release(size)
            raise
        return ticket

    def _send_payloads(self, payloads: Sequence[bytes], publish_time: int) -> None:
        """Payloads that are known to be right and to fit the window."""
        position = 0
        batch = self._batch
        while position < len(payloads):
            taken = min(batch.room, len(payloads) - position)
            if taken > 0:
                chunk = payloads[position : position + taken]
                space = batch.space
                size = sum(map(len, chunk))
                if size >= space:
                    sizes = accumulate(map(len, chunk))
                    taken = next(index for index, together in enumerate(sizes) if together >= space)
                    chunk = chunk[:taken]
                    size = sum(map(len, chunk))
                batch.run.extend(chunk)
                batch.room -= taken
                batch.space = space - size
                self._next_ticket += taken
                position += taken
            if position < len(payloads):
                self._send(payloads[position], publish_time)
                position += 1

    def _send_or_fail(self, message: bytes | OutgoingMessage, publish_time: int, first: int) -> None:
        """One of several. What only shows when it is sealed fails that message, if others were taken
        before."""
        try:
            self._send(message, publish_time)
        except InvalidMessage as error:
            if self._next_ticket == first:
                raise
            self._fail_untaken(error)

    def _fail_untaken(self, error: PulsarError) -> None:
        """Settle a message that has a ticket coming and cannot be sealed."""
        ticket = self._next_ticket
        self._next_ticket = ticket + 1
        self._window.fail(ticket, 1, error)
        self.settled()

    def check_open(self) -> None:
        """Raises `ClosedError` where nothing can be taken any more."""
        if self.ended is not None:
            error = ClosedError(str(self.ended))
            error.__cause__ = self.ended
            raise error

    def _room(self) -> int:
        """Messages that may still be taken (rules PROD-02, PROD-33)."""
        return self._limit - self.pending

    @property
    def pending(self) -> int:
        """Messages taken and not settled."""
        return self._window.messages + self._open + len(self._early)

    @property
    def _open(self) -> int:
        """Messages in open batches."""
        return self._batch.count if self._key_batches is None else self._key_batches.count

    @property
    def open_bytes(self) -> int:
        """The payloads of messages that are not sealed."""
        batch = self._batch.size if self._key_batches is None else self._key_batches.size
        return batch + sum(payload_size(message) for _, message, _ in self._early)

    def wait_for_room(self) -> None:
        """Somebody was told that there is no room: `Writable` follows when there is."""
        self.was_full = self._window.watched = True
        self.waits_for_memory = False

    def _wait_for_memory(self, message: bytes | OutgoingMessage) -> None:
        """Somebody was told that the client's memory has no room for it: likewise."""
        self._memory.wait(self._handle, payload_size(message), self._memory_free)
        self.was_full = self.waits_for_memory = True

    def _memory_free(self) -> None:
        """There is memory; the window may be full all the same."""
        self.waits_for_memory = False
        self._window.watched = True
        self._tell_of_room()

    def _tell_of_room(self) -> None:
        if self.was_full and not self.waits_for_memory and self.ended is None and self._room() > 0:
            self.was_full = False
            self._emit(Writable(self._handle))

    def check(self, message: object, publish_time: int) -> None:
        """Raises `InvalidMessage` where it cannot be sent, as far as can be said without sealing it (rules
        PROD-35, BATCH-13)."""
        if type(publish_time) is not int or not 0 <= publish_time <= MAX_PUBLISH_TIME:
            raise InvalidMessage(f"publish_time: milliseconds since 1970, not {publish_time!r}")
        if isinstance(message, bytes):
            self._check_size(len(message))
        elif not isinstance(message, OutgoingMessage):
            raise InvalidMessage(f"a message is bytes or an OutgoingMessage, not {type(message).__name__}")
        else:
            self._check_size(len(message.payload or b""))

    def check_given(self, message: object, publish_time: int) -> None:
        """`check`, as far as it is known here what will be sent."""
        self.check(message, publish_time)

    def refuse(self, message: bytes | OutgoingMessage, publish_time: int, error: PulsarError) -> None:
        """A message that was meant for it, and fails with `error` without being taken. Raises
        `InvalidMessage` where it is wrong by itself."""
        self.check(message, publish_time)

    def _check_size(self, size: int) -> None:
        if size <= self._max_message_size:
            return
        if self._spec.batching is None and (
            self._spec.chunking or self._spec.compression is not CompressionType.NONE
        ):
            return  # it is the compressed size, or the number of chunks, that counts: sealing finds out
        raise MessageTooLarge(f"the payload has {size} bytes, the broker accepts {self._max_message_size}")

    def _take(self, sealer: Sealer, message: bytes | OutgoingMessage, publish_time: int) -> None:
        """Into the open batch, or by itself; raises, having changed nothing, where it cannot be sealed."""
        explicit = deliver_at = None
        if not isinstance(message, bytes):
            explicit, deliver_at = message.sequence_id, message.deliver_at
        sequence_id = self._counter if explicit is None else explicit
        if self._spec.batching is not None and deliver_at is None:
            if self._key_batches is None:
                self._join_batch(message, sequence_id, publish_time)
            else:
                self._join_key_batch(self._key_batches, message, sequence_id, publish_time)
        else:
            if self._spec.chunking:
                frames = sealer.chunks(message, sequence_id, publish_time, self._spec.chunk_max_message_size)
            else:
                frames = [sealer.single(message, sequence_id, publish_time)]
            self.close_batch()  # keeps the order (BATCH-09)
            if explicit is None:
                self._next_sequence_id = sequence_id + 1
            ticket = self._next_ticket
            self._next_ticket = ticket + 1
            last = frames.pop()
            for frame in frames:
                self._pend(ticket, 0, sequence_id, None, frame, 0)
            self._pend(ticket, 1, sequence_id, None, last, payload_size(message))

    @property
    def _counter(self) -> int:
        """The id of the next message that has none of its own (rule PROD-38)."""
        return self._next_sequence_id + len(self._batch.run)

    def _encode_member(self, message: OutgoingMessage, sequence_id: int) -> tuple[bytes, int]:
        """A member of a batch, and its bytes beyond payload and allowance."""
        member = encode_member(message, sequence_id)
        if len(member) > self._max_message_size:
            raise MessageTooLarge(
                f"payload, key and properties have {len(member)} bytes together, the broker accepts "
                f"{self._max_message_size}"
            )
        return member, max(0, len(member) - payload_size(message) - MEMBER_ALLOWANCE)

    def _join_batch(self, message: bytes | OutgoingMessage, sequence_id: int, publish_time: int) -> None:
        batch = self._batch
        self.give_back()
        size, extra, member = payload_size(message), 0, b""
        clusters: tuple[str, ...] = ()
        if not isinstance(message, bytes):
            member, extra = self._encode_member(message, sequence_id)
            clusters = message.replicate_to
        if batch.count and not (
            batch.has_room_for(size, extra, sequence_id) and clusters == batch.replicate_to
        ):
            self.close_batch()
        ticket = self._next_ticket
        self._next_ticket = ticket + 1
        if not batch.count:
            batch.begin(message, ticket, sequence_id, publish_time)
            self._batch_timer.set(self._context.now + self._batch_delay)
        if isinstance(message, bytes):
            batch.add_payload(message, sequence_id)
        else:
            self._next_sequence_id += len(batch.run) + (message.sequence_id is None)
            batch.add_encoded(member, size, extra, sequence_id)
        room = self._room()
        if batch.full or room <= 0:
            self.close_batch()
        elif (space := batch.offer(self._counter, room)) > 0:
            batch.lend(self._memory.lend(self, space))

    @property
    def unused(self) -> int:
        """Bytes of the memory lent to it that the open batch has not used."""
        return self._batch.unused

    def give_back(self) -> None:
        """Close the batch's short path, and return what it did not use of the memory lent to it."""
        batch = self._batch
        if batch.count:
            self._memory.returned(self, batch.withdraw())

    def _join_key_batch(
        self,
        batches: KeyBatches,
        message: bytes | OutgoingMessage,
        sequence_id: int,
        publish_time: int,
    ) -> None:
        bare = isinstance(message, bytes)
        whole = OutgoingMessage(message) if isinstance(message, bytes) else message
        member, extra = self._encode_member(whole, sequence_id)
        size = payload_size(message)
        if batches.count and not (
            batches.has_room_for(size, extra, sequence_id) and whole.replicate_to == batches.replicate_to
        ):
            self.close_batch()
        ticket = self._next_ticket
        self._next_ticket = ticket + 1
        self._next_sequence_id += bare or whole.sequence_id is None
        if not batches.count:
            self._batch_timer.set(self._context.now + self._batch_delay)
        batches.add(message, member, size, extra, ticket, sequence_id, publish_time)
        if batches.full or self._room() <= 0:
            self.close_batch()

    def close_batch(self) -> None:
        """Seal the open batch, or all that are open, and send it, if there is one (rule BATCH-09)."""
        if self._key_batches is not None:
            self._close_key_batches(self._key_batches)
            return
        batch = self._batch
        count = batch.count
        if not count:
            return
        sealer = self.sealer
        assert sealer is not None
        self._batch_timer.clear()
        self.give_back()
        self._next_sequence_id += len(batch.run)
        ticket, lowest, highest, size = batch.first_ticket, batch.lowest, batch.highest, batch.size
        try:
            if count == 1:
                frame = sealer.single(batch.first, lowest, batch.publish_time)
            else:
                frame = sealer.batch(batch.first, batch.publish_time, lowest, highest, count, batch.members())
                self.batches += 1
                self.batched += count
        except PulsarError as error:  # rule BATCH-07: nobody is left waiting
            batch.clear()
            self._window.fail(ticket, count, error)
            self._memory.free += size
            self.settled()
            return
        batch.clear()
        self._pend(ticket, count, lowest, None if count == 1 else highest, frame, size)

    def _close_key_batches(self, batches: KeyBatches) -> None:
        if not batches.count:
            return
        sealer = self.sealer
        assert sealer is not None
        self._batch_timer.clear()
        oldest, complete = batches.first_ticket, True
        for batch in batches.take():
            try:
                frame = batch.seal(sealer)
            except PulsarError as error:  # that batch alone
                self._window.fail_tickets(batch.tickets, error)
                self._memory.free += batch.size
                complete = False
                continue
            if len(batch.tickets) > 1:
                self.batches += 1
                self.batched += len(batch.tickets)
            self._window.add_key_batch(batch.tickets, oldest, batch.highest, frame, batch.size)
            if self.connection is not None:
                self.messages_sent += len(batch.tickets)
                self.bytes_sent += batch.size
                self.connection.write(frame)
        if not complete:
            self.settled()

    def _pend(
        self, ticket: int, count: int, sequence_id: int, highest: int | None, frame: Frame, size: int
    ) -> None:
        """It is sealed: it waits for its receipt, and goes out now if there is a connection (rule
        PROD-40)."""
        self._window.add(ticket, count, sequence_id, highest, frame, size)
        connection = self.connection
        if connection is not None:
            self.messages_sent += count
            self.bytes_sent += size
            connection.write(frame)

    def send_again(self, connection: Connection) -> None:
        """Everything in the window, in order, the same bytes."""
        for entry in self._window.entries:
            self.messages_sent += entry.count
            self.bytes_sent += entry.size
            connection.write(entry.frame)

    # --- before it was attached ---

    def take_early(self, message: bytes | OutgoingMessage, publish_time: int) -> None:
        """Keep a message, which is known to be right, until there is a name to seal it with."""
        ticket = self._next_ticket
        self._early.append((ticket, message, publish_time))
        self._next_ticket = ticket + 1

    def hand_over(self) -> deque[Early]:
        """Give away what is early: it is for somebody else to send."""
        early, self._early = self._early, deque()
        return early

    # --- what the producer tells it ---

    def attached(self, connection: Connection, name: str, producer_id: int, last_sequence_id: int) -> None:
        """There is a connection. The first time there is a name too, and what was early is taken; the
        broker's last id counts then alone, and only without an initial one (rules PROD-18, PROD-46)."""
        self.close_batch()  # under the limit it was filled for
        self._max_message_size = limit = connection.max_message_size
        self._batch.limit(limit)
        if self._key_batches is not None:
            self._key_batches.limit(*self._batch.limits)
        self.connection = connection
        if self.sealer is not None:
            self.sealer.limit(limit)
            return
        sealer = self.sealer = Sealer(name, producer_id, self._spec.compression, limit)
        if self._spec.initial_sequence_id is None:
            self._next_sequence_id = last_sequence_id + 1
        self._take_early(sealer)
        if self._spec.batching is None and not self._spec.chunking and self.ended is None:
            self._plain_sealer = sealer

    def _take_early(self, sealer: Sealer) -> None:
        """What was sent before there was a name: now, in order, with the tickets it has."""
        early, self._early = self._early, deque()
        next_ticket = self._next_ticket
        for ticket, message, publish_time in early:
            self._next_ticket = ticket
            try:
                self.check(message, publish_time)
                self._take(sealer, message, publish_time)
            except InvalidMessage as error:  # too large for this broker
                self._memory.free += payload_size(message)
                self._fail_untaken(error)
        self._next_ticket = next_ticket

    def end(self, error: PulsarError) -> None:
        """Nothing is taken from now on; the first reason given stays."""
        self.ended = self.ended or error
        self._plain_sealer = None
        self._memory.leave(self._handle, self._memory_free)

    def fail(self, error: PulsarError) -> None:
        """Everything that is not sealed fails (rule PROD-27)."""
        batch = self._batch
        count = batch.count
        if count:
            # The ids are spent: a later message must not get one that an application saw fail.
            self._next_sequence_id += len(batch.run)
            self._batch_timer.clear()
            self.give_back()
            self._memory.free += batch.size
            ticket = batch.first_ticket
            batch.clear()
            self._window.fail(ticket, count, error)
        if self._key_batches is not None and self._key_batches.count:
            self._batch_timer.clear()
            tickets: list[int] = []
            for each in self._key_batches.take():
                tickets += each.tickets
                self._memory.free += each.size
            self._window.fail_tickets(sorted(tickets), error)
        early, self._early = self._early, deque()
        self._memory.free += sum(payload_size(message) for _, message, _ in early)
        while early:
            ticket = early.popleft()[0]
            count = 1
            while early and early[0][0] == ticket + count:
                early.popleft()
                count += 1
            self._window.fail(ticket, count, error)

    # --- when tickets are settled ---

    @property
    def next_ticket(self) -> int:
        """Every ticket below this one was given."""
        return self._next_ticket

    def settled(self) -> None:
        """Some tickets are settled: there may be room again, and flushes may be done."""
        self._tell_of_room()
        waiting = self._window.settle_flushes(self.oldest_unsettled())
        self._window.watched = waiting or self.was_full
        if self._memory.blocked:
            self._memory.tell()

    def oldest_unsettled(self) -> int:
        """Every ticket below this one is settled."""
        if self._window.entries:
            return self._window.entries[0].oldest
        if self._batch.count:
            return self._batch.first_ticket
        if self._key_batches is not None and self._key_batches.count:
            return self._key_batches.first_ticket
        return self._early[0][0] if self._early else self._next_ticket
