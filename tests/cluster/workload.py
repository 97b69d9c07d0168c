"""`Workload`: producers and consumers that run while faults befall the cluster, and the outcome."""

from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import dataclass, field

import trio

from pulsar_trio import BatchingPolicy, Client, OutgoingMessage, SubscriptionType

PRODUCERS = 4
KEYS = 5
"""Keys of each producer; no other producer has them."""
ROUND = 25
"""Messages that a producer sends together: their receipts are awaited together."""
PAUSE = 0.05
"""Seconds between two rounds of a producer."""
KINDS = ("shared", "failover", "key_shared")
CONSUMERS = 2
"""Consumers of each kind, on a subscription of its own."""

STEADY = 2.0
"""Seconds that messages flow undisturbed before and after each fault."""

PATIENCE = 240.0
"""Seconds until messages flow again, or all that was confirmed has arrived."""

OpenClient = Callable[[], AbstractAsyncContextManager[Client]]


@dataclass
class Book:
    """The deliveries of one subscription."""

    kind: str
    highest: dict[str, int] = field(default_factory=dict)
    """Key -> the highest number delivered so far."""
    missing: dict[str, set[int]] = field(default_factory=dict)
    """Key -> the numbers below the highest that were never delivered."""
    again: int = 0
    """Deliveries of messages that had been delivered before."""
    reordered: int = 0
    """First deliveries behind a later message of their key."""
    longest: float = 0.0
    """The longest time between two first deliveries since `begin`, in seconds."""
    longest_of_a_key: float = 0.0
    """The longest time between two first deliveries of one key since `begin`, in seconds."""
    last: float = 0.0
    last_of: dict[str, float] = field(default_factory=dict)
    """Key -> the time of its last first delivery."""

    def begin(self) -> None:
        """Count redeliveries and pauses anew."""
        self.again = 0
        self.longest = self.longest_of_a_key = 0.0

    def note(self, value: bytes) -> None:
        key, _, text = value.decode().partition(":")
        number, highest = int(text), self.highest.get(key, -1)
        if number <= highest:
            missing = self.missing.get(key, set())
            if number in missing:
                missing.discard(number)
                self.reordered += 1
            else:
                self.again += 1
            return
        if number > highest + 1:
            self.missing.setdefault(key, set()).update(range(highest + 1, number))
        self.highest[key] = number
        now = trio.current_time()
        if self.last:
            self.longest = max(self.longest, now - self.last)
        self.longest_of_a_key = max(self.longest_of_a_key, now - self.last_of.get(key, now))
        self.last = self.last_of[key] = now

    def lacks(self, confirmed: dict[str, int]) -> int:
        """Return how many of the confirmed messages were never delivered; key -> the last number."""
        return sum(
            max(0, last - self.highest.get(key, -1))
            + sum(number <= last for number in self.missing.get(key, ()))
            for key, last in confirmed.items()
        )


@dataclass(frozen=True)
class Effect:
    """The consequences of one fault for the subscriptions, by their kind."""

    again: dict[str, int]
    """Deliveries of messages that had been delivered before."""
    pause: dict[str, float]
    """The longest time without a new message, in seconds."""
    pause_of_a_key: dict[str, float]
    """The longest time without a new message of one key, in seconds."""


@dataclass(frozen=True)
class Outcome:
    """The fate of the messages of one scenario."""

    confirmed: int
    lost: dict[str, int]
    """Kind -> confirmed messages that never arrived."""
    reordered: dict[str, int]
    """Kind -> first deliveries out of the order of their key, where the kind has an order."""
    effects: dict[str, Effect]
    """By the names of the faults."""

    @property
    def holds(self) -> bool:
        """Nothing that was confirmed is lost, and no key is out of order."""
        return self.confirmed > 0 and not any(self.lost.values()) and not any(self.reordered.values())


