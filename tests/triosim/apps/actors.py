"""The applications of a run: tasks that produce and consume, and are cancelled at any await.

Each call is recorded in the books in the same step in which it returns or raises, so that what a
cancelled call may and may not have done is known exactly.
"""

from collections.abc import Awaitable, Callable
from contextlib import ExitStack, suppress
from itertools import count
from typing import TYPE_CHECKING, Any

import trio

from pulsar_sansio import (
    ClosedError,
    MessageId,
    OutgoingMessage,
    ProducerQueueIsFull,
    PulsarError,
    SubscriptionType,
)
from pulsar_sim.engine.randomness import Stream
from pulsar_trio import (
    Client,
    Consumer,
    ExclusiveConsumer,
    FailoverConsumer,
    InternalError,
    Message,
    Producer,
)
from tests.triosim.apps.books import ConsumerBook, ProducerBook, Sent, State, SubscriptionBook
from tests.triosim.profile import consumer_options, producer_options

if TYPE_CHECKING:
    from tests.triosim.world import World

PAUSE = 0.03
"""Seconds between two attempts at what was refused or cancelled."""


def excused(error: PulsarError) -> None:
    """Pass over errors that calls may raise in bad weather; raise those that are bugs of the library."""
    if isinstance(error, InternalError):
        raise error


class Producing:
    """One application that sends a number of messages, with one producer after the other."""

    def __init__(self, world: "World", index: int) -> None:
        self.world = world
        self.index = index
        self.stream = world.streams.stream(f"producer {index}")
        self.topic = self.stream.choice(world.profile.topics)
        self.left = world.profile.messages
        self.done = trio.Event()
        """Everything was sent, and the last producer is closed."""
        self.sessions = 0

    async def run(self, client: Client) -> None:
        world = self.world
        while self.left > 0:
            self.sessions += 1
            try:
                with world.cancel_session(self):
                    await self._session(client)
            except PulsarError as error:
                excused(error)
                if isinstance(error, ClosedError) and world.is_closed(client):
                    return
            await trio.sleep(PAUSE)
        self.done.set()

    async def _session(self, client: Client) -> None:
        world = self.world
        options = producer_options(self.stream)
        with ExitStack() as leaving:
            async with client.create_producer(self.topic, **options) as producer:
                waits = options["when_full"] == "wait"
                book = ProducerBook(world.books, self.topic, producer, options["max_pending_messages"], waits)
                world.books.producers.append(book)
                leaving.callback(book.left)
                try:
                    async with trio.open_nursery() as nursery:
                        for task in range(self.stream.between(1, 3)):
                            name = f"producer {self.index}.{self.sessions}.{task}"
                            sender = Sender(self, book, task, world.streams.stream(name), name)
                            nursery.start_soon(sender.run)
                finally:
                    world.books.producers.remove(book)
                    world.ended.append(book)
        book.ended()


