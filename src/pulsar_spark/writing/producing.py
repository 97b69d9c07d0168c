"""`TaskProducer`: the rows of one task become entries of topics, each confirmed before the task is done.

It owns the producers of the task, one for each topic partition, and drives them through a `Link`. It opens
them, and waits while another producer has the name. It sends entry by entry as `numbering` cuts them, and
limits what may be unconfirmed. It ends only with a receipt for every row.

For exactly once it also finds out, on the wire, whether the broker deduplicates. A broker that does reports
the last sequence id of a name when the name is opened again. So where a name is unknown, the first row goes
out as an entry of its own, and after its receipt the name is closed and opened again. Where the broker still
knows nothing of it, `DeduplicationOff` is raised; that one row stays in the topic. A name that the broker
knows needs no such check.

It knows nothing of Spark, of columns, or of the order of rows.
"""

import logging
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from pulsar_sansio import (
    BatchingPolicy,
    CompressionType,
    ConnectionLost,
    OutgoingMessage,
    ProducerSpec,
    PulsarError,
    TransactionId,
)
from pulsar_sansio import IncompatibleSchema as NotCompatible
from pulsar_sansio import ProducerBusy as NameIsTaken
from pulsar_sansio import client_outputs as outputs
from pulsar_sansio.schemas import RegisteredSchema
from pulsar_security import KeyFiles

from ..errors import DeduplicationOff, LinkTimeout, ProducerBusy, PulsarSparkError, SchemaRefused
from ..link import Link
from .numbering import NO_ID, Cutter, batch_of, first_sequence_id

log = logging.getLogger("pulsar_spark.producing")

Payload = bytes | OutgoingMessage

MAX_BYTES_IN_FLIGHT: Final = 32 * 2**20
"""Bytes of a task that may be unconfirmed at once; an entry that has more goes alone."""

MAX_WAITING: Final = 64 * 2**20
"""Bytes of a task, those of `ROW` included, that may wait to become full entries: then what waits goes out as
it is. Some hundred topics at a time never come to it."""

ROW: Final = 256
"""About what a row takes besides its bytes."""

MAX_PENDING: Final = 1_000_000
"""The most that a producer of the core takes; `maxInFlight` is what limits it."""

MAX_BATCH_BYTES: Final = 64 * 2**20
"""Where entries end is decided here, so the core is given no reason of its own to end one."""

RETRY_PAUSES: Final = (0.05, 0.1, 0.2, 0.5, 1.0)
"""Seconds between attempts to open a producer; the last again and again."""


LOST_IN_TRANSACTION: Final = (
    ". A transaction fails with the connection of its unconfirmed rows, and Spark repeats the task. Where "
    "every attempt fails like this, look at the broker's log: a Pulsar before 4.0.8 and 4.1.2 may refuse all "
    "transactions of a topic that two producers began at once, until the topic is unloaded "
    "(apache/pulsar#24945)"
)
"""The broker closes the producer before it says why, so the error itself does not tell."""


class WriteFailed(PulsarSparkError):
    """Rows could not be stored, or it is not known whether they were; the text names topic and cause."""


@dataclass(frozen=True)
class Numbered:
    """Exactly once: the producer's name, and the number of the batch that the rows are of."""

    name: str
    batch: int


@dataclass(frozen=True)
class Limits:
    """The limits of a task that sends, and how it encodes entries. Durations are seconds."""

    batch_messages: int = 1000
    batch_bytes: int = 128 * 2**10
    in_flight: int = 50_000
    send_timeout: float = 120.0
    busy_timeout: float = 60.0
    operation_timeout: float = 30.0
    compression: CompressionType = CompressionType.NONE
    encryption_keys: tuple[str, ...] = ()
    key_files: KeyFiles | None = None
    schema: RegisteredSchema | None = None


@dataclass
class Written:
    """The totals of one task. `known`: rows that the broker had already, from an earlier attempt."""

    rows: int = 0
    bytes: int = 0
    entries: int = 0
    known: int = 0
    topics: set[str] = field(default_factory=set)


