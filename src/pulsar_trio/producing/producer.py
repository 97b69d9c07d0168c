"""`Producer`: sends to one topic, with a window of unconfirmed messages.

`enqueue` puts a message into the window and gives a `Receipt`; `send` also waits for it. Both are
coroutines that do not suspend while there is room, so a message costs no scheduling; they yield every
`TURN` messages. Order on the topic is the order of the calls, also among tasks that wait for room.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from itertools import islice
from operator import is_not
from typing import TYPE_CHECKING, Any, Generic, TypeVar, Unpack

import trio
from trio.lowlevel import enable_ki_protection

from pulsar_sansio import (
    InvalidMessage,
    MessageId,
    OutgoingFields,
    OutgoingMessage,
    PartitionStatistics,
    ProducerQueueIsFull,
    ProducerSpec,
    PulsarError,
    SendLatency,
    TransactionId,
    unknown_names,
)
from pulsar_sansio import ProducerStatistics as Counted
from pulsar_sansio import client_outputs as outputs

from .. import official_names
from ..client.endpoint import TURN, Endpoint
from ..client.options import TEN_YEARS
from ..client.transaction import Transaction, id_of
from ..errors import trio_error
from ..values import T_contra
from .receipts import PAGE, MessageIds, Page, Receipt, Settled

if TYPE_CHECKING:
    from ..client.driver import Driver

ResultT = TypeVar("ResultT")

CHUNK_MESSAGES = 1000
CHUNK_BYTES = 1024 * 1024
"""The most that `send_many` takes from its iterable at a time: about one batch."""


class MessageFields(OutgoingFields, total=False):
    """Keywords of `send` and `enqueue`, as in `OutgoingMessage`. Times are datetimes with a time zone, or
    milliseconds since 1970. `deliver_after`, in place of `deliver_at`: a timedelta or seconds from now, by
    the wall clock, 0 to ten years. `transaction`: see `client.transaction`."""

    deliver_after: float | timedelta | None
    transaction: Transaction | None


@dataclass(frozen=True, slots=True)
class ProducerStatistics:
    """`pending`: messages in the window. `waiting`: tasks that wait for room in it. The rest is as in
    `pulsar_sansio.ProducerStatistics`, over all partitions."""

    confirmed: int
    failed: int
    pending: int
    waiting: int
    pending_bytes: int
    messages_sent: int
    bytes_sent: int
    batches: int
    batched_messages: int
    key_failures: int
    latency: SendLatency | None


@unknown_names(official_names.PRODUCER)
class Producer(Endpoint, Generic[T_contra]):
    """Made by `client.create_producer`. Use it from any task of the same `trio.run`.

    `T_contra`: the type of what it sends: bytes, or the values of its schema. None is a null value, a
    tombstone where the message has a key.
    """

    _kind = "producer"

    def __init__(self, driver: "Driver", handle: int, spec: ProducerSpec, *, waits: bool = True) -> None:
        """`waits`: for room, where there is none."""
        super().__init__(driver, handle)
        self._waits = waits
        self._intercepted = bool(spec.interceptors)
        self._append: Callable[..., int] = self._machine.appender(handle)
        self._send: Callable[..., int] = self._machine.send
        self._send_many: Callable[..., range] = self._machine.send_many
        self._begins = spec.batching is not None
        """A message may begin something with a deadline of its own: a batch, or a partition's producer."""
        self._sets_timer = False
        self._pages: dict[int, Page] = {}
        self._page_end = 0
        self._last = -1
        self._confirmed = self._failed = 0
        self._line = trio.StrictFIFOLock()
        self._in_line = 0
        self._room = trio.lowlevel.ParkingLot()
        self.name = ""
        """The name the broker knows this producer by."""
        self._last_sequence_id: Callable[[], int] = self._machine.last_sequence_id(handle)

    # --- one message ------------------------------------------------------------------------------------

    @enable_ki_protection
    async def send(
        self, message: T_contra | OutgoingMessage | None, **fields: Unpack[MessageFields]
    ) -> MessageId:
        """Send one message and wait until the broker has confirmed it; gives its id.

        It does not wait for a batch to fill: what is in the open batch goes with it (rule PROD-28).
        `enqueue` and `Receipt.wait` in one: cancelled before it is in the window, nothing is sent; cancelled
        afterwards, only the waiting stops. Raises what `enqueue` raises, and `TimedOut` after `send_timeout`.
        """
        if fields:
            message = outgoing(self._driver, message, fields)
        message = _plain(message)
        await self._checkpoint_occasionally()
        receipt = await self._in_turn(partial(self._put, message))
        if self._pending() == 1:
            # The shortest way: written before this task waits. More than one share a wake-up of the writer.
            self._driver.command(self._machine.push, self._handle)
        else:
            self._run_driver()
            self._driver.push_soon(self._handle)
        return await receipt.wait()

    @enable_ki_protection
    async def enqueue(
        self, message: T_contra | OutgoingMessage | None, **fields: Unpack[MessageFields]
    ) -> Receipt:
        """Put one message into the window, waiting for room where there is none; gives its receipt.

        Once it returns, the message is sent whatever happens to the caller; cancelled before that, it is not.
        `fields` are those of `MessageFields`. Raises `InvalidMessage` or `MessageTooLarge` for the message,
        `ResourceClosed` or `ResourceBroken` for the producer, and `ProducerQueueIsFull` (of the client's
        memory: `MemoryBufferIsFull`) with `when_full="fail"`.
        """
        inside: TransactionId | None = None
        if fields:
            only = fields.get("transaction")
            if only is not None and len(fields) == 1 and type(message) is bytes:
                inside = id_of(only, self._driver)
            else:
                message = outgoing(self._driver, message, fields)
        self._turn -= 1
        if self._turn <= 0:
            self._turn = TURN
            await trio.lowlevel.checkpoint()
        if self._in_line:
            return await self._enqueue_in_turn(_within(message, inside))
        ticket = self._append(message, inside)
        if ticket < 0:
            message = _within(message, inside)
            try:
                receipt = self._put(message)
            except ProducerQueueIsFull:
                if not self._waits:
                    raise
                return await self._enqueue_in_turn(message)
            if inside is not None:  # it may join the topic, which the broker can do while more are put
                self._sets_timer = False
                self._driver.after_urgent_call()
            elif self._outputs or self._sets_timer:
                self._run_driver()
            return receipt
        # `_receipt` once more: the call would be a tenth of what this path costs.
        self._last = ticket
        if ticket >= self._page_end:
            self._turn_page(ticket)
        receipt = Receipt()
        receipt._page = self._page
        receipt._ticket = ticket
        return receipt

    async def _enqueue_in_turn(self, message: Any) -> Receipt:
        receipt = await self._in_turn(partial(self._put, _plain(message)))
        self._run_driver()
        return receipt

    @enable_ki_protection
    def enqueue_nowait(
        self, message: T_contra | OutgoingMessage | None, **fields: Unpack[MessageFields]
    ) -> Receipt:
        """`enqueue` that raises `ProducerQueueIsFull` instead of waiting for room."""
        if fields:
            message = outgoing(self._driver, message, fields)
        if self._in_line:
            raise ProducerQueueIsFull(f"{self._in_line} tasks already wait for room in the window")
        ticket = self._append(message)
        if ticket >= 0:
            return self._receipt(ticket)
        receipt = self._put(message)
        self._run_driver()
        return receipt

    def _put(self, message: Any) -> Receipt:
        """Give the machine one message, or raise `ProducerQueueIsFull`."""
        driver = self._driver
        now = driver.tick = self._now()
        message = _plain(message)
        try:
            ticket = self._send(now, self._handle, message, (now + driver.wall_offset) // 1_000_000)
        except Exception as error:
            raise driver.own_fault(error) from error.__cause__
        if self._begins or driver.generation != self._generation:
            # Where nothing begins there is but one timeout for all messages: the first one's is the earliest
            # until the machine has said something.
            self._generation = driver.generation
            self._sets_timer = True
        return self._receipt(ticket)

    def _receipt(self, ticket: int) -> Receipt:
        """The receipt of the message that was taken last."""
        self._last = ticket
        if ticket >= self._page_end:
            self._turn_page(ticket)
        receipt = Receipt()
        receipt._page = self._page
        receipt._ticket = ticket
        return receipt

    def _run_driver(self) -> None:
        """Let the driver process the machine's outputs and timer after `_put`."""
        driver = self._driver
        if self._outputs:
            driver.after_call()
        elif self._sets_timer:
            driver.after_quiet_call()
        self._sets_timer = False

    # --- many -------------------------------------------------------------------------------------------

    async def send_many(
        self,
        messages: Iterable[T_contra | OutgoingMessage | None],
        *,
        transaction: Transaction | None = None,
    ) -> Sequence[MessageId]:
        """Send messages in order, pipelined, and wait for all of them; gives their ids in the same order.

        `transaction`: that of all of them; an `OutgoingMessage` has to name it, too. Takes from the iterable
        as the window has room, up to 1000 messages or about 1 MiB at a time. When messages fail, the first
        one's error is raised after all are settled. The call ends early when the iterable raises, a message
        is refused, there is no room (with `when_full="fail"`) or the call is cancelled. The messages taken
        before that are in the window and are sent.
        """
        if not isinstance(messages, Iterable):
            raise InvalidMessage(f"messages: several of bytes or OutgoingMessage, not {messages!r}")
        inside = None if transaction is None else id_of(transaction, self._driver)
        prepared = _plain if inside is None else partial(_plain_within, inside)
        iterator = iter(messages)
        pages: list[tuple[Page, range]] = []
        size = TURN
        await trio.lowlevel.checkpoint()
        failure: Exception | None = None
        while failure is None:
            chunk: list[Any] = []
            try:
                chunk.extend(islice(iterator, 1))
                following: Iterator[Any] = islice(iterator, size - 1)
                if chunk and (inside is not None or type(chunk[0]) is not bytes):
                    # One by one: they may share a buffer, or name another transaction.
                    chunk[0] = prepared(chunk[0])
                    following = map(prepared, following)
                chunk.extend(following)
            except Exception as error:
                failure = error  # what came before it is sent
            if not chunk:
                break
            done = 0
            while done < len(chunk):
                rest = chunk[done:] if done else chunk
                try:
                    taken = await self._in_turn(partial(self._put_many, rest, inside))
                except InvalidMessage:
                    plain: list[Any] = [prepared(message) for message in chunk]
                    if any(map(is_not, plain, chunk)):
                        chunk = plain
                        continue
                    if not self._intercepted:  # else it is the first one
                        await self._put_up_to_the_wrong_one([_within(message, inside) for message in rest])
                    raise
                done += sum(len(tickets) for _, tickets in taken)
                pages += taken
            size = _next_size(chunk)
            await trio.lowlevel.checkpoint()
        if failure is not None:
            raise failure
        settled: list[Settled] = []
        for page, tickets in pages:
            while (ticket := page.unsettled(tickets)) is not None:
                await page.wait(ticket)
            settled += page.ranges(tickets)
        for part in settled:
            if part.error is not None:
                raise part.error.with_traceback(None)
        return MessageIds(settled)

    async def _put_up_to_the_wrong_one(self, messages: Sequence[Any]) -> None:
        """The machine refuses many as a whole when one of them is wrong; those before it are sent."""
        for message in messages:
            await self._in_turn(partial(self._put, message))
            self._run_driver()

    def _pages_of(self, tickets: range) -> Iterator[tuple[Page, range]]:
        """The pages these tickets are on, with each page's share."""
        first = tickets.start
        while first < tickets.stop:
            page = self._pages[first // PAGE]
            yield page, range(first, min(page.end, tickets.stop))
            first = page.end

    def _put_many(
        self, messages: Sequence[Any], transaction: TransactionId | None
    ) -> list[tuple[Page, range]]:
        """Give the machine as many messages as it takes, or raise `ProducerQueueIsFull` when it takes none.

        `transaction`: that of the payloads. Gives the tickets by the page they are on.
        """
        driver = self._driver
        try:
            now = driver.tick = self._now()
            publish_time = (now + driver.wall_offset) // 1_000_000
            tickets = self._send_many(now, self._handle, messages, publish_time, transaction)
        except Exception as error:
            raise driver.own_fault(error) from error.__cause__
        if not tickets:
            raise ProducerQueueIsFull("the window is full")
        self._last = tickets[-1]
        while self._last >= self._page_end:
            self._turn_page(max(tickets.start, self._page_end))
        pages = list(self._pages_of(tickets))
        driver.after_call()
        return pages

    async def flush(self) -> None:
        """Send what is collected and wait until everything in the window is confirmed or failed.

        Raises what the first that failed has failed with, once all are settled; receipts say which.
        """
        await self._request(self._machine.flush)

    async def _before_closing(self) -> None:
        """The machine gives up what is not confirmed when it closes, so it is flushed first."""
        if self._pending():
            with trio.move_on_after(self._driver.config.operation_timeout):
                await self.flush()

    # --- the window -------------------------------------------------------------------------------------

    async def _in_turn(self, attempt: Callable[[], ResultT]) -> ResultT:
        """The result of `attempt` when there is room for it; tasks get room in the order they asked."""
        if not self._in_line:
            try:
                return attempt()
            except ProducerQueueIsFull:
                if not self._waits:
                    raise
        self._in_line += 1
        try:
            async with self._line:
                while True:
                    try:
                        return attempt()
                    except ProducerQueueIsFull:
                        await self._room.park()
        finally:
            self._in_line -= 1

    def _pending(self) -> int:
        return self._last + 1 - self._confirmed - self._failed

    def _turn_page(self, ticket: int) -> None:
        """Begin the page of a ticket."""
        self._page = Page(self, ticket, ticket - ticket % PAGE + PAGE)
        self._page_end = self._page.end
        self._pages[ticket // PAGE] = self._page

    def _settle(
        self, first: int, end: int, message_ids: Sequence[MessageId], error: PulsarError | None
    ) -> None:
        start = first
        while first < end:
            page = self._pages[first // PAGE]
            stop = min(end, page.end)
            if page.settle(Settled(first, stop, start, message_ids, error)):
                del self._pages[first // PAGE]
            first = stop

    # --- the driver's side ------------------------------------------------------------------------------

    def _on_output(self, output: Any) -> None:
        if type(output) is outputs.Receipts:  # the usual one, and one per message where keys spread them
            first, message_ids = output.first, output.message_ids
            count = len(message_ids)
            self._confirmed += count
            self._settle(first, first + count, message_ids, None)
            return
        match output:
            case outputs.SendFailed(_, first, count, error):
                self._failed += count
                self._settle(first, first + count, (), trio_error(error))
            case outputs.Writable():
                self._room.unpark_all()
            case outputs.ProducerReady(_, name, _, topic):
                self.name, self.topic = name, topic
                self._last_sequence_id = self._machine.last_sequence_id(self._handle)
                self.connected = True
                self._append = self._machine.appender(self._handle)  # another one where there are partitions
                self._begins = self._begins or bool(self._machine.partition_statistics(self._handle))
                self._ready.set(None)
            case outputs.ProducerFailed(_, error):
                self._ready.set(None, error)
            case _:
                super()._on_output(output)

    def _on_end(self, error: PulsarError) -> None:
        self._append = self._send = self._send_many = self._refuse
        last_sequence_id = self._last_sequence_id()
        self._last_sequence_id = lambda: last_sequence_id  # the machine is not kept for it
        self._failed += self._pending()
        for page in list(self._pages.values()):
            page.fail_rest(error)
        self._pages.clear()
        self._room.unpark_all()

    # --- facts about it -----------------------------------------------------------------------------------

    def statistics(self) -> ProducerStatistics:
        """The statistics since the producer was opened; most read 0 once the client has released it."""
        try:
            counted = self._machine.producer_statistics(self._handle)
        except PulsarError:  # it ended long ago
            counted = Counted()
        return ProducerStatistics(
            self._confirmed,
            self._failed,
            self._pending(),
            self._in_line,
            counted.pending_bytes,
            counted.messages_sent,
            counted.bytes_sent,
            counted.batches,
            counted.batched_messages,
            counted.key_failures,
            counted.latency,
        )

    @property
    def last_sequence_id(self) -> int:
        """The highest sequence id that the broker has confirmed to this producer, or had stored of its name
        before; -1 for none. Of a partitioned topic it is the highest of all partitions. After the end it
        stays as it was."""
        return self._last_sequence_id()

    @property
    def partitions(self) -> int:
        """The number of partitions that messages are spread over; 0 where the topic is not partitioned. It
        grows with the topic. Raises `ResourceClosed` or `ResourceBroken` after the end."""
        return len(self.partition_statistics())

    def partition_statistics(self) -> Sequence[PartitionStatistics]:
        """Statistics of each partition, in the order of partitions; empty where the topic is not partitioned.
        Raises as `partitions`."""
        if self._ended is not None:
            self._refuse()
        return self._machine.partition_statistics(self._handle)

    def _waiting(self) -> list[str]:
        return [f"{self._in_line} tasks wait for room in the window"] if self._in_line else []

    def __repr__(self) -> str:
        state = "closed" if self._ended else "connected" if self.connected else "not connected"
        return f"<Producer {self.name!r} of {self.topic}, {state}>"


def outgoing(driver: "Driver", payload: Any, fields: MessageFields) -> OutgoingMessage:
    """Return a message of a payload and the keywords of `send`."""
    if isinstance(payload, OutgoingMessage):
        raise InvalidMessage(
            "an OutgoingMessage has its own key, properties and times; give no keywords with it"
        )
    given = dict(fields)
    delay = given.pop("deliver_after", None)
    if (transaction := given.get("transaction")) is not None:
        given["transaction"] = id_of(transaction, driver)
    try:
        message = OutgoingMessage(payload, **given)  # type: ignore[arg-type]
    except TypeError:
        for name in given:
            if name not in MessageFields.__annotations__:
                raise official_names.wrong_argument("send", name, MessageFields.__annotations__) from None
        raise
    if delay is not None:
        if message.deliver_at is not None:
            raise InvalidMessage("deliver_after: not together with deliver_at")
        now = (driver.now() + driver.wall_offset) // 1_000_000
        message.deliver_at = now + round(_delay("deliver_after", delay) * 1000)
    return message


def _within(message: Any, transaction: TransactionId | None) -> Any:
    """Return a message, of a payload one in a transaction."""
    if transaction is None or not isinstance(message, bytes):
        return message
    return OutgoingMessage(message, transaction=transaction)


def _plain_within(transaction: TransactionId, message: Any) -> Any:
    """Return a message of a transaction as the machine takes it. Raises `InvalidMessage` for one that names
    no transaction or another one."""
    if message is None:
        return OutgoingMessage(None, transaction=transaction)
    if isinstance(message, OutgoingMessage) and message.transaction != transaction:
        raise InvalidMessage("an OutgoingMessage has its own transaction; name it there, too")
    return _plain(message)


def _plain(message: Any) -> Any:
    """A message as the machine takes it: what the application could still change is copied."""
    if message is None:
        return OutgoingMessage(None)
    return bytes(message) if isinstance(message, bytearray | memoryview) else message


def _delay(name: str, delay: object) -> float:
    """Seconds."""
    given = delay.total_seconds() if isinstance(delay, timedelta) else delay
    if isinstance(given, bool) or not isinstance(given, int | float) or not 0 <= given <= TEN_YEARS:
        raise InvalidMessage(f"{name}: a timedelta or seconds from 0 to {TEN_YEARS}, not {delay!r}")
    return given


def _next_size(chunk: Sequence[Any]) -> int:
    """Return the number of messages of this size to take next."""
    total = 0
    for message in chunk:
        payload = message.payload if isinstance(message, OutgoingMessage) else message
        total += len(payload or b"")
    return max(1, min(CHUNK_MESSAGES, CHUNK_BYTES * len(chunk) // (total + 1)))