class Sender:
    """One of the tasks that share a producer."""

    def __init__(
        self, application: Producing, book: ProducerBook, task: int, stream: Stream, name: str
    ) -> None:
        self.application = application
        self.world = application.world
        self.book = book
        self.producer: Producer = book.producer
        self.order = (application.index, application.sessions, task)
        self.stream = stream
        self.name = name
        self.calls: list[tuple[Callable[[], Awaitable[str]], int]] = [
            (self._enqueue, 40),
            (self._enqueue_nowait, 5),
            (self._send, 15),
            (self._send_many, 8),
            (self._wait, 10),
            (self._flush, 4),
            (self._pause, 4),
            (self._close, 1),
        ]

    async def run(self) -> None:
        for _ in range(self.stream.between(1, 60)):
            if self.application.left <= 0:
                break
            call = self.stream.weighted(self.calls)
            try:
                if not await self.world.call(self.stream, self.name, call):
                    await trio.sleep(self.stream.choice([0, 0, PAUSE]))
            except PulsarError as error:
                excused(error)
                self.book.refused(error)
                if isinstance(error, ClosedError):
                    return
            self.book.look()
        if self.stream.chance(300):
            await self.world.call(self.stream, self.name, self._close)

    def _new(self) -> Sent:
        self.application.left -= 1
        largest = self.world.profile.largest
        padding = self.stream.spread(1, largest) if largest else 0
        return self.world.books.new(self.application.topic, self.order, padding)

    async def _enqueue(self) -> str:
        sent = self._new()
        try:
            receipt = await self.producer.enqueue(sent.payload, **sent.fields)
        except BaseException:
            sent.state = State.KEPT_OUT
            raise
        self.book.taken(sent, receipt)
        return f"enqueued {sent}"

    async def _enqueue_nowait(self) -> str:
        sent = self._new()
        try:
            receipt = self.producer.enqueue_nowait(sent.payload, **sent.fields)
        except ProducerQueueIsFull:
            sent.state = State.KEPT_OUT
            return f"no room for {sent}"
        except BaseException:
            sent.state = State.KEPT_OUT
            raise
        self.book.taken(sent, receipt)
        return f"enqueued {sent} at once"

    async def _send(self) -> str:
        sent = self._new()
        try:
            message_id = await self.producer.send(sent.payload, **sent.fields)
        except PulsarError as error:
            self.world.books.came_to(sent, error)
            raise
        self.world.books.came_to(sent, message_id)
        return f"sent {sent} {message_id}"

    async def _send_many(self) -> str:
        many = [self._new() for _ in range(self.stream.spread(1, 80))]
        asked = count()
        given = 0

        def messages() -> Any:
            nonlocal given
            for sent in many:
                given = next(asked) + 1
                yield OutgoingMessage(sent.payload, key=sent.key) if sent.key else sent.payload

        try:
            message_ids = await self.producer.send_many(messages())
        finally:
            for sent in many[given:]:
                sent.state = State.KEPT_OUT
        if len(message_ids) != len(many):
            self.world.fail("INV-P1", f"{len(many)} messages sent, {len(message_ids)} ids")
        for sent, message_id in zip(many, message_ids, strict=False):
            self.world.books.came_to(sent, message_id)
        return f"sent {len(many)} from {many[0]}"

    async def _wait(self) -> str:
        if not self.book.receipts:
            return "nothing to wait for"
        sent = self.stream.choice(self.book.receipts[-30:])
        assert sent.receipt is not None
        try:
            result = await sent.receipt.wait()
        except PulsarError as error:
            self.world.books.came_to(sent, error)
            return f"{sent} failed: {type(error).__name__}"
        self.world.books.came_to(sent, result)
        return f"{sent} is {result}"

    async def _flush(self) -> str:
        before = list(self.book.unsettled)
        await self.producer.flush()
        self.book.must_be_settled(before, "flush")
        return "flushed"

    async def _close(self) -> str:
        if self.stream.chance(300):
            return await self._abandon()
        before = list(self.book.unsettled)
        await self.producer.aclose()
        self.book.must_be_settled(before, "aclose")
        await self.world.books.check_cancelled("flush after the end", self.producer.flush)
        return "closed"

    async def _abandon(self) -> str:
        await self.world.books.check_cancelled("close", self.producer.aclose)
        return "closed without waiting"

    async def _pause(self) -> str:
        seconds = self.stream.spread(1, 100) / 1000
        await trio.sleep(seconds)
        return f"slept {seconds}"


