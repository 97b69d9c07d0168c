"""`Producer`: what becomes of a message from `send` to its receipt (rules PROD-01 to PROD-58, BATCH-01 to
BATCH-13).

It owns the tickets and sequence ids, the limit of unconfirmed messages, and what is sent again after a
reconnect. How it finds its broker is the attachment's; what a frame looks like is the sealer's; which
messages share an entry is the batch's; which receipt confirms what is the window's.

A message is, one after the other: *early* (the producer was never attached, so it has no name to seal with),
in the open batch, part of an *entry* of the window (sealed: its bytes are final, and are what is sent again),
settled. A ticket is settled exactly once, by `Receipts` or `SendFailed`.

`send` has a short path: a bare payload that fits into the open batch is appended, and nothing else is done.
"""

from collections import deque
from collections.abc import Sequence
from itertools import accumulate
from typing import Any, ClassVar, Literal

from ..model.config import BatchingPolicy, CompressionType, OutgoingMessage, ProducerSpec, seconds_to_ns
from ..model.errors import (
    ChecksumMismatch,
    ClosedError,
    ConnectionLost,
    InvalidMessage,
    MessageTooLarge,
    ProducerQueueIsFull,
    PulsarError,
    RemoteProtocolError,
    ServerError,
    TimedOut,
    broker_error,
)
from ..model.topic_name import TopicName
from ..wire import encode_command, proto
from .attachment import Attachment, Decision
from .batching import MEMBER_ALLOWANCE, OpenBatch
from .connection import Connection
from .envelopes import Frame, Sealer, encode_member, is_intact
from .outputs import (
    Attached,
    Closed,
    Detached,
    ProducerFailed,
    ProducerReady,
    Writable,
)
from .services import ClientContext, Services
from .window import Window

Command = proto.BaseCommand

MAX_PUBLISH_TIME = 2**63 - 1


