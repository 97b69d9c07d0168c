"""Handlers of messages, against whichever broker: what fails comes again, keys stay in order."""

import trio

from pulsar_trio import Client, Consumer, Message, OutgoingMessage

from .helpers import numbers, payloads, rest


async def test_what_fails_comes_again_and_nothing_is_left(client: Client, topic: str) -> None:
    async with client.subscribe(topic, "sub", negative_acknowledgement_delay=0.1) as consumer:
        async with client.create_producer(topic, batching=None) as producer:
            await producer.send_many(payloads(20))
        failed: set[int] = set()
        handled: list[int] = []
        done = trio.Event()

        async def handle(message: Message) -> None:
            number = int(message.data)
            if number % 3 == 0 and number not in failed:
                failed.add(number)
                raise ValueError(number)
            handled.append(number)
            if len(handled) == 20:
                done.set()

        async def run() -> None:
            await consumer.run(handle, concurrency=4)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(run)
            await done.wait()
            nursery.cancel_scope.cancel()
        assert sorted(handled) == list(range(20))
        await consumer.flush()
    async with client.subscribe(topic, "sub") as consumer:
        assert len(await rest(consumer)) <= 4  # the ones whose handlers had not ended


async def test_keys_stay_in_order_over_two_consumers(client: Client, topic: str) -> None:
    handled: dict[str, list[int]] = {}
    done = trio.Event()

    async def handle(message: Message) -> None:
        await trio.sleep(0.001 * (int(message.data) % 3))
        handled.setdefault(str(message.key), []).append(int(message.data))
        if sum(map(len, handled.values())) == 60:
            done.set()

    async with (
        client.subscribe(topic, "sub", "key_shared") as one,
        client.subscribe(topic, "sub", "key_shared") as other,
        trio.open_nursery() as nursery,
    ):

        async def run(consumer: Consumer) -> None:
            await consumer.run(handle, concurrency=5)

        nursery.start_soon(run, one)
        nursery.start_soon(run, other)
        async with client.create_producer(topic, batching=None) as producer:
            await producer.send_many(OutgoingMessage(b"%d" % n, key=f"k{n % 6}") for n in range(60))
        await done.wait()
        nursery.cancel_scope.cancel()
    assert handled == {f"k{key}": list(range(key, 60, 6)) for key in range(6)}


async def test_processing_acknowledges(client: Client, topic: str) -> None:
    async with client.subscribe(topic, "sub", "exclusive") as consumer:
        async with client.create_producer(topic) as producer:
            await producer.send_many(payloads(10))
        for _ in range(6):
            message = await consumer.receive()
            async with message.processing():
                pass
    async with client.subscribe(topic, "sub", "exclusive", batch_index_acknowledgement=True) as consumer:
        assert numbers(await rest(consumer))[-4:] == [6, 7, 8, 9]


async def test_who_gives_up_waiting_loses_nothing(client: Client, topic: str) -> None:
    """At whichever moment it happens: what he did not get, the next one gets, in order."""
    found: list[int] = []
    async with (
        client.create_producer(topic, batching=None) as producer,
        client.subscribe(topic, "sub", "exclusive", receiver_queue_size=3) as consumer,
    ):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(producer.send_many, payloads(60))
            while len(found) < 60:
                with trio.move_on_after(0.002):
                    while True:
                        message = await consumer.receive()
                        found.append(int(message.data))
                        consumer.acknowledge(message)
                with trio.move_on_after(0.002):
                    found += numbers(messages := await consumer.receive_many(2))
                    consumer.acknowledge(messages)
                with trio.move_on_after(0.001):
                    await consumer.flush()
    assert found == list(range(60))