class Workload:
    """`open_client` is called for the client of the producers and for that of the consumers."""

    def __init__(self, topic: str, open_client: OpenClient) -> None:
        self.topic = topic
        self._open_client = open_client
        self._confirmed: dict[str, int] = {}
        """Key -> the number of its last message that was confirmed."""
        self._rounds = [0] * PRODUCERS
        """Rounds of each producer that were confirmed."""
        self._stopping = False
        self.books = {kind: Book(kind) for kind in KINDS}

    async def run(self, faults: Mapping[str, Callable[["Workload"], Awaitable[None]]]) -> Outcome:
        """Start all, let one fault after the other happen while messages flow, let all arrive, and judge."""
        effects: dict[str, Effect] = {}
        async with AsyncExitStack() as stack:
            client = await stack.enter_async_context(self._open_client())
            sending = await stack.enter_async_context(self._open_client())
            consuming = await stack.enter_async_context(trio.open_nursery())
            for kind in KINDS * CONSUMERS:
                consuming.start_soon(self._consume, client, self.books[kind])
            async with trio.open_nursery() as producing:
                for number in range(PRODUCERS):
                    producing.start_soon(self._produce, sending, number)
                await self.flows()
                await trio.sleep(STEADY)
                for name, happen in faults.items():
                    for book in self.books.values():
                        book.begin()
                    await happen(self)
                    await self.flows()
                    await trio.sleep(STEADY)
                    effects[name] = self._effect()
                self._stopping = True
            with trio.move_on_after(PATIENCE):
                await until(lambda: self._all_arrived(self._confirmed))
            consuming.cancel_scope.cancel()
        ordered = [book for book in self.books.values() if book.kind != "shared"]
        return Outcome(
            sum(last + 1 for last in self._confirmed.values()),
            {kind: book.lacks(self._confirmed) for kind, book in self.books.items()},
            {book.kind: book.reordered for book in ordered},
            effects,
        )

    def _effect(self) -> Effect:
        books = self.books
        return Effect(
            {kind: book.again for kind, book in books.items()},
            {kind: book.longest for kind, book in books.items()},
            {kind: book.longest_of_a_key for kind, book in books.items()},
        )

    async def flows(self) -> None:
        """Wait until each producer has two more rounds confirmed, and each subscription has their messages.

        The first of the two may have been on its way for long; the second one was sent after this call.
        """
        before = list(self._rounds)
        with trio.fail_after(PATIENCE):
            await until(lambda: all(now >= then + 2 for now, then in zip(self._rounds, before, strict=True)))
            confirmed = dict(self._confirmed)
            await until(lambda: self._all_arrived(confirmed))

    def _all_arrived(self, confirmed: dict[str, int]) -> bool:
        return not any(book.lacks(confirmed) for book in self.books.values())

    async def _produce(self, client: Client, number: int) -> None:
        batching = BatchingPolicy(by_key=True, max_delay=0.01)
        next_of = {f"p{number}-k{key}": 0 for key in range(KEYS)}
        async with client.create_producer(self.topic, batching=batching, send_timeout=0) as producer:
            while not self._stopping:
                messages = []
                for index in range(ROUND):
                    key = f"p{number}-k{index % KEYS}"
                    messages.append(OutgoingMessage(f"{key}:{next_of[key]}".encode(), key=key))
                    next_of[key] += 1
                await producer.send_many(messages)
                self._confirmed.update({key: following - 1 for key, following in next_of.items()})
                self._rounds[number] += 1
                await trio.sleep(PAUSE)

    async def _consume(self, client: Client, book: Book) -> None:
        kind = SubscriptionType(book.kind)
        async with client.subscribe(self.topic, book.kind, kind, initial_position="earliest") as consumer:
            async for message in consumer:
                book.note(message.data)
                consumer.acknowledge(message)


async def until(holds: Callable[[], bool]) -> None:
    """Look twenty times a second: what is waited for happens in many places."""
    while not holds():  # noqa: ASYNC110
        await trio.sleep(0.05)