class Consuming:
    """One application that consumes until the run is over, with one consumer after the other."""

    def __init__(self, world: "World", index: int, book: SubscriptionBook) -> None:
        self.world = world
        self.index = index
        self.book = book
        self.stream = world.streams.stream(f"consumer {index}")
        self.sessions = 0

    async def run(self, client: Client) -> None:
        world = self.world
        while not world.over:
            self.sessions += 1
            try:
                with world.cancel_session(self):
                    await self._session(client)
            except PulsarError as error:
                excused(error)
                if isinstance(error, ClosedError) and world.is_closed(client):
                    return
            await trio.sleep(PAUSE)

    async def _session(self, client: Client) -> None:
        world, subscription = self.world, self.book.subscription
        options = consumer_options(self.stream)
        with ExitStack() as leaving:
            async with client.subscribe(
                subscription.topic, subscription.name, subscription.kind, **options
            ) as consumer:
                policy = options["batch_receive"]
                book = ConsumerBook(self.book, consumer, policy.max_messages if policy else 1)
                leaving.callback(book.left, MessageId(0, 0))
                world.books.consumers.append(book)
                try:
                    async with trio.open_nursery() as nursery:
                        for task in range(self.stream.between(1, 3)):
                            name = f"consumer {self.index}.{self.sessions}.{task}"
                            receiver = Receiver(world, book, world.streams.stream(name), name)
                            nursery.start_soon(receiver.run)
                finally:
                    world.books.consumers.remove(book)