@dataclass
class UnconfirmedEntry:
    """One that is not confirmed yet. `lowest`: its first row's sequence id."""

    rows: int
    size: int
    lowest: int

    def known_in_part(self, known: int) -> bool:
        """True if a broker that knows ids up to `known` knows some of these rows, not all.

        It would drop the entry whole."""
        return self.lowest <= known < self.lowest + self.rows - 1


class Destination:
    """One topic partition of the task: its producer, and the rows that are not an entry yet."""

    def __init__(self, task: "TaskProducer", topic: str) -> None:
        self.topic = topic
        self.waiting: list[Payload] = []
        self.waiting_sizes: list[int] = []
        self.in_flight: deque[UnconfirmedEntry] = deque()
        self.unchecked = False
        """True while it is not known whether the broker deduplicates."""
        self.last_known = NO_ID
        """The last sequence id that the broker reported."""
        self.error: PulsarError | None = None
        self._task = task
        self._handle = -1
        self._ready: outputs.ProducerReady | None = None
        self._schema: RegisteredSchema | None = None
        """The schema of the rows that are not an entry yet, beside the producer's."""
        self._sent = 0
        self._first_id = 0
        limits = task.limits
        self._cutter = Cutter(limits.batch_messages, limits.batch_bytes)
        if task.numbered is not None:
            self._first_id = first_sequence_id(task.numbered.batch)

    # --- opening and closing ---

    def start(self) -> None:
        """Ask for the producer; `opened` says when it is there."""
        limits, numbered = self._task.limits, self._task.numbered
        spec = ProducerSpec(
            self.topic,
            name=None if numbered is None else numbered.name,
            send_timeout=limits.send_timeout,
            max_pending_messages=MAX_PENDING,
            batching=BatchingPolicy(limits.batch_messages, MAX_BATCH_BYTES, max_delay=60.0),
            compression=limits.compression,
            encryption_keys=limits.encryption_keys,
            crypto_key_reader=limits.key_files,
            schema=limits.schema,
            initial_sequence_id=self._first_id + self._sent - 1,
        )
        self.error = self._ready = None
        link = self._task.link
        self._handle = link.client.open_producer(time.monotonic_ns(), spec)
        link.listen(self._handle, self.on_output)

    def opened(self) -> bool:
        """True if the producer is there, or has failed."""
        return self._ready is not None or self.error is not None

    def joined(self) -> None:
        """The producer is attached: compare what the broker knows of its name. Raises `WriteFailed` where the
        broker knows more than the task can have sent."""
        assert self._ready is not None
        numbered = self._task.numbered
        if numbered is None:
            return
        self.last_known = known = self._ready.last_sequence_id
        if batch_of(known) > numbered.batch:
            raise WriteFailed(
                f"{self.topic}: the broker has rows of batch {batch_of(known)} from producer "
                f"{numbered.name}, and this is batch {numbered.batch}: the checkpoint is older than what was "
                "written. Begin with a new checkpoint and a new topic"
            )
        if self._sent:
            return
        if known == NO_ID:
            self.unchecked = True
            self._cutter.extra.add(1)
        elif batch_of(known) == numbered.batch:
            self._cutter.extra.add(known - self._first_id + 1)

    def check(self) -> None:
        """The first row is confirmed: does the broker know the name now? Raises `DeduplicationOff`."""
        self._task.settle([self])
        self._task.close_all([self])
        self._task.open_all([self])
        self.unchecked = False
        if self.last_known < self._first_id:
            raise DeduplicationOff(deduplication_off(self.topic))

    def close(self) -> int:
        """Ask for the end; gives the request."""
        return self._task.link.client.close(time.monotonic_ns(), self._handle)

    def abandon(self) -> None:
        link = self._task.link
        if self._handle >= 0:
            link.listen(self._handle, None)
            if not link.closed:
                link.client.abandon(time.monotonic_ns(), self._handle)

    # --- sending ---

    def take(
        self, messages: Sequence[Payload], sizes: Sequence[int], schema: RegisteredSchema | None = None
    ) -> None:
        """Take the next rows, whose messages have this schema; entries that are complete go out."""
        if schema is not self._schema:  # an entry has one
            self.flush()
            self._schema = schema
        start = 0
        for stop in self._cutter.cut(sizes):
            self.waiting += messages[start:stop]
            self.waiting_sizes += sizes[start:stop]
            self.flush()
            start = stop
        self.waiting += messages[start:]
        self.waiting_sizes += sizes[start:]

    def flush(self) -> None:
        """The rows that wait are an entry, and go out. Waits while too much is unconfirmed."""
        if not self.waiting:
            return
        messages, self.waiting = self.waiting, []
        size, self.waiting_sizes = sum(self.waiting_sizes), []
        entry = UnconfirmedEntry(len(messages), size, self._first_id + self._sent)
        if entry.known_in_part(self.last_known):  # it came back to more than there was when it was opened
            raise self._failed(taken_over(self.last_known))
        task = self._task
        task.wait_for_room(len(messages), size)
        client = task.link.client
        try:
            self._hand_over(messages)
            client.push(time.monotonic_ns(), self._handle)
        except PulsarError as error:
            raise self._failed(self.error or error) from error
        self._sent += len(messages)
        self.in_flight.append(entry)
        task.sent(len(messages), size)
        if self.unchecked:
            self.check()

    def _hand_over(self, messages: list[Payload]) -> None:
        client, transaction = self._task.link.client, self._task.transaction
        publish_time = time.time_ns() // 1_000_000
        if set(map(type, messages)) == {bytes}:
            taken = client.send_many(time.monotonic_ns(), self._handle, messages, publish_time, transaction)
            assert len(taken) == len(messages)  # there is room: see `wait_for_room`
            return
        append = client.appender(self._handle)
        for message in messages:
            if append(message, transaction) < 0:
                if isinstance(message, bytes) and transaction is not None:
                    message = OutgoingMessage(message, transaction=transaction)
                client.send(time.monotonic_ns(), self._handle, message, publish_time)

    # --- what the machine says ---

    def on_output(self, output: outputs.Output) -> None:
        match output:
            case outputs.Receipts(_, _, message_ids):
                self._confirmed(message_ids)
            case outputs.ProducerReady():
                self._ready = output
            case outputs.Attached(_, known) if self._task.numbered is not None and known is not None:
                self.last_known = known
                self.error = self.error or self._came_back(known)
            case outputs.Detached(_, cause) if self._task.transaction is not None and self.in_flight:
                self.error = self.error or cause
            case outputs.ProducerFailed(_, error) | outputs.SendFailed(_, _, _, error):
                self.error = self.error or error
            case outputs.Closed(_, error) if error is not None:
                self.error = self.error or error
        if self.error is not None:
            self._task.failed.add(self)

    def _confirmed(self, message_ids: Sequence[object]) -> None:
        done = 0
        written = self._task.written
        while done < len(message_ids):
            entry = self.in_flight.popleft()
            self._task.confirmed(entry.rows, entry.size)
            if message_ids[done].ledger_id < 0:  # type: ignore[attr-defined]
                written.known += entry.rows
            written.rows += entry.rows
            written.bytes += entry.size
            written.entries += 1
            written.topics.add(self.topic)
            done += entry.rows

    def _came_back(self, known: int) -> PulsarError | None:
        """Return the error if the broker would drop rows of a producer that came back; None if it would not.

        Ids that another attempt stored meanwhile may end inside an entry of this one: the broker would drop
        that entry whole. Then the task has to run again, with a cut there.
        """
        if any(entry.known_in_part(known) for entry in self.in_flight):
            return taken_over(known)
        oldest = self.in_flight[0].lowest if self.in_flight else self._first_id + self._sent
        if self._sent and not self.unchecked and known < oldest - 1:
            return TakenOver(f"the broker knows ids up to {known} only, and has confirmed {oldest - 1}")
        return None

    def _failed(self, error: PulsarError) -> Exception:
        if isinstance(error, NameIsTaken):
            return ProducerBusy(
                f"{self.topic}: another producer has the name "
                f"{self._task.numbered and self._task.numbered.name}, and stayed for "
                f"{self._task.limits.busy_timeout:g} s (option producerBusyTimeoutMs)"
            )
        if isinstance(error, NotCompatible):
            return SchemaRefused(f"{self.topic}: the broker refuses the schema of the rows: {error}")
        lost = self._task.transaction is not None and isinstance(error, ConnectionLost)
        hint = LOST_IN_TRANSACTION if lost else ""
        return WriteFailed(f"writing to {self.topic} failed: {error}{hint}")

    def raise_error(self) -> None:
        """Raises what went wrong, if something did."""
        if self.error is not None:
            raise self._failed(self.error) from self.error


