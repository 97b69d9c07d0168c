"""`EntryBuilder`: makes entries of the messages that a producer has accepted.

It owns the sequence ids, the open batches with their timer and their lent memory, the encoder, and the
counters of written messages. Sealed entries go to the send window and, while attached, to the connection. The
`Admission` owns the limits, and gives each message its ticket.
"""

from ...model.config import BatchingPolicy, OutgoingMessage, nanoseconds_of
from ...model.errors import InvalidMessage, MessageTooLarge, PulsarError
from ...model.transaction_id import TransactionId
from ..connecting.connection import Connection
from ..memory import payload_size
from .key_batches import KeyBatches
from .message_schemas import MessageSchemas
from .open_batch import MEMBER_ALLOWANCE, OpenBatch, shared_fields
from .producer_services import ProducerServices
from .send_encoder import Frame, SendEncoder, encode_member
from .send_window import SealedEntry, SendWindow


class EntryBuilder:
    """Builds the entries of one producer."""

    def __init__(self, services: ProducerServices, window: SendWindow, schemas: MessageSchemas) -> None:
        spec = services.spec
        self._schemas = schemas
        self._encryption = encryption = services.encryption
        self._overhead = 0 if encryption is None else encryption.overhead
        """Bytes that encryption adds to a payload."""
        max_message_size = services.client.config.max_message_size
        self.connection: Connection | None = None
        """The connection for sealed entries; None while detached."""
        self.encoder: SendEncoder | None = None
        """The encoder; None until the producer has a name, which sealing needs."""
        initial = spec.initial_sequence_id
        self.next_sequence_id = 0 if initial is None else initial + 1
        """The sequence id of the next message without one, not counting messages in the batch's run."""
        policy = spec.batching or BatchingPolicy()
        self.batch = OpenBatch(policy, max_message_size - self._overhead)
        """The open batch; always empty if the producer does not batch, or batches by key."""
        self._key_batches: KeyBatches | None = None
        if policy.by_key:
            self._key_batches = KeyBatches()
        self.messages_sent = 0
        """The number of messages written to connections; a resent message counts again."""
        self.bytes_sent = 0
        """The payload bytes of the messages in `messages_sent`."""
        self.batches = 0
        """The number of sealed batches."""
        self.batched = 0
        """The number of messages in sealed batches."""
        self._context = services.context
        self._spec = spec
        self._window = window
        self._memory = services.client.memory
        self._max_message_size = max_message_size
        """The limit in bytes until a broker announces its own."""
        self._batch_delay = nanoseconds_of(policy.max_delay)
        self._batch_timer = services.context.deadlines.slot(self.close_batch)

    # --- open batches ---

    @property
    def count(self) -> int:
        """The number of messages in open batches."""
        return self.batch.count if self._key_batches is None else self._key_batches.count

    @property
    def size(self) -> int:
        """The payload bytes of messages in open batches."""
        return self.batch.size if self._key_batches is None else self._key_batches.size

    @property
    def first_ticket(self) -> int:
        """The lowest ticket in an open batch; call only while `count` is not 0."""
        return self.batch.first_ticket if self._key_batches is None else self._key_batches.first_ticket

    @property
    def pending(self) -> int:
        """The number of messages in open batches and in the send window."""
        return self._window.messages + (
            self.batch.count if self._key_batches is None else self._key_batches.count
        )

    @property
    def transaction(self) -> TransactionId | None:
        """The transaction of the messages in open batches; None for none."""
        if not self.count:
            return None
        return (self.batch.shared if self._key_batches is None else self._key_batches.shared)[2]

    @property
    def unused(self) -> int:
        """The bytes of lent memory that the open batch has not used."""
        return self.batch.unused

    # --- one more message ---

    def append_member(self, message: OutgoingMessage) -> bool:
        """Add a message with key or properties to an open batch of such messages.

        Returns False, having changed nothing, for a message that needs `take`.
        """
        if message.transaction is not None or not self._append(message):
            return False
        self.batch.room -= 1
        return True

    def append_member_in(self, message: OutgoingMessage) -> bool:
        """Add a message of a transaction to the open batch of that transaction. See `append_member`."""
        if message.transaction != self.batch.shared[2] or not self._append(message):
            return False
        self.batch.transaction_room -= 1
        return True

    def _append(self, message: OutgoingMessage) -> bool:
        if message.sequence_id is not None or message.deliver_at is not None:
            return False
        if message.replicate_to or message.schema is not None:
            return False
        sequence_id = self.next_sequence_id
        try:
            member = encode_member(message, sequence_id)
        except InvalidMessage:
            return False  # `take` raises the error
        payload = message.payload
        size = len(payload) if payload else 0
        extra = len(member) - size - MEMBER_ALLOWANCE
        if not self.batch.append_member(member, size, extra if extra > 0 else 0, sequence_id):
            return False
        self.next_sequence_id = sequence_id + 1
        return True

    def take(self, message: bytes | OutgoingMessage, ticket: int, publish_time: int) -> None:
        """Add a message to the open batch, or seal it alone; call once there is an encoder.

        Raises `InvalidMessage`, having changed nothing, for a message that cannot be sealed.
        """
        explicit = deliver_at = None
        if not isinstance(message, bytes):
            explicit, deliver_at = message.sequence_id, message.deliver_at
        sequence_id = self._counter if explicit is None else explicit
        if self._spec.batching is not None and deliver_at is None:
            if self._key_batches is None:
                self._join_batch(message, ticket, sequence_id, publish_time)
            else:
                self._join_key_batch(self._key_batches, message, ticket, sequence_id, publish_time)
            return
        encoder = self.encoder
        assert encoder is not None
        if self._spec.chunking:
            frames = encoder.chunks(message, sequence_id, publish_time, self._spec.chunk_max_message_size)
        else:
            frames = [encoder.single(message, sequence_id, publish_time)]
        self.close_batch()  # keeps the order (BATCH-09)
        if explicit is None:
            self.next_sequence_id = sequence_id + 1
        last = frames.pop()
        for frame in frames:
            self.pend(ticket, 0, sequence_id, None, frame, 0)
        self.pend(ticket, 1, sequence_id, None, last, payload_size(message))

    @property
    def _counter(self) -> int:
        """The sequence id of the next message without one (rule PROD-38)."""
        return self.next_sequence_id + len(self.batch.run)

    def _encode_member(self, message: OutgoingMessage, sequence_id: int) -> tuple[bytes, int]:
        """Return the encoded member of a batch, and its bytes beyond payload and allowance."""
        member = encode_member(message, sequence_id)
        if len(member) > self._max_message_size:
            raise MessageTooLarge(
                f"payload, key and properties have {len(member)} bytes together, the broker accepts "
                f"{self._max_message_size}"
            )
        return member, max(0, len(member) - payload_size(message) - MEMBER_ALLOWANCE)

    def _join_batch(
        self, message: bytes | OutgoingMessage, ticket: int, sequence_id: int, publish_time: int
    ) -> None:
        batch = self.batch
        self.give_back()
        size, extra, member = payload_size(message), 0, b""
        if not isinstance(message, bytes):
            member, extra = self._encode_member(message, sequence_id)
        # A message between this one and the batch may have failed: the tickets of a batch follow one another.
        if batch.count and not (
            ticket == batch.first_ticket + batch.count
            and batch.has_room_for(size, extra, sequence_id)
            and shared_fields(message) == batch.shared
        ):
            self.close_batch()
        if not batch.count:
            batch.begin(message, ticket, sequence_id, publish_time)
            self._batch_timer.set(self._context.now + self._batch_delay)
        if isinstance(message, bytes):
            batch.add_payload(message, sequence_id)
        else:
            self.next_sequence_id += len(batch.run) + (message.sequence_id is None)
            batch.add_encoded(member, size, extra, sequence_id)
        room = self._spec.max_pending_messages - self.pending
        if batch.full or room <= 0:
            self.close_batch()
        elif (space := batch.offer(self._counter, room)) > 0:
            batch.lend(self._memory.lend(self, space))

    def give_back(self) -> None:
        """Close the batch's fast path, and return the unused part of its lent memory."""
        batch = self.batch
        if batch.count:
            self._memory.returned(self, batch.withdraw())

    def _join_key_batch(
        self,
        batches: KeyBatches,
        message: bytes | OutgoingMessage,
        ticket: int,
        sequence_id: int,
        publish_time: int,
    ) -> None:
        bare = isinstance(message, bytes)
        whole = OutgoingMessage(message) if isinstance(message, bytes) else message
        member, extra = self._encode_member(whole, sequence_id)
        size = payload_size(message)
        if batches.count and not (
            batches.has_room_for(size, extra, sequence_id) and shared_fields(whole) == batches.shared
        ):
            self.close_batch()
        self.next_sequence_id += bare or whole.sequence_id is None
        if not batches.count:
            self._batch_timer.set(self._context.now + self._batch_delay)
        batches.add(message, member, size, extra, ticket, sequence_id, publish_time)
        if batches.full or self.pending >= self._spec.max_pending_messages:
            self.close_batch()

    # --- entries ---

    def close_batch(self) -> None:
        """Seal and send every open batch (rule BATCH-09)."""
        if self._key_batches is not None:
            self._close_key_batches(self._key_batches)
            return
        batch = self.batch
        count = batch.count
        if not count:
            return
        encoder = self.encoder
        assert encoder is not None
        self._batch_timer.clear()
        self.give_back()
        self.next_sequence_id += len(batch.run)
        ticket, lowest, highest, size = batch.first_ticket, batch.lowest, batch.highest, batch.size
        try:
            if count == 1:
                frame = encoder.single(batch.first, lowest, batch.publish_time)
            else:
                frame = encoder.batch(
                    batch.first, batch.publish_time, lowest, highest, count, batch.members()
                )
                self.batches += 1
                self.batched += count
        except PulsarError as error:  # rule BATCH-07: every ticket is settled
            batch.clear()
            self._window.fail(ticket, count, error)
            self._memory.free += size
            self._window.on_settled()
            return
        batch.clear()
        self.pend(ticket, count, lowest, None if count == 1 else highest, frame, size)

    def _close_key_batches(self, batches: KeyBatches) -> None:
        if not batches.count:
            return
        encoder = self.encoder
        assert encoder is not None
        self._batch_timer.clear()
        oldest, complete = batches.first_ticket, True
        for batch in batches.take():
            try:
                frame = batch.seal(encoder)
            except PulsarError as error:  # that batch alone
                self._window.fail_tickets(batch.tickets, error)
                self._memory.free += batch.size
                complete = False
                continue
            if len(batch.tickets) > 1:
                self.batches += 1
                self.batched += len(batch.tickets)
            self._write(self._window.add_key_batch(batch, oldest, frame))
        if not complete:
            self._window.on_settled()

    def pend(
        self, ticket: int, count: int, sequence_id: int, highest: int | None, frame: Frame, size: int
    ) -> None:
        """Add a sealed entry to the send window, and write it if there is a connection (rule PROD-40)."""
        self._write(self._window.add(ticket, count, sequence_id, highest, frame, size))

    def _write(self, entry: SealedEntry) -> None:
        """Write an entry, unless it is held, or there is no connection."""
        connection, held_from = self.connection, self._window.held_from
        if connection is not None and (held_from is None or entry.first_ticket < held_from):
            entry.written = True
            self.messages_sent += entry.count
            self.bytes_sent += entry.size
            connection.write(entry.frame)

    def write_held(self) -> None:
        """Write the entries that were held, and hold no more."""
        held = self._window.held
        self._window.held_from = None
        for entry in held:
            self._write(entry)

    # --- calls of the producer ---

    def attached(
        self,
        connection: Connection,
        name: str,
        producer_id: int,
        last_sequence_id: int,
        schema_version: bytes,
    ) -> None:
        """Use the limits of a new connection, and stamp later entries with the version of the schema.

        The first call also sets the name and the connection. After a later call new entries wait in the send
        window until `send_again` sets the connection. Only the first call applies the broker's last sequence
        id, unless the application gave an initial one (rules PROD-18, PROD-46).
        """
        self.close_batch()  # under the limit that the batch was filled for
        self._max_message_size = limit = connection.max_message_size
        self.batch.limit(limit - self._overhead)
        if self._key_batches is not None:
            self._key_batches.limit(*self.batch.limits)
        if self.encoder is not None:
            self.encoder.attached(limit, schema_version)
            return
        self.connection = connection
        codec = self._spec.compression
        self.encoder = SendEncoder(
            name, producer_id, codec, limit, schema_version, self._schemas.version, self._encryption
        )
        if self._spec.initial_sequence_id is None:
            self.next_sequence_id = last_sequence_id + 1

    def send_again(self, connection: Connection) -> None:
        """Write every entry that is not held, in order, with unchanged bytes, and then new ones."""
        self.connection = connection
        for entry in self._window.entries:
            self._write(entry)

    def fail(self, error: PulsarError) -> None:
        """Fail the messages in open batches (rule PROD-27)."""
        batch = self.batch
        count = batch.count
        if count:
            # Skip these ids: a later message must not reuse the id of a message that failed.
            self.next_sequence_id += len(batch.run)
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
