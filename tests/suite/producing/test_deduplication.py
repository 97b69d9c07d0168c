"""A namespace with deduplication stores a message once, however often it is sent (rules DEDUP)."""

import pytest

from pulsar_trio import Client
from tests.suite.brokers import DEDUPLICATION, BrokerUnderTest
from tests.suite.helpers import (
    Interruption,
    cut,
    kill_and_start,
    numbers,
    payloads,
    receive,
    receive_and_acknowledge,
    rest,
    unload,
)
from tests.suite.line import Line


@pytest.fixture
def topic(local_name: str) -> str:
    return f"persistent://{DEDUPLICATION}/{local_name}"


@pytest.mark.parametrize("batching", [True, False], ids=["batched", "unbatched"])
async def test_a_message_with_a_known_sequence_id_is_dropped(
    client: Client, topic: str, batching: bool
) -> None:
    options = {} if batching else {"batching": None}
    async with client.subscribe(topic, "sub") as consumer:
        async with client.create_producer(topic, name="p", **options) as producer:  # type: ignore[call-overload]
            await producer.send_many(payloads(10))
        # The same application again: it does not know how far it came, and begins after its own number 4.
        async with client.create_producer(  # type: ignore[call-overload]
            topic,
            name="p",
            initial_sequence_id=4,
            **options,
        ) as producer:
            assert producer.last_sequence_id == 9
            for payload in payloads(10, start=5):  # one by one: 5 to 9 are known, 10 to 14 are new
                await producer.send(payload)
        assert numbers(await receive_and_acknowledge(consumer, 15)) == list(range(15))
        assert await rest(consumer) == []


async def test_a_dropped_message_is_confirmed_without_a_place(client: Client, topic: str) -> None:
    async with client.create_producer(topic, name="p", batching=None) as producer:
        stored = await producer.send(b"0")
        assert stored.ledger_id >= 0
    async with client.create_producer(topic, name="p", batching=None, initial_sequence_id=-1) as producer:
        dropped = await producer.send(b"0")
        assert (dropped.ledger_id, dropped.entry_id) == (-1, -1)


@pytest.mark.parametrize("interrupt", [cut, unload, kill_and_start])
async def test_every_message_once_over_an_interruption(
    line: Line, client_on_line: Client, topic: str, interrupt: Interruption
) -> None:
    """The broker does not store a message again that the client sends again because its receipt was lost."""
    client = client_on_line
    async with client.create_producer(topic, name="p", send_timeout=0) as producer:
        receipts = [await producer.enqueue(payload) for payload in payloads(500)]
        await receipts[100].wait()
        receipts += [await producer.enqueue(payload) for payload in payloads(500, start=500)]
        await interrupt(line, topic)
        receipts += [await producer.enqueue(payload) for payload in payloads(500, start=1000)]
        for receipt in receipts:
            await receipt.wait()
    async with client.subscribe(topic, "sub", initial_position="earliest") as consumer:
        assert numbers(await receive(consumer, 1500)) == list(range(1500))
        assert await rest(consumer) == []


async def test_a_producer_of_the_name_continues_after_a_restart(
    broker: BrokerUnderTest, client: Client, topic: str
) -> None:
    async with client.create_producer(topic, name="p") as producer:
        await producer.send_many(payloads(5))
    await broker.kill()
    await broker.start()
    async with client.create_producer(topic, name="p") as producer:
        assert producer.last_sequence_id == 4
        await producer.send(b"5")
        async with client.subscribe(topic, "sub", initial_position="earliest") as consumer:
            assert numbers(await receive(consumer, 6)) == list(range(6))
            assert await rest(consumer) == []
