"""Everything at once: tasks that are cancelled, connections that are cut, and nothing confirmed is lost.

The simulator does this for the core, deeper and in virtual time; here it is the adapter's tasks, sockets and
cancel scopes that are shaken.
"""

from random import Random

import pytest
import trio

from pulsar_trio import BatchingPolicy, Client, Consumer, MessageId, Producer, open_client
from tests.trio.proxy import Proxy, open_proxy
from tests.trio.waiting import until

PRODUCERS = 3
MESSAGES = 150
"""The number of messages that each producer sends."""


class Storm:
    """The messages that were confirmed and those that were received, by producer."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.confirmed: list[dict[int, MessageId]] = [{} for _ in range(PRODUCERS)]
        self.received: list[list[int]] = [[] for _ in range(PRODUCERS)]
        self.done = 0

    async def produce(self, client: Client, number: int) -> None:
        """Send numbered messages, each until it is confirmed; calls are cancelled at random moments."""
        batching = self.random.choice([None, BatchingPolicy(max_messages=10, max_delay=0.001)])
        async with client.create_producer("t", batching=batching, max_pending_messages=20) as producer:
            value = 0
            while value < MESSAGES:
                value += await self.some(producer, number, value)
            await producer.flush()
        self.done += 1

    async def some(self, producer: Producer, number: int, value: int) -> int:
        """Give the producer a few messages; gives how many it certainly took."""
        count = self.random.randint(1, 30)
        taken = 0
        with trio.move_on_after(self.random.choice([0.0001, 0.002, 10.0])):
            receipts = []
            for offset in range(count):
                receipts.append(await producer.enqueue(b"%d %d" % (number, value + offset)))
                taken += 1
            for offset, receipt in enumerate(receipts):
                self.confirmed[number][value + offset] = await receipt.wait()
        return taken

    async def consume(self, consumer: Consumer) -> None:
        """Receive and acknowledge for ever; receiving is cancelled at random moments."""
        while True:
            with trio.move_on_after(self.random.choice([0.0001, 0.001, 10.0])):
                if self.random.random() < 0.5:
                    messages = [await consumer.receive()]
                else:
                    messages = list(await consumer.receive_many(self.random.randint(1, 50)))
                for message in messages:
                    number, value = map(int, message.data.split())
                    self.received[number].append(value)
                consumer.acknowledge(messages)

    async def cut(self, proxy: Proxy) -> None:
        while self.done < PRODUCERS:
            await trio.sleep(self.random.uniform(0.005, 0.03))
            if self.random.random() < 0.5:
                proxy.cut()
            else:
                proxy.hold()
                try:
                    await trio.sleep(0.005)
                finally:
                    proxy.release()


@pytest.mark.parametrize("seed", range(6))
async def test_nothing_confirmed_is_lost_and_order_is_kept(seed: int) -> None:
    storm = Storm(seed)
    async with (
        open_proxy(deduplication=True) as proxy,
        open_client(proxy.url, seed=seed, initial_backoff=0.001, max_backoff=0.01) as client,
        client.subscribe("t", "s", "exclusive", initial_position="earliest") as consumer,
    ):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(storm.consume, consumer)
            nursery.start_soon(storm.cut, proxy)
            for number in range(PRODUCERS):
                nursery.start_soon(storm.produce, client, number)
            await until(lambda: storm.done == PRODUCERS)
            await until(lambda: all(set(range(MESSAGES)) <= set(received) for received in storm.received))
            nursery.cancel_scope.cancel()
        assert client.statistics().links <= 1
    for number in range(PRODUCERS):
        confirmed, received = storm.confirmed[number], storm.received[number]
        assert set(confirmed) <= set(received)
        # a message that was stored already when it was sent again has the id -1:-1 (rule PROD-56)
        ids = [confirmed[value] for value in sorted(confirmed) if confirmed[value].ledger_id >= 0]
        assert ids == sorted(ids)
        first_seen = list(dict.fromkeys(received))
        assert first_seen == sorted(first_seen), "a message overtook an earlier one"