class Producer:
    """One producer of one topic. Methods are called by the root with `context.now` set."""

    kind: Literal["producer"] = "producer"
    open_reply: ClassVar[int] = Command.PRODUCER_SUCCESS

    def __init__(
        self, context: ClientContext, services: Services, handle: int, wire_id: int, spec: ProducerSpec
    ) -> None:
        self.handle = handle
        self.wire_id = wire_id
        self.spec = spec
        self.topic = TopicName.parse(spec.topic)
        self._context = context
        self._services = services
        send_timeout = seconds_to_ns(spec.send_timeout)
        # One attempt to reconnect is made just before messages begin to time out (rule HAND-07).
        mandatory_stop = max(100_000_000, send_timeout - 100_000_000) if send_timeout else 0
        self.attachment = Attachment(context, services, self.topic, self, mandatory_stop=mandatory_stop)
        self._connection: Connection | None = None
        self._epoch = 0
        self._name = spec.name
        self._ended: PulsarError | None = None
        """Why nothing can be sent any more."""
        self._was_ready = False

        self._sealer: Sealer | None = None
        self._plain_sealer: Sealer | None = None
        """The same, while bare payloads go out by themselves: nothing to join, nothing to wait for."""
        self._max_message_size = services.config.max_message_size
        initial = spec.initial_sequence_id
        self._next_sequence_id = 0 if initial is None else initial + 1
        """For the next message that has none of its own; messages in the batch's run come before it."""

        self._limit = spec.max_pending_messages
        self._next_ticket = 0
        self._early: deque[tuple[bytes | OutgoingMessage, int]] = deque()
        policy = spec.batching or BatchingPolicy()
        self._batch = OpenBatch(policy, self._max_message_size)
        """Stays empty where the producer does not batch."""
        self._batch_delay = seconds_to_ns(policy.max_delay)
        self._batch_timer = context.deadlines.slot(self._close_batch)
        self._window = Window(
            context, handle, wire_id, self.topic.partition, send_timeout, self._timed_out, self._settled
        )
        self.on_receipt = self._window.on_receipt
        self._was_full = False
        """Somebody was told that there is no room, and waits for `Writable`."""

    # --- what the application asks for ---

    def send(self, message: bytes | OutgoingMessage, publish_time: int) -> int:
        """Take a message; returns its ticket. Raises, having changed nothing: `ClosedError`,
        `ProducerQueueIsFull`, `MessageTooLarge`, `InvalidMessage`."""
        batch = self._batch
        if type(message) is bytes and batch.room > 0 and (space := batch.space - len(message)) > 0:
            batch.space = space
            batch.room -= 1
            batch.run.append(message)
            ticket = self._next_ticket
            self._next_ticket = ticket + 1
            return ticket
        return self._send(message, publish_time)

    def send_many(self, messages: Sequence[bytes | OutgoingMessage], publish_time: int) -> range:
        """Take messages, in order, as many as the window has room for; returns their tickets.

        Raises as `send`, having taken none, except that a full window makes the range short and not an error.
        """
        self._check_open()
        first = self._next_ticket
        room = self._room()
        if len(messages) > room:
            self._was_full = self._window.watched = True
            messages = messages[:room]
        if set(map(type, messages)) <= {bytes}:
            payloads: Sequence[bytes] = messages  # type: ignore[assignment]
            if payloads:
                self._check_size(max(map(len, payloads)))
            self._send_payloads(payloads, publish_time)
        else:
            for message in messages:
                self._check(message, publish_time)
            for message in messages:
                self._send_or_fail(message, publish_time, first)
        return range(first, self._next_ticket)

    def push(self) -> None:
        """Send the open batch now (rule PROD-28)."""
        self._check_open()
        self._close_batch()

    def flush(self, request: int) -> None:
        """Send the open batch now, and say when everything taken so far is settled (rule PROD-49)."""
        self._check_open()
        self._close_batch()
        self._window.flush(request, self._next_ticket)
        self._settled()

    def forget_flush(self, request: int) -> None:
        """Nobody waits for this flush any more, if it is one of this producer's."""
        self._window.forget_flush(request)

    def close(self) -> None:
        """Nothing more is taken. What was sent may still be confirmed until the broker has answered; what was
        not sent yet fails now (rules PROD-50 to PROD-52)."""
        if self._ended is not None:
            return
        self._ended = error = ClosedError(f"producer {self.handle} on {self.topic} is closed")
        self._plain_sealer = None
        self._fail_batch(error)
        self._fail_early(error)
        self._settled()
        self.attachment.close()

    # --- taking messages ---

    def _send(self, message: bytes | OutgoingMessage, publish_time: int) -> int:
        sealer = self._plain_sealer
        if (
            sealer is not None
            and type(message) is bytes
            and len(message) <= self._max_message_size
            and self._window.messages < self._limit
            and type(publish_time) is int
            and 0 <= publish_time <= MAX_PUBLISH_TIME
        ):
            sequence_id = self._next_sequence_id
            frame = sealer.single(message, sequence_id, publish_time)
            self._next_sequence_id = sequence_id + 1
            ticket = self._next_ticket
            self._next_ticket = ticket + 1
            self._pend(ticket, 1, sequence_id, None, frame)
            return ticket
        self._check_open()
        if self._room() <= 0:
            self._was_full = self._window.watched = True
            raise ProducerQueueIsFull(
                f"producer {self.handle}: {self._limit} messages are unconfirmed (max_pending_messages)"
            )
        self._check(message, publish_time)
        ticket = self._next_ticket
        if self._sealer is None:
            if not isinstance(message, bytes):
                encode_member(message, 0)  # raises for text that cannot be sent, while somebody hears it
            self._early.append((message, publish_time))
            self._next_ticket = ticket + 1
        else:
            self._take(self._sealer, message, publish_time)
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
        self._settled()

    def _check_open(self) -> None:
        if self._ended is not None:
            error = ClosedError(str(self._ended))
            error.__cause__ = self._ended
            raise error

    def _room(self) -> int:
        """Messages that may still be taken (rules PROD-02, PROD-33)."""
        return self._limit - self._window.messages - self._batch.count - len(self._early)

    def _check(self, message: object, publish_time: int) -> None:
        """Whether it can be sent as far as can be said without sealing it (rules PROD-35, BATCH-13)."""
        if type(publish_time) is not int or not 0 <= publish_time <= MAX_PUBLISH_TIME:
            raise InvalidMessage(f"publish_time: milliseconds since 1970, not {publish_time!r}")
        if isinstance(message, bytes):
            self._check_size(len(message))
        elif not isinstance(message, OutgoingMessage):
            raise InvalidMessage(f"a message is bytes or an OutgoingMessage, not {type(message).__name__}")
        else:
            self._check_size(len(message.payload or b""))

    def _check_size(self, size: int) -> None:
        if size <= self._max_message_size:
            return
        if self.spec.compression is not CompressionType.NONE and self.spec.batching is None:
            return  # it is the compressed size that counts, which sealing finds out
        raise MessageTooLarge(f"the payload has {size} bytes, the broker accepts {self._max_message_size}")

    def _take(self, sealer: Sealer, message: bytes | OutgoingMessage, publish_time: int) -> None:
        """Into the open batch, or by itself; raises, having changed nothing, where it cannot be sealed."""
        explicit = deliver_at = None
        if not isinstance(message, bytes):
            explicit, deliver_at = message.sequence_id, message.deliver_at
        sequence_id = self._counter if explicit is None else explicit
        if self.spec.batching is not None and deliver_at is None:
            self._join_batch(message, sequence_id, publish_time)
        else:
            frame = sealer.single(message, sequence_id, publish_time)
            self._close_batch()  # keeps the order (exchanges 6)
            if explicit is None:
                self._next_sequence_id = sequence_id + 1
            ticket = self._next_ticket
            self._next_ticket = ticket + 1
            self._pend(ticket, 1, sequence_id, None, frame)

    @property
    def _counter(self) -> int:
        """The id of the next message that has none of its own (rule PROD-38)."""
        return self._next_sequence_id + len(self._batch.run)

    def _join_batch(self, message: bytes | OutgoingMessage, sequence_id: int, publish_time: int) -> None:
        batch = self._batch
        if isinstance(message, bytes):
            size, extra, member = len(message), 0, b""
        else:
            member = encode_member(message, sequence_id)
            size = len(message.payload or b"")
            if len(member) > self._max_message_size:
                raise MessageTooLarge(
                    f"payload, key and properties have {len(member)} bytes together, the broker accepts "
                    f"{self._max_message_size}"
                )
            extra = max(0, len(member) - size - MEMBER_ALLOWANCE)
        if batch.count and not batch.has_room_for(size, extra, sequence_id):
            self._close_batch()
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
            self._close_batch()
        else:
            batch.offer(self._counter, room)

    def _close_batch(self) -> None:
        """Seal the open batch and send it, if there is one (rule BATCH-09)."""
        batch = self._batch
        count = batch.count
        if not count:
            return
        sealer = self._sealer
        assert sealer is not None
        self._batch_timer.clear()
        self._next_sequence_id += len(batch.run)
        ticket, lowest, highest = batch.first_ticket, batch.lowest, batch.highest
        try:
            if count == 1:
                frame = sealer.single(batch.first, lowest, batch.publish_time)
            else:
                frame = sealer.batch(batch.first, batch.publish_time, lowest, highest, count, batch.members())
        except PulsarError as error:  # rule BATCH-07: nobody is left waiting
            batch.clear()
            self._window.fail(ticket, count, error)
            self._settled()
            return
        batch.clear()
        self._pend(ticket, count, lowest, None if count == 1 else highest, frame)

    def _pend(self, ticket: int, count: int, sequence_id: int, highest: int | None, frame: Frame) -> None:
        """It is sealed: it waits for its receipt, and goes out now if there is a connection (rule
        PROD-40)."""
        self._window.add(ticket, count, sequence_id, highest, frame)
        if self._connection is not None:
            self._connection.write(frame)

    # --- what the broker says about messages ---

    def on_send_error(self, connection: Connection, command: Any) -> None:
        """Exchanges 5.4."""
        error = broker_error(command.error, command.message)
        match error.code:
            case ServerError.TopicTerminatedError | ServerError.ProducerFenced:
                self.attachment.fail(error)
            case ServerError.NotAllowedError:
                entry = self._window.named(command.sequence_id)
                if entry is not None:
                    self._window.fail_entry(entry, error)
            case ServerError.ChecksumError:
                self._recover_checksum(connection, command.sequence_id, error)
            case _:
                lost = ConnectionLost(f"the broker could not store a message: {error}")
                lost.__cause__ = error
                connection.close(lost)

    def _recover_checksum(self, connection: Connection, sequence_id: int, error: PulsarError) -> None:
        """The broker got damaged bytes (rule PROD-44): were they damaged here or on the way?"""
        entries = self._window.entries
        if not entries:
            return
        head = entries[0]
        if self._window.named(sequence_id) is head and not is_intact(head.frame):
            damaged = ChecksumMismatch(f"message {head.sequence_id} was damaged in memory before it was sent")
            damaged.__cause__ = error
            self._window.fail_entry(head, damaged)
            return
        # What follows the refused entry may be stored already and would be confirmed out of order, so
        # everything goes again over a new connection.
        lost = ConnectionLost(f"message {sequence_id} was damaged on the way: {error}")
        lost.__cause__ = error
        connection.close(lost)

    # --- timeout, failure, and what depends on them ---

    def _timed_out(self) -> None:
        """Rule PROD-47: when the oldest has run out of time, everything fails, the open batch too."""
        self._fail_everything(
            TimedOut(
                f"a message was not confirmed within the send timeout of {self.spec.send_timeout:g} s; it "
                "may have been stored nevertheless"
            )
        )

    def _fail_everything(self, error: PulsarError) -> None:
        """Entries, batch and early messages, in the order of their tickets (rules PROD-26, PROD-27)."""
        self._window.fail_all(error)
        self._fail_batch(error)
        self._fail_early(error)
        self._settled()

    def _fail_batch(self, error: PulsarError) -> None:
        batch = self._batch
        count = batch.count
        if count:
            # The ids are spent: a later message must not get one that an application saw fail.
            self._next_sequence_id += len(batch.run)
            self._batch_timer.clear()
            ticket = batch.first_ticket
            batch.clear()
            self._window.fail(ticket, count, error)

    def _fail_early(self, error: PulsarError) -> None:
        count = len(self._early)
        if count:
            self._early.clear()
            self._window.fail(self._next_ticket - count, count, error)

    def _settled(self) -> None:
        """Some tickets are settled: there may be room again, and flushes may be done."""
        if self._was_full and self._ended is None and self._room() > 0:
            self._was_full = False
            self._context.emit(Writable(self.handle))
        waiting = self._window.settle_flushes(self._oldest_unsettled())
        self._window.watched = waiting or self._was_full

    def _oldest_unsettled(self) -> int:
        if self._window.entries:
            return self._window.entries[0].first_ticket
        if self._batch.count:
            return self._batch.first_ticket
        return self._next_ticket - len(self._early)

    # --- what the attachment says ---

    def open_command(self, request_id: int, connection: Connection) -> bytes:
        """PRODUCER: the epoch is 0 first and grows with every attempt (exchanges 4.3)."""
        command = proto.CommandProducer(
            topic=str(self.topic),
            producer_id=self.wire_id,
            request_id=request_id,
            encrypted=False,
            epoch=self._epoch,
            user_provided_producer_name=self.spec.name is not None,
            producer_access_mode=proto.Shared,
            txn_enabled=False,
        )
        self._epoch += 1
        if self._name is not None:
            command.producer_name = self._name
        for key, value in self.spec.properties.items():
            command.metadata.add(key=key, value=value)
        return encode_command(Command.PRODUCER, command)

    def close_command(self, request_id: int) -> bytes:
        command = proto.CommandCloseProducer(producer_id=self.wire_id, request_id=request_id)
        return encode_command(Command.CLOSE_PRODUCER, command)

    def on_opened(self, connection: Connection, reply: Any) -> None:
        """PRODUCER_SUCCESS (rules PROD-13 to PROD-19, PROD-46)."""
        name = self._name or reply.producer_name
        if not name or (reply.HasField("producer_ready") and not reply.producer_ready):
            what = (
                "gave the producer no name"
                if not name
                else "made a shared producer wait for exclusive access"
            )
            connection.close(RemoteProtocolError(f"the broker {what}"))
            return
        self._name = name
        self._close_batch()  # under the limit it was filled for
        self._max_message_size = connection.max_message_size
        self._batch.limit(connection.max_message_size)
        self._connection = connection
        if self._sealer is not None:
            self._sealer.limit(connection.max_message_size)
            self._send_again(connection)
            self._context.emit(Attached(self.handle))
            return
        self._sealer = Sealer(name, self.wire_id, self.spec.compression, connection.max_message_size)
        last_sequence_id = max(reply.last_sequence_id, -1)
        if self.spec.initial_sequence_id is None:
            self._next_sequence_id = last_sequence_id + 1
        self._was_ready = True
        self._context.emit(ProducerReady(self.handle, name, last_sequence_id, str(self.topic)))
        self._take_early(self._sealer)
        if self.spec.batching is None and self._ended is None:
            self._plain_sealer = self._sealer

    def _take_early(self, sealer: Sealer) -> None:
        """What was sent before there was a name: now, in order, with the tickets it has."""
        early, self._early = self._early, deque()
        self._next_ticket -= len(early)
        for message, publish_time in early:
            try:
                self._check(message, publish_time)
                self._take(sealer, message, publish_time)
            except InvalidMessage as error:  # too large for this broker
                self._fail_untaken(error)

    def _send_again(self, connection: Connection) -> None:
        """Everything unconfirmed, in order, the same bytes (rule PROD-46). What this broker would not accept
        must not be sent: it would end the connection, again and again."""
        sealer = self._sealer
        assert sealer is not None
        for entry in [entry for entry in self._window.entries if not sealer.fits(entry.frame)]:
            limit = connection.max_message_size
            error = MessageTooLarge(f"the broker that serves the topic now accepts only {limit} bytes")
            self._window.fail_entry(entry, error)
        for entry in self._window.entries:
            connection.write(entry.frame)

    def on_open_refused(self, error: PulsarError) -> Decision:
        """Rule PROD-21: one of the two quota policies wants the application to know."""
        if getattr(error, "code", None) is ServerError.ProducerBlockedQuotaExceededException:
            self._fail_everything(error)
        return Decision.DEFAULT

    def on_detached(self, cause: PulsarError) -> None:
        self._connection = None
        if self._was_ready and self._ended is None:
            self._context.emit(Detached(self.handle, cause))

    def on_failed(self, error: PulsarError) -> None:
        self._end(error)
        self._context.emit(
            Closed(self.handle, error) if self._was_ready else ProducerFailed(self.handle, error)
        )

    def on_closed(self) -> None:
        closed = ClosedError(f"producer {self.handle} on {self.topic} was closed before it was confirmed")
        self._end(closed)
        if self._was_ready:
            self._context.emit(Closed(self.handle, None))
        else:  # somebody may wait for it to be ready
            self._context.emit(ProducerFailed(self.handle, closed))

    def _end(self, error: PulsarError) -> None:
        """No ticket and no flush is left unsettled (rules PROD-51, PROD-52)."""
        self._connection = None
        self._plain_sealer = None
        self._ended = self._ended or error
        self._batch_timer.clear()
        self._fail_everything(error)