class TakenOver(PulsarError):
    """Another attempt of the task stored rows under this producer's name while it was disconnected."""

    retryable = True


def taken_over(known: int) -> TakenOver:
    """An entry has ids on both sides of what the broker knows: it would drop the entry whole."""
    return TakenOver(f"another attempt of this task has stored rows up to id {known} meanwhile")


class TaskProducer:
    """The producers of one task. `numbered`: None unless ids of rows are what makes them exactly once.

    `transaction`: the one that the messages are in. It fails with its connection, because the broker may have
    stored what is not confirmed, and would store it again.

    The caller calls `send` for all rows, then `finish`; and `abandon` where anything was raised. Raises
    `ProducerBusy`, `DeduplicationOff`, `SchemaRefused` and `WriteFailed`.
    """

    def __init__(
        self,
        link: Link,
        limits: Limits,
        numbered: Numbered | None,
        transaction: TransactionId | None = None,
    ) -> None:
        self.link = link
        self.transaction = transaction
        self.limits = limits
        self.numbered = numbered
        self.written = Written()
        self.failed: set[Destination] = set()
        """The destinations with which something went wrong; the fault may be over."""
        self._destinations: dict[str, Destination] = {}
        self._rows_in_flight = 0
        self._bytes_in_flight = 0
        self._waiting = 0

    def open(self, topics: Iterable[str]) -> None:
        """Open producers for topics or topic partitions that are not open yet, all at once."""
        missing = [
            Destination(self, topic) for topic in dict.fromkeys(topics) if topic not in self._destinations
        ]
        if missing:
            self._destinations.update((each.topic, each) for each in missing)
            self.open_all(missing)
            self._join_transaction(missing)

    def send(
        self,
        topic: str,
        messages: Sequence[Payload],
        sizes: Sequence[int],
        schema: RegisteredSchema | None = None,
    ) -> None:
        """Take the next rows for a topic or topic partition that was opened; `sizes` in bytes. `schema`: of
        all messages, beside that of the producer."""
        self._waiting += sum(sizes) + ROW * len(sizes)
        self._destinations[topic].take(messages, sizes, schema)
        if self._waiting > MAX_WAITING:
            self._flush()

    def finish(self) -> Written:
        """Send what is left, wait for every receipt, and close the producers."""
        self.confirm()
        self.close_all(list(self._destinations.values()))
        return self.written

    def confirm(self) -> None:
        """Send what is left, and wait for every receipt."""
        self._flush()
        self.settle(list(self._destinations.values()))

    def abandon(self) -> None:
        """Leave everything as it is: the task has failed."""
        for each in self._destinations.values():
            each.abandon()

    def _flush(self) -> None:
        for each in self._destinations.values():
            each.flush()

    # --- what destinations ask for ---

    def open_all(self, some: Sequence[Destination]) -> None:
        """Open and wait; again while it fails for something that passes."""
        limits = self.limits
        began = time.monotonic()
        attempt = 0
        while some:
            for each in some:
                each.start()
            self._wait(
                lambda some=some: all(each.opened() for each in some) or None,  # type: ignore[misc]
                limits.operation_timeout + 5.0,
                f"opening producers on {some[0].topic}",
            )
            failed = [each for each in some if each.error is not None]
            waited = time.monotonic() - began
            for each in some:
                if each.error is None:
                    each.joined()
                    continue
                taken = isinstance(each.error, NameIsTaken)
                if waited >= (limits.busy_timeout if taken else limits.send_timeout) or not (
                    taken or each.error.retryable
                ):
                    each.raise_error()
            some = failed
            if some:
                log.info("%s: %s; trying again", some[0].topic, some[0].error)
                self._pause(RETRY_PAUSES[min(attempt, len(RETRY_PAUSES) - 1)])
                attempt += 1

    def _join_transaction(self, some: Sequence[Destination]) -> None:
        """Let messages of the transaction go to these topics, before the first, so that none waits."""
        id_ = self.transaction
        if id_ is None:
            return
        self._answers(
            some,
            [self.link.client.join_transaction(time.monotonic_ns(), id_, each.topic) for each in some],
            f"a part of transaction {id_}",
        )

    def close_all(self, some: Sequence[Destination]) -> None:
        """Close in good order: the name is free for the next task when this returns."""
        self._answers(some, [each.close() for each in some], "closing the producer")
        for each in some:
            each.abandon()

    def _answers(self, some: Sequence[Destination], requests: Sequence[int], what: str) -> None:
        """Wait for the answers to a request for each destination."""
        for each, request in zip(some, requests, strict=True):
            try:
                self.link.call(
                    lambda _, request=request: request,  # type: ignore[misc]
                    self.limits.operation_timeout,
                    f"{what} on {each.topic}",
                )
            except (PulsarError, LinkTimeout) as error:
                raise WriteFailed(f"writing to {each.topic} failed: {error}") from error

    def settle(self, some: Sequence[Destination]) -> None:
        """Wait until everything sent to them is confirmed."""

        def settled() -> bool | None:
            for each in self.failed:
                each.raise_error()
            return not any(each.in_flight for each in some) or None

        if settled() is None:
            self._wait(settled, self.limits.send_timeout + 5.0, "receipts")

    def wait_for_room(self, rows: int, size: int) -> None:
        """Wait until an entry may be sent."""

        def room() -> bool | None:
            for each in self.failed:
                each.raise_error()
            free = self._rows_in_flight + rows <= self.limits.in_flight
            free = free and self._bytes_in_flight + size <= MAX_BYTES_IN_FLIGHT
            return free or not self._rows_in_flight or None

        if room() is None:
            self._wait(room, self.limits.send_timeout + 5.0, "receipts")

    def sent(self, rows: int, size: int) -> None:
        """An entry is on its way."""
        self._waiting -= size + ROW * rows
        self._rows_in_flight += rows
        self._bytes_in_flight += size
        self.link.serve()

    def confirmed(self, rows: int, size: int) -> None:
        self._rows_in_flight -= rows
        self._bytes_in_flight -= size

    def _wait(self, condition: Callable[[], bool | None], timeout: float, what: str) -> None:
        try:
            self.link.wait(condition, timeout, what)
        except (PulsarError, LinkTimeout) as error:
            raise WriteFailed(f"writing failed: {error}") from error

    def _pause(self, seconds: float) -> None:
        """Serve the connections meanwhile."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            self.link.serve(left)


def deduplication_off(topic: str) -> str:
    """Return a text that says what is wrong and how the user puts it right."""
    name = topic.rpartition("-partition-")[0] or topic
    namespace = "/".join(name.split("://", 1)[-1].split("/")[:2])
    return (
        f"{topic} has no deduplication, so deliveryGuarantee=exactly-once cannot be kept. Switch it on for "
        f"the namespace (pulsar-admin namespaces set-deduplication {namespace} --enable), for the topic "
        f"(pulsar-admin topicPolicies set-deduplication-status {name} --enable) or in the broker "
        "(brokerDeduplicationEnabled=true), or write with deliveryGuarantee=at-least-once. The first row of "
        "the task was written to find this out, and stays in the topic"
    )
