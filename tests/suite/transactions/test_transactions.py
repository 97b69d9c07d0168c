"""Transactions of this client, on both brokers."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
import trio

from pulsar_sansio import TransactionConflict, TransactionNotOpen
from pulsar_trio import BatchingPolicy, Client, Message, MessageId, open_client
from tests.suite.brokers import BrokerUnderTest


@pytest.fixture
async def client(broker: BrokerUnderTest) -> AsyncIterator[Client]:
    async with open_client(broker.url, transactions=True) as client:
        yield client


NOTHING = 0.7
"""Seconds in which nothing comes."""


async def nothing_comes(consumer: Any) -> bool:
    with trio.move_on_after(NOTHING):
        await consumer.receive()
        return False
    return True


async def received(consumer: Any, count: int) -> list[bytes]:
    return [(await consumer.receive()).data for _ in range(count)]


async def test_consume_transform_produce(client: Client, topic: str) -> None:
    """TXN-01: what goes in and what comes out take effect together."""
    async with (
        client.create_producer(topic) as source,
        client.create_producer(f"{topic}-out") as producer,
        client.subscribe(topic, "s", "shared") as consumer,
        client.subscribe(f"{topic}-out", "s") as result,
    ):
        await source.send_many(b"%d" % number for number in range(10))
        async with client.transaction() as transaction:
            for _ in range(10):
                message = await consumer.receive()
                await producer.send(message.data + b"!", transaction=transaction)
                consumer.acknowledge(message, transaction=transaction)
            assert await nothing_comes(result)
        assert await received(result, 10) == [b"%d!" % number for number in range(10)]
        consumer.redeliver_unacknowledged()
        assert await nothing_comes(consumer)


async def test_an_exception_aborts(client: Client, topic: str) -> None:
    async with (
        client.create_producer(topic, batching=None) as producer,
        client.create_producer(f"{topic}-out") as out,
        client.subscribe(topic, "s", "shared") as consumer,
        client.subscribe(f"{topic}-out", "s") as result,
    ):
        await producer.send_many([b"a", b"b"])
        messages = [await consumer.receive() for _ in range(2)]
        with pytest.raises(ZeroDivisionError):
            async with client.transaction() as transaction:
                await out.send(b"never", transaction=transaction)
                consumer.acknowledge(messages, transaction=transaction)
                raise ZeroDivisionError
        again = [await consumer.receive() for _ in range(2)]
        assert sorted(message.data for message in again) == [b"a", b"b"]
        assert [message.redelivery_count for message in again] == [1, 1]
        await out.send(b"plain")
        assert (await result.receive()).data == b"plain"


async def test_a_cancelled_block_aborts_in_the_background(client: Client, topic: str) -> None:
    async with client.create_producer(topic) as producer, client.subscribe(topic, "s") as consumer:
        with trio.CancelScope() as scope:
            async with client.transaction() as transaction:
                await producer.send(b"never", transaction=transaction)
                scope.cancel()
                await trio.lowlevel.checkpoint()
        await producer.send(b"after")
        assert (await consumer.receive()).data == b"after"


async def test_order_with_messages_outside(client: Client, topic: str) -> None:
    async with client.create_producer(topic) as producer, client.subscribe(topic, "s") as consumer:
        await producer.send(b"1")
        async with client.transaction() as transaction:
            receipts = [
                await producer.enqueue(b"2", transaction=transaction),
                await producer.enqueue(b"3"),
                await producer.enqueue(b"4", transaction=transaction),
            ]
            ids = [await receipt.wait() for receipt in receipts]
            assert ids == sorted(ids)
            assert await received(consumer, 1) == [b"1"]
            assert await nothing_comes(consumer)
        assert await received(consumer, 3) == [b"2", b"3", b"4"]


async def test_batches_of_transactions(client: Client, topic: str) -> None:
    batching = BatchingPolicy(max_messages=50, max_delay=0.05)
    async with (
        client.create_producer(topic, batching=batching) as producer,
        client.subscribe(topic, "s", "shared") as consumer,
    ):
        async with client.transaction() as committed:
            aborted = client.transaction()
            other = await aborted.__aenter__()
            for number in range(100):
                await producer.enqueue(b"c%d" % number, transaction=committed)
            for number in range(100):
                await producer.enqueue(b"a%d" % number, transaction=other)
            await producer.flush()
            await other.abort()
            await aborted.__aexit__(None, None, None)
        assert await received(consumer, 100) == [b"c%d" % number for number in range(100)]
        assert await nothing_comes(consumer)


async def test_nothing_that_waits_for_its_receipt_waits_for_a_batch_to_fill(
    client: Client, topic: str
) -> None:
    """PROD-28, PROD-49: also where the message waits for its transaction to have the topic."""
    batching = BatchingPolicy(max_messages=1000, max_delay=60)
    async with client.create_producer(topic, batching=batching) as producer:
        with trio.fail_after(30):
            async with client.transaction() as first:
                await producer.send(b"1", transaction=first)
            async with client.transaction() as second:
                await producer.enqueue(b"2", transaction=second)
                await second.flush()
            async with client.transaction() as third:
                await producer.enqueue(b"3", transaction=third)
                await producer.flush()
            async with client.transaction() as fourth:
                await producer.enqueue(b"4", transaction=fourth)


async def test_single_messages_of_a_batch(client: Client, topic: str) -> None:
    options: dict[str, Any] = {"batch_index_acknowledgement": True}
    async with client.create_producer(topic) as producer:
        async with client.subscribe(topic, "s", "shared", **options) as consumer:
            await producer.send_many([b"0", b"1", b"2", b"3"])
            messages = [await consumer.receive() for _ in range(4)]
            async with client.transaction() as transaction:
                consumer.acknowledge([messages[0], messages[2]], transaction=transaction)
            with pytest.raises(ZeroDivisionError):
                async with client.transaction() as transaction:
                    consumer.acknowledge(messages[3], transaction=transaction)
                    raise ZeroDivisionError
        async with client.subscribe(topic, "s", "shared", **options) as consumer:
            assert await received(consumer, 2) == [b"1", b"3"]
            assert await nothing_comes(consumer)


async def test_a_conflict_fails_the_commit(client: Client, topic: str) -> None:
    async with (
        client.create_producer(topic) as producer,
        client.subscribe(topic, "s", "shared") as consumer,
        client.subscribe(f"{topic}-out", "s") as result,
        client.create_producer(f"{topic}-out") as out,
    ):
        await producer.send(b"x")
        message = await consumer.receive()
        async with client.transaction() as first:
            consumer.acknowledge(message, transaction=first)
        with pytest.raises(TransactionConflict):
            async with client.transaction() as second:
                await out.send(b"never", transaction=second)
                consumer.acknowledge(message.message_id, transaction=second)
        await out.send(b"after")
        assert (await result.receive()).data == b"after"


async def test_two_transactions_cannot_use_one_message_of_a_batch(client: Client, topic: str) -> None:
    """TXN-01"""
    options: dict[str, Any] = {"batch_index_acknowledgement": True}
    async with (
        client.create_producer(topic) as producer,
        client.subscribe(topic, "s", "shared", **options) as consumer,
    ):
        await producer.send_many([b"0", b"1", b"2"])
        messages = [await consumer.receive() for _ in range(3)]
        async with client.transaction() as first:
            consumer.acknowledge(messages[0], transaction=first)
        with pytest.raises(TransactionConflict):
            async with client.transaction() as second:
                consumer.acknowledge([messages[0].message_id, messages[1]], transaction=second)
        async with client.transaction() as third:
            consumer.acknowledge(messages[1:], transaction=third)


async def test_a_message_that_is_reconsumed_later_is_not_acknowledged_in_a_transaction(
    client: Client, topic: str
) -> None:
    """TXN-01, RETRY-01: it is acknowledged outside of transactions when its copy is stored."""
    async with (
        client.create_producer(topic, batching=None) as producer,
        client.subscribe(topic, "sub", kind="shared", retry=True) as consumer,
    ):
        await producer.send(b"x")
        message = await consumer.receive()
        await consumer.reconsume_later(message, 0.2)
        with pytest.raises(TransactionConflict):
            async with client.transaction() as transaction:
                consumer.acknowledge(message, transaction=transaction)
        copy = await consumer.receive()
        assert (copy.data, copy.topic) == (b"x", f"{topic}-sub-RETRY")
        async with client.transaction() as transaction:
            consumer.acknowledge(copy, transaction=transaction)
        assert await nothing_comes(consumer)


async def test_an_acknowledged_message_is_reconsumed_later_and_the_transaction_aborted(
    client: Client, topic: str
) -> None:
    """TXN-01, RETRY-01: the copy comes, and not the original, which was acknowledged for the copy."""
    async with (
        client.create_producer(topic, batching=None) as producer,
        client.subscribe(topic, "sub", kind="shared", retry=True) as consumer,
    ):
        await producer.send(b"x")
        message = await consumer.receive()
        with pytest.raises(ZeroDivisionError):
            async with client.transaction() as transaction:
                consumer.acknowledge(message, transaction=transaction)
                await consumer.reconsume_later(message, 0.2)
                raise ZeroDivisionError
        copy = await consumer.receive()
        assert (copy.data, copy.topic) == (b"x", f"{topic}-sub-RETRY")
        assert await nothing_comes(consumer)


async def test_a_timeout(client: Client, topic: str) -> None:
    async with client.create_producer(topic) as producer, client.subscribe(topic, "s") as consumer:
        # The client's clock has ended the transaction before the coordinator did.
        with pytest.raises(TransactionNotOpen):
            async with client.transaction(timeout=1.0) as transaction:
                await producer.send(b"never", transaction=transaction)
                await producer.send(b"after")
                assert (await consumer.receive()).data == b"after"
                await producer.send(b"late", transaction=transaction)
        with pytest.raises(TransactionNotOpen):
            async with client.transaction(timeout=0.5) as transaction:
                await producer.send(b"never", transaction=transaction)
                await trio.sleep(0.8)


async def test_cumulative_acknowledgement(client: Client, topic: str) -> None:
    async with client.create_producer(topic, batching=None) as producer:
        await producer.send_many(b"%d" % number for number in range(4))
        async with client.subscribe(topic, "s", "exclusive", initial_position="earliest") as consumer:
            messages: list[Message] = [await consumer.receive() for _ in range(4)]
            with pytest.raises(ZeroDivisionError):
                async with client.transaction() as transaction:
                    consumer.acknowledge_cumulative(messages[3], transaction=transaction)
                    raise ZeroDivisionError
            assert await received(consumer, 4) == [b"0", b"1", b"2", b"3"], "the consumer asks for them again"
            async with client.transaction() as transaction:
                consumer.acknowledge_cumulative(messages[1], transaction=transaction)
        async with client.subscribe(topic, "s", "exclusive") as consumer:
            assert await received(consumer, 2) == [b"2", b"3"]


async def test_chunks_and_partitions(broker: BrokerUnderTest, client: Client, topic: str) -> None:
    await broker.create_partitioned_topic(topic, 3)
    async with (
        client.create_producer(topic, batching=None, chunking=True, chunk_max_message_size=100) as producer,
        client.subscribe(topic, "s", "shared") as consumer,
    ):
        async with client.transaction() as transaction:
            for number in range(6):
                await producer.enqueue(b"%d" % number * 300, transaction=transaction)
            await producer.flush()
            assert await nothing_comes(consumer)
        messages = [await consumer.receive() for _ in range(6)]
        assert sorted(message.data[:1] for message in messages) == [b"%d" % number for number in range(6)]
        async with client.transaction() as transaction:
            consumer.acknowledge(messages, transaction=transaction)
        consumer.redeliver_unacknowledged()
        assert await nothing_comes(consumer)


async def test_messages_sent_before_the_partitions_are_known(
    broker: BrokerUnderTest, client: Client, topic: str
) -> None:
    await broker.create_partitioned_topic(topic, 2)
    async with client.subscribe(topic, "s") as consumer:
        async with client.transaction() as transaction, client.create_producer(topic) as producer:
            ids: list[MessageId] = [
                await producer.send(b"%d" % number, transaction=transaction) for number in range(2)
            ]
            assert len({each.partition for each in ids}) >= 1
        assert sorted(await received(consumer, 2)) == [b"0", b"1"]