class Receiver:
    """One of the tasks that share a consumer."""

    def __init__(self, world: "World", book: ConsumerBook, stream: Stream, name: str) -> None:
        self.world = world
        self.book = book
        self.consumer: Consumer = book.consumer
        self.stream = stream
        self.name = name
        receiving: list[tuple[Callable[[], Awaitable[str]], int]] = [
            (self._receive, 30),
            (self._receive_many, 20),
            (self._iterate, 10),
            (self._receive_nowait, 5),
        ]
        self.calm: list[tuple[Callable[[], Awaitable[str]], int]] = [*receiving, (self._acknowledge, 60)]
        """Once the weather is good, everything is acknowledged."""
        self.calls = [
            *receiving,
            (self._acknowledge, 40),
            (self._negative_acknowledge, 3),
            (self._flush, 3),
            (self._redeliver, 1),
            (self._run, 2),
            (self._drain, 1),
            (self._slow, world.profile.slow_permille // 10 + 1),
            (self._close, 1),
        ]
        if isinstance(self.consumer, FailoverConsumer):
            self.calls.append((self._active_changed, 3))

    async def run(self) -> None:
        left = self.stream.between(1, 80)
        while not self.world.over and (left > 0 or self.world.healed):
            left -= 1
            call = self.stream.weighted(self.calm if self.world.healed else self.calls)
            try:
                if not await self.world.call(self.stream, self.name, call):
                    await trio.sleep(self.stream.choice([0, 0, PAUSE]))
            except PulsarError as error:
                excused(error)
                if isinstance(error, ClosedError):
                    return
                await trio.sleep(PAUSE)  # another task has `run` going on
            except trio.EndOfChannel:  # it was drained: the last task that finds out closes it
                return

    async def _receive(self) -> str:
        with self.book.waiting():
            message = await self.consumer.receive()
        self.book.received([message])
        return f"received {message.message_id}"

    async def _receive_many(self) -> str:
        with self.book.waiting():
            messages = await self.consumer.receive_many(self.stream.spread(1, 100))
        self.book.received(messages)
        return f"received {len(messages)} from {messages[0].message_id}"

    async def _iterate(self) -> str:
        left = self.stream.between(1, 5)
        with self.book.waiting():
            async for message in self.consumer:
                self.book.received([message])
                left -= 1
                if not left:
                    break
        return "iterated"

    async def _receive_nowait(self) -> str:
        try:
            message = self.consumer.receive_nowait()
        except trio.WouldBlock:
            await trio.lowlevel.checkpoint()
            return "nothing there"
        self.book.received([message])
        return f"received {message.message_id} at once"

    async def _acknowledge(self) -> str:
        return self.acknowledge()

    def acknowledge(self) -> str:
        hand = self.book.hand
        if not hand:
            return "nothing to acknowledge"
        consumer = self.consumer
        if isinstance(consumer, ExclusiveConsumer | FailoverConsumer) and self._may_be_cumulative():
            last = max(hand, key=lambda message: message.message_id)
            consumer.acknowledge_cumulative(last)
            hand.clear()
            return f"acknowledged up to {last.message_id}"
        if self.stream.chance(500) and not self.world.healed:
            consumer.acknowledge(hand.pop(self.stream.below(len(hand))))
            return "acknowledged one"
        consumer.acknowledge(hand)
        number = len(hand)
        hand.clear()
        return f"acknowledged {number}"

    def _may_be_cumulative(self) -> bool:
        """Everything before was received by this application: so of an exclusive one."""
        kind = self.book.subscription.subscription.kind
        return kind is SubscriptionType.EXCLUSIVE and self.stream.chance(300)

    async def _negative_acknowledge(self) -> str:
        if not self.book.hand:
            return "nothing to acknowledge negatively"
        message = self.book.hand.pop(self.stream.below(len(self.book.hand)))
        self.consumer.negative_acknowledge(message)
        return f"negatively acknowledged {message.message_id}"

    async def _redeliver(self) -> str:
        self.consumer.redeliver_unacknowledged()
        self.book.hand.clear()
        return "wants everything again"

    async def _flush(self) -> str:
        await self.consumer.flush()
        return "flushed"

    async def _close(self) -> str:
        if self.stream.chance(300):
            return await self._abandon()
        async with trio.open_nursery() as nursery:
            if isinstance(self.consumer, FailoverConsumer):
                nursery.start_soon(_hear_of_turns, self.consumer)
            await self.consumer.aclose()
            nursery.cancel_scope.deadline = trio.current_time() + 1.0
        if nursery.cancel_scope.cancelled_caught:
            self.world.fail("WAKE", "a task waits for another turn of a consumer that is closed")
        await self.world.books.check_cancelled("flush after the end", self.consumer.flush)
        return "closed"

    async def _abandon(self) -> str:
        await self.world.books.check_cancelled("close", self.consumer.aclose)
        return "closed without waiting"

    async def _active_changed(self) -> str:
        assert isinstance(self.consumer, FailoverConsumer)
        with trio.move_on_after(0.2):
            return f"is active: {await self.consumer.active_changed()}"
        return "active as before"

    async def _run(self) -> str:
        """Run until some number is handled, or the consumer is drained, or nothing comes for a while."""
        left = self.stream.between(1, 100)
        stop = trio.Event()
        begun = ended = 0

        async def handle(message: Message) -> None:
            nonlocal begun, ended
            if stop.is_set():
                self.world.books.fail("STOP", f"{message.message_id} is handled after the stop")
            begun += 1
            self.book.received([message])
            if self.stream.chance(300):
                await trio.sleep(self.stream.spread(1, 20) / 1000)
            ended += 1
            if ended >= left:
                stop.set()
            if self.stream.chance(30):
                raise ValueError("a handler that fails")
            if message in self.book.hand:  # not, where everything was asked for again
                self.book.hand.remove(message)

        # Tasks begin in any order: the books want what an exclusive consumer receives in its own.
        exclusive = self.book.subscription.subscription.kind is SubscriptionType.EXCLUSIVE
        concurrency = 1 if exclusive else self.stream.between(1, 4)
        self.book.runs += 1
        try:
            with trio.move_on_after(0.2) as limit:
                await self.consumer.run(handle, concurrency=concurrency, stop=stop)
        finally:
            self.book.runs -= 1
        if begun != ended and not limit.cancelled_caught:
            self.world.books.fail("STOP", f"{begun} handlers have begun, {ended} have ended")
        return f"handled {ended} of {begun}"

    async def _drain(self) -> str:
        await self.consumer.drain()
        try:
            self.consumer.receive_nowait()
        except trio.EndOfChannel:
            return "drained"
        except trio.WouldBlock:
            pass
        self.world.books.fail("STOP", "a drained consumer may still give messages")
        return "not drained"

    async def _slow(self) -> str:
        seconds = self.stream.spread(1, 300) / 1000
        await trio.sleep(seconds)
        return f"slept {seconds}"


async def _hear_of_turns(consumer: FailoverConsumer) -> None:
    """Wait for every change of the active consumer until this one is closed."""
    with suppress(ClosedError):
        while True:
            await consumer.active_changed()
