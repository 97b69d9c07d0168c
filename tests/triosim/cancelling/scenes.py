"""Short conversations in each of which one block of calls is cancelled at a chosen step.

A scene prepares something, makes its calls inside `stage.cancelled()`, and then shows that nothing was lost.
It reads every message that was sent, and uses the handle again or sees that the handle is closed. The step
counts steps of all tasks: of the application, of both drivers, and of their links.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from contextlib import aclosing, asynccontextmanager, contextmanager, suppress

import trio

from pulsar_sansio import ClosedError, MessageId, TopicMessageId
from pulsar_trio import Client, Consumer, Message, Producer, Reader
from tests.triosim.scenes import Stage

PREFIX = "persistent://public/default/"

SOON = 1.0
"""Seconds in which everything that a scene expects has happened."""

COUNT = 6
"""Messages of a scene. The first numbers go to partition 0 and 1 in turn, where there are partitions."""


class CancelledStage(Stage):
    """A stage that cancels one block after `step` steps; with None it cancels nothing."""

    def __init__(self, scene: "Scene", step: int | None, keep: bool = False) -> None:
        super().__init__(scene, keep)
        self._step = step
        self.length = 0
        """Steps of the block, where nothing was cancelled."""
        self.hit = False
        """True when the block was left by its cancellation."""

    @contextmanager
    def cancelled(self) -> Iterator[None]:
        """The block to cancel; a scene has one."""
        began = self.canceller.steps
        with trio.CancelScope() as scope:
            if self._step == 0:
                scope.cancel()
            elif self._step is not None:
                self.canceller.after_steps(self._step, scope.cancel)
            yield
            self.length = self.canceller.steps - began
        self.hit = scope.cancelled_caught
        self.note("scene", f"cancelled: {self.hit}")

    async def until_subscriptions(self, topic: str, expected: dict[str, int]) -> None:
        """Wait until the broker has these subscriptions of a topic, with so many consumers each."""

        def as_expected() -> bool:
            found = self.broker.stats(PREFIX + topic)["subscriptions"]
            return expected == {name: len(each["consumers"]) for name, each in found.items()}

        await self.until(as_expected)

    def backlog(self, topic: str) -> int:
        return self._backlog(topic, "s")

    async def until(self, condition: Callable[[], bool]) -> None:
        with trio.fail_after(SOON):
            while True:
                if condition():
                    return
                await trio.sleep(0.01)


Scene = Callable[[CancelledStage], Awaitable[None]]


async def send(producer: Producer, numbers: Iterable[int] = range(COUNT)) -> list[MessageId]:
    """Send numbers, each with itself as its key."""
    return [await producer.send(b"%d" % number, key=str(number)) for number in numbers]


async def take(source: Consumer | Reader, count: int) -> list[int]:
    """The next messages as numbers; they come soon."""
    with trio.fail_after(SOON):
        return [int((await source.receive()).data) for _ in range(count)]


async def all_that_come(source: Consumer | Reader) -> list[int]:
    """All messages that come soon, as numbers."""
    found: list[int] = []
    with trio.move_on_after(SOON):
        while True:
            found.append(int((await source.receive()).data))
    return found


async def nothing_more(source: Consumer | Reader) -> None:
    assert await all_that_come(source) == []


@asynccontextmanager
async def two_partitions(stage: CancelledStage) -> AsyncIterator[tuple[Client, Producer]]:
    """A partitioned topic with six messages, at least one of them in each partition."""
    stage.broker.create_partitioned_topic("p", 2)
    async with stage.client() as client, client.create_producer("p") as producer:
        found = await send(producer)
        assert {message_id.partition for message_id in found} == {0, 1}
        yield client, producer


# --- seek -------------------------------------------------------------------------------------------------


async def seek_of_a_consumer(stage: CancelledStage) -> None:
    """The subscription stays where it was, or goes to where the seek leads, and goes on in order."""
    async with (
        stage.client() as client,
        client.subscribe("t", "s", "exclusive") as consumer,
        client.create_producer("t") as producer,
    ):
        ids = await send(producer)
        assert await take(consumer, COUNT) == [*range(COUNT)]
        consumer.acknowledge(ids)
        await consumer.flush()
        with stage.cancelled():
            await consumer.seek(ids[2])
        await send(producer, [COUNT])
        found = await take(consumer, 1)
        if found != [COUNT]:
            found += await take(consumer, COUNT - 3)
            assert found == [*range(3, COUNT + 1)]
        await nothing_more(consumer)
        await consumer.seek("earliest")
        assert await take(consumer, COUNT + 1) == [*range(COUNT + 1)]
        assert stage.backlog("t") == COUNT + 1


async def seek_of_partitions(stage: CancelledStage) -> None:
    """Each partition stays where it was, or goes to its beginning."""
    async with (
        two_partitions(stage) as (client, producer),
        client.subscribe("p", "s", "exclusive", initial_position="earliest") as consumer,
    ):
        assert sorted(await take(consumer, COUNT)) == [*range(COUNT)]
        with stage.cancelled():
            await consumer.seek("earliest")
        await send(producer, [COUNT])
        found = await all_that_come(consumer)
        assert len(set(found)) == len(found)
        assert COUNT in found
        await consumer.seek("earliest")
        assert sorted(await take(consumer, COUNT + 1)) == [*range(COUNT + 1)]
        await nothing_more(consumer)


async def seek_of_a_reader(stage: CancelledStage) -> None:
    """The reader goes on behind what it has read, and perhaps later from where the seek leads."""
    async with stage.client() as client, client.create_producer("t") as producer:
        ids = await send(producer)
        async with client.create_reader("t", "earliest") as reader:
            assert await take(reader, 4) == [*range(4)]
            with stage.cancelled():
                await reader.seek(ids[1], inclusive=True)
            found = await all_that_come(reader)
            before = [4, 5][: found.index(1) if 1 in found else 2]
            assert found in (before, [*before, *range(1, COUNT)])
            assert reader.positions() == {PREFIX + "t": ids[-1]}


# --- unsubscribe ------------------------------------------------------------------------------------------


async def unsubscribe_of_a_consumer(stage: CancelledStage) -> None:
    """The subscription is deleted and the consumer closed all the same. Other subscriptions stay."""
    async with (
        stage.client() as client,
        client.subscribe("t", "other", "exclusive") as other,
        client.create_producer("t") as producer,
        client.subscribe("t", "s", "exclusive") as consumer,
    ):
        await send(producer)
        with stage.cancelled():
            await consumer.unsubscribe()
        await stage.until_subscriptions("t", {"other": 1})
        await closed(consumer)
        assert await take(other, COUNT) == [*range(COUNT)]
        async with client.subscribe("t", "s", "exclusive", initial_position="earliest") as again:
            assert await take(again, COUNT) == [*range(COUNT)]


async def unsubscribe_of_partitions(stage: CancelledStage) -> None:
    """The subscription is deleted on every partition."""
    async with (
        two_partitions(stage) as (client, _),
        client.subscribe("p", "s", "exclusive") as consumer,
    ):
        with stage.cancelled():
            await consumer.unsubscribe()
        for index in range(2):
            await stage.until_subscriptions(f"p-partition-{index}", {})
        await closed(consumer)
        async with client.subscribe("p", "s", "exclusive", initial_position="earliest") as again:
            assert sorted(await take(again, COUNT)) == [*range(COUNT)]


async def closed(consumer: Consumer) -> None:
    """The consumer has ended, or ends soon: its calls say so, once what had arrived is received."""
    with trio.fail_after(SOON), suppress(ClosedError):
        for _ in range(COUNT + 1):
            await consumer.receive()
        raise AssertionError("there are more messages than were sent")


# --- readers ----------------------------------------------------------------------------------------------


async def reading(stage: CancelledStage) -> None:
    """A reader gives each message once and in order, wherever its calls are cancelled."""
    async with stage.client() as client, client.create_producer("t") as producer:
        ids = await send(producer, range(2))
        async with client.create_reader("t", "earliest", receiver_queue_size=2) as reader:
            found: list[int] = []
            async with trio.open_nursery() as nursery:
                nursery.start_soon(send, producer, range(2, COUNT))
                with stage.cancelled():
                    assert await reader.has_message_available()
                    found.append(int((await reader.receive()).data))
                    found += [int(message.data) for message in await reader.receive_many(2)]
                    assert (await reader.last_message_id()) >= ids[-1]
                    async for message in reader.until_latest():
                        found.append(int(message.data))
                    found.append(int((await reader.receive()).data))
            found += await take(reader, COUNT - len(found))
            assert found == [*range(COUNT)]
            await nothing_more(reader)


async def reading_of_partitions(stage: CancelledStage) -> None:
    """A reader of partitions gives each message once."""
    async with (
        two_partitions(stage) as (client, producer),
        client.create_reader("p", "earliest", receiver_queue_size=1) as reader,
    ):
        found: list[int] = []
        with stage.cancelled():
            async for message in reader.until_latest():
                found.append(int(message.data))
            await send(producer, [COUNT])
            found.append(int((await reader.receive()).data))
        await send(producer, [COUNT + 1])
        found += await all_that_come(reader)
        assert sorted({*found, COUNT}) == [*range(COUNT + 2)]
        assert len(set(found)) == len(found)


async def opening_and_closing_a_reader(stage: CancelledStage) -> None:
    """Nothing of a reader whose opening or closing was cancelled is left, and another reads everything."""
    async with stage.client() as client, client.create_producer("t") as producer:
        await send(producer)
        with stage.cancelled():
            async with client.create_reader("t", "earliest") as reader:
                assert await take(reader, 1) == [0]
        await stage.until_subscriptions("t", {})
        async with client.create_reader("t", "earliest") as another:
            assert await take(another, COUNT) == [*range(COUNT)]


# --- table views ------------------------------------------------------------------------------------------


async def refreshing_a_table_view(stage: CancelledStage) -> None:
    """The view goes on to follow the topic, and can be refreshed again."""
    async with (
        stage.client() as client,
        client.create_producer("t") as producer,
        client.create_table_view("t") as view,
    ):
        await send(producer)
        with stage.cancelled():
            await view.refresh()
        await send(producer, [COUNT])
        await view.refresh()
        assert dict(view) == {str(number): b"%d" % number for number in range(COUNT + 1)}


async def changes_of_a_table_view(stage: CancelledStage) -> None:
    """A cancelled iteration has given changes in their order; the view and another iteration miss nothing."""
    async with (
        stage.client() as client,
        client.create_producer("t") as producer,
        client.create_table_view("t") as view,
        trio.open_nursery() as nursery,
    ):
        found_here: list[str] = []
        found_by_another: list[str] = []

        async def listen() -> None:
            async with aclosing(view.changes()) as changes:
                async for key, _ in changes:
                    found_by_another.append(key)
                    if len(found_by_another) == COUNT:
                        return

        nursery.start_soon(listen)
        await trio.testing.wait_all_tasks_blocked()
        nursery.start_soon(send, producer)
        with stage.cancelled():
            async with aclosing(view.changes()) as changes:
                async for key, _ in changes:
                    found_here.append(key)
                    if len(found_here) == COUNT:
                        break
        await stage.until(lambda: len(found_by_another) == COUNT)
        assert found_by_another == [str(number) for number in range(COUNT)]
        assert found_here == found_by_another[: len(found_here)]
        assert sorted(view) == found_by_another


async def opening_and_closing_a_table_view(stage: CancelledStage) -> None:
    """Nothing of a view whose opening or closing was cancelled is left, and another has everything."""
    async with stage.client() as client, client.create_producer("t") as producer:
        await send(producer)
        with stage.cancelled():
            async with client.create_table_view("t") as view:
                assert len(view) == COUNT
        await stage.until_subscriptions("t", {})
        async with client.create_table_view("t") as another:
            assert len(another) == COUNT


# --- partitions -------------------------------------------------------------------------------------------


async def sending_to_partitions(stage: CancelledStage) -> None:
    """A message that a cancelled call had taken is sent once; one that it had not taken is not sent."""
    async with two_partitions(stage) as (client, producer):
        taken: list[int] = []
        asked: list[int] = []
        with stage.cancelled():
            for number in range(10, 14):
                await producer.enqueue(b"%d" % number, key=str(number))
                taken.append(number)
            await producer.flush()
            for number in range(20, 23):
                asked.append(number)
                await producer.send(b"%d" % number, key=str(number))
        await producer.flush()
        await send(producer, [30])
        found = await everything(client)
        sure = [*range(COUNT), *taken, *asked[:-1], 30]
        assert sorted(found) in (sure, sorted({*sure, *asked}))


async def closing_a_producer_of_partitions(stage: CancelledStage) -> None:
    """The broker has no producer left, has no message twice, and takes another producer of the name."""
    stage.broker.create_partitioned_topic("p", 2)
    async with stage.client() as client:
        found: set[int] = set()
        with stage.cancelled():
            async with client.create_producer("p", name="n") as producer:
                for number in range(COUNT):
                    await producer.send(b"%d" % number, key=str(number))
                    found.add(number)
        with trio.fail_after(SOON):
            async with client.create_producer("p", name="n") as another:
                await send(another, [COUNT])
        stored = await everything(client)
        assert len(set(stored)) == len(stored)
        assert {*found, COUNT} <= {*stored} <= {*range(COUNT + 1)}
        for index in range(2):
            assert stage.broker.stats(f"{PREFIX}p-partition-{index}")["publishers"] == []


async def receiving_from_partitions(stage: CancelledStage) -> None:
    """Each message is received once, and acknowledged in the end."""
    async with (
        two_partitions(stage) as (client, producer),
        client.subscribe(
            "p", "s", "exclusive", initial_position="earliest", receiver_queue_size=2
        ) as consumer,
    ):
        received: list[Message] = []
        async with trio.open_nursery() as nursery:
            nursery.start_soon(send, producer, range(COUNT, COUNT + 2))
            with stage.cancelled():
                received.append(await consumer.receive())
                received += await consumer.receive_many(3)
                consumer.acknowledge(received)
                await consumer.flush()
                await consumer.has_message_available()
                while len(received) < COUNT + 2:
                    received.append(await consumer.receive())
        with trio.fail_after(SOON):
            while len(received) < COUNT + 2:
                received.append(await consumer.receive())
        assert sorted(int(message.data) for message in received) == [*range(COUNT + 2)]
        await nothing_more(consumer)
        consumer.acknowledge(received)
        await consumer.flush()
        assert [stage.backlog(f"p-partition-{index}") for index in range(2)] == [0, 0]


async def opening_and_closing_a_consumer_of_partitions(stage: CancelledStage) -> None:
    """No partition keeps a consumer, so another exclusive one opens, and gets what was not acknowledged."""
    async with two_partitions(stage) as (client, _):
        with stage.cancelled():
            async with client.subscribe("p", "s", "exclusive", initial_position="earliest") as consumer:
                assert len(await take(consumer, 2)) == 2
        with trio.fail_after(SOON):
            async with client.subscribe("p", "s", "exclusive", initial_position="earliest") as another:
                assert sorted(await take(another, COUNT)) == [*range(COUNT)]
        for index in range(2):
            await stage.until_subscriptions(f"p-partition-{index}", {"s": 0})


async def asking_for_partitions(stage: CancelledStage) -> None:
    """Questions can be asked again after a cancelled one."""
    async with two_partitions(stage) as (client, producer):
        names = [f"{PREFIX}p-partition-{index}" for index in range(2)]
        async with client.create_reader("p", "earliest") as reader:
            with stage.cancelled():
                await client.partitions("p")
                await client.topics()
                await reader.last_message_ids()
            assert await client.partitions("p") == names
            assert await client.topics() == [PREFIX + "p"]
            assert producer.partitions == 2
            last: list[TopicMessageId] = await reader.last_message_ids()
            assert sorted(each.topic for each in last) == names


async def everything(client: Client) -> list[int]:
    """All messages of the partitioned topic, as a reader of its own finds them."""
    async with client.create_reader("p", "earliest") as reader:
        return [int(message.data) async for message in reader.until_latest()]


SCENES: dict[str, Scene] = {
    scene.__name__: scene
    for scene in (
        seek_of_a_consumer,
        seek_of_partitions,
        seek_of_a_reader,
        unsubscribe_of_a_consumer,
        unsubscribe_of_partitions,
        reading,
        reading_of_partitions,
        opening_and_closing_a_reader,
        refreshing_a_table_view,
        changes_of_a_table_view,
        opening_and_closing_a_table_view,
        sending_to_partitions,
        closing_a_producer_of_partitions,
        receiving_from_partitions,
        opening_and_closing_a_consumer_of_partitions,
        asking_for_partitions,
    )
}


def play_at(name: str, step: int | None, keep: bool = False) -> tuple[str, CancelledStage]:
    """Play one scene, cancelled at this step; the failure, and the stage."""
    stage = CancelledStage(SCENES[name], step, keep)
    return stage.run().failure, stage


def sweep(name: str, every: int = 1, first: int = 0) -> tuple[int, int, list[str]]:
    """Play a scene undisturbed, and cancelled at steps first, first + every … of its block.

    Return the steps of the undisturbed block, how many runs were cancelled inside it, and the failures.
    """
    failure, undisturbed = play_at(name, None)
    assert not failure, f"undisturbed: {failure}"
    hits, failures = 0, []
    for step in range(first, undisturbed.length + 1, every):
        failure, stage = play_at(name, step)
        hits += stage.hit
        if failure:
            failures.append(f"--calls --scene {name} --step {step}: {failure}")
    return undisturbed.length, hits, failures
