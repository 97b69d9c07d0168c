"""Receiving: nothing lost by cancelling, nothing acknowledged by accident."""

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import trio
import trio.testing

from pulsar_sansio import ArrivalCounters, ConsumerBusy
from pulsar_sansio.client.consuming.consumer import Consumer as ConsumerMachine
from pulsar_sansio.wire import (
    EncryptionKey,
    MessageMetadata,
    encode_command,
    encode_message_metadata,
    encode_send,
    pack_payload,
    proto,
)
from pulsar_trio import (
    BatchingPolicy,
    BatchReceivePolicy,
    Client,
    Consumer,
    EmbeddedBroker,
    Message,
    ResourceBroken,
    ResourceClosed,
    SharedConsumer,
    open_client,
)
from pulsar_trio.client.options import Kind
from tests.patience import PATIENCE
from tests.trio.proxy import open_proxy
from tests.trio.waiting import until


async def fill(client: Client, topic: str, count: int, batching: BatchingPolicy | None = None) -> None:
    async with client.create_producer(topic, batching=batching) as producer:
        await producer.send_many(b"%d" % number for number in range(count))


@asynccontextmanager
async def filled(
    client: Client, count: int, kind: Kind = "shared", topic: str = "t"
) -> AsyncIterator[Consumer]:
    """A consumer of a topic with `count` messages, numbered."""
    async with client.subscribe(topic, "s", kind, initial_position="earliest") as consumer:
        await fill(client, topic, count)
        yield consumer


async def numbers_left(client: Client, topic: str = "t") -> list[int]:
    """Return the numbers that the subscription delivers to a new consumer before any newer message."""
    async with client.subscribe(topic, "s", "shared") as consumer, client.create_producer(topic) as producer:
        end = await producer.send(b"-1")
        left: list[int] = []
        async for message in consumer:
            if message.message_id == end:
                consumer.acknowledge(message)
                return sorted(left)
            left.append(int(message.data))
        raise AssertionError("the topic ended")


async def test_messages_come_in_order_and_stay_acknowledged(client: Client) -> None:
    async with filled(client, 200) as consumer:
        received = []
        async for message in consumer:
            received.append(int(message.data))
            consumer.acknowledge(message)
            if len(received) == 200:
                break
        assert received == list(range(200))
        await consumer.flush()
    assert await numbers_left(client) == []


async def test_acknowledgements_are_sent_before_closing(client: Client) -> None:
    """Rule CONS-48."""
    async with client.subscribe(
        "t", "s", "shared", initial_position="earliest", acknowledgement_group_time=60.0
    ) as consumer:
        await fill(client, "t", 10)
        for _ in range(7):
            consumer.acknowledge(await consumer.receive())
    assert await numbers_left(client) == [7, 8, 9]


async def test_acknowledgements_are_sent_soon_although_nothing_else_happens(
    broker: EmbeddedBroker, client: Client
) -> None:
    """Acknowledgements are sent even where the first ones of a batch alone would not be."""
    async with client.subscribe("t", "s") as consumer:
        await fill(client, "t", 10, BatchingPolicy(max_messages=10))
        for _ in range(10):
            consumer.acknowledge(await consumer.receive())
        with trio.move_on_after(0.5):
            await consumer.receive()
        assert broker.stats("t")["subscriptions"]["s"]["msgBacklog"] == 0


async def test_acknowledge_takes_messages_ids_and_lists_of_them(client: Client) -> None:
    async with filled(client, 6) as consumer:
        messages: list[Message] = []
        while len(messages) < 6:
            messages += await consumer.receive_many(6 - len(messages))
        consumer.acknowledge(messages[0])
        consumer.acknowledge(messages[1].message_id)
        consumer.acknowledge([messages[2], messages[3].message_id])
        consumer.acknowledge([])
        consumer.acknowledge(messages[0])
    assert await numbers_left(client) == [4, 5]


async def test_receive_many_gives_what_has_arrived(client: Client) -> None:
    async with filled(client, 50) as consumer:
        received: list[Message] = []
        while len(received) < 50:
            some = await consumer.receive_many(20)
            assert 1 <= len(some) <= 20
            received += some
        assert [int(message.data) for message in received] == list(range(50))


async def test_receive_nowait(client: Client) -> None:
    """Rule CONS-40."""
    async with client.subscribe("t", "s", "shared") as consumer:
        with pytest.raises(trio.WouldBlock):
            consumer.receive_nowait()
        await fill(client, "t", 2)
        first = await consumer.receive()
        await until(lambda: consumer.statistics().available)
        assert [int(first.data), int(consumer.receive_nowait().data)] == [0, 1]


@pytest.mark.parametrize("steps", range(14))
async def test_a_cancelled_receive_loses_nothing(client: Client, steps: int) -> None:
    """Each message was received or is redelivered, wherever `receive` is cancelled; none is skipped. Rule
    CONS-40."""
    received: list[int] = []
    async with client.subscribe("t", "s", "shared", initial_position="earliest") as consumer:
        async with trio.open_nursery() as nursery:

            async def receive(scope: trio.CancelScope, limit: int) -> None:
                with scope:
                    while True:
                        messages = (
                            [await consumer.receive()] if limit == 1 else await consumer.receive_many(limit)
                        )
                        received.extend(int(message.data) for message in messages)
                        consumer.acknowledge(messages)

            scopes = [trio.CancelScope() for _ in range(3)]
            for scope, limit in zip(scopes, (1, 3, 1), strict=True):
                nursery.start_soon(receive, scope, limit)
            nursery.start_soon(fill, client, "t", 20)
            for scope in scopes[:2]:
                for _ in range(steps):
                    await trio.lowlevel.checkpoint()
                scope.cancel()
            await until(lambda: len(received) >= 20)
            scopes[2].cancel()
    assert sorted(received) == list(range(20))
    assert await numbers_left(client) == []


@pytest.mark.parametrize("steps", range(6))
async def test_a_cancelled_flush_or_close_of_a_consumer_keeps_its_acknowledgements(
    broker: EmbeddedBroker, client: Client, steps: int
) -> None:
    """Cancelled, closing does not wait; the acknowledgements were written nevertheless."""
    async with filled(client, 5) as consumer:
        received = [await consumer.receive() for _ in range(5)]
        consumer.acknowledge(received)

        async def flush_and_close(scope: trio.CancelScope) -> None:
            with scope:
                await consumer.flush()
                await consumer.aclose()

        async with trio.open_nursery() as nursery:
            scope = trio.CancelScope()
            nursery.start_soon(flush_and_close, scope)
            for _ in range(steps + 1):
                await trio.lowlevel.checkpoint()
            scope.cancel()
    assert await numbers_left(client) == []


async def test_every_waiting_task_gets_its_message(client: Client) -> None:
    """Rules CONS-30 and CONS-31."""
    async with client.subscribe("t", "s", "shared") as consumer:
        received: list[int] = []

        async def receive_one() -> None:
            received.append(int((await consumer.receive()).data))

        async with trio.open_nursery() as nursery:
            for _ in range(30):
                nursery.start_soon(receive_one)
            await trio.testing.wait_all_tasks_blocked()
            assert consumer.statistics().waiting == 30
            await fill(client, "t", 30, BatchingPolicy())
        assert sorted(received) == list(range(30))


async def test_waiting_tasks_are_served_in_the_order_of_their_calls(client: Client) -> None:
    """Rule CONS-23."""
    async with client.subscribe("t", "s", "shared") as consumer:
        received: list[tuple[int, int]] = []

        async def receive_one(turn: int) -> None:
            received.append((turn, int((await consumer.receive()).data)))

        async with trio.open_nursery() as nursery:
            for turn in range(5):
                nursery.start_soon(receive_one, turn)
                await trio.testing.wait_all_tasks_blocked()
            await fill(client, "t", 5, BatchingPolicy())
        assert sorted(received) == [(turn, turn) for turn in range(5)]


async def test_receiving_yields_now_and_then(client: Client) -> None:
    """Rule 1 of the API: at least one checkpoint in 64 messages, although all of them are there."""
    async with filled(client, 500) as consumer:
        await until(lambda: consumer.statistics().available == 500)
        received = 0
        for _ in range(3):
            with trio.CancelScope() as scope:
                scope.cancel()
                for _ in range(65):
                    await consumer.receive()
                    received += 1
            assert scope.cancelled_caught
        with trio.CancelScope() as scope:
            scope.cancel()
            async for _ in consumer:
                received += 1
        assert scope.cancelled_caught
        assert received < 4 * 65
        assert len(await consumer.receive_many(500)) == 500 - received
        with trio.CancelScope() as scope:
            scope.cancel()
            await consumer.receive_many(500)
        assert scope.cancelled_caught


async def test_negative_acknowledgements_are_redelivered(client: Client) -> None:
    async with client.subscribe(
        "t", "s", "shared", initial_position="earliest", negative_acknowledgement_delay=0.05
    ) as consumer:
        await fill(client, "t", 3)
        messages = [await consumer.receive() for _ in range(3)]
        consumer.acknowledge(messages[1])
        consumer.negative_acknowledge(messages[0])
        consumer.negative_acknowledge([messages[2].message_id])
        with trio.fail_after(PATIENCE):
            again = [await consumer.receive() for _ in range(2)]
        assert sorted((int(message.data), message.redelivery_count) for message in again) == [(0, 1), (2, 1)]


async def test_redeliver_unacknowledged(client: Client) -> None:
    async with filled(client, 4) as consumer:
        for _ in range(4):
            message = await consumer.receive()
        consumer.acknowledge(message)
        consumer.redeliver_unacknowledged()
        with trio.fail_after(PATIENCE):
            assert sorted([int((await consumer.receive()).data) for _ in range(3)]) == [0, 1, 2]


async def test_the_default_kind_is_shared(client: Client) -> None:
    """Rule SUBT-01."""
    async with client.subscribe("t", "s") as consumer:
        assert type(consumer) is SharedConsumer


async def test_a_wrong_word_is_one_clear_error(client: Client) -> None:
    for kind in ("Shared", "sharde", 3):
        with pytest.raises(
            ValueError, match="kind: one of 'exclusive', 'shared', 'failover', 'key_shared', not"
        ):
            await client.subscribe("t", "s", kind).__aenter__()  # type: ignore[call-overload]
    with pytest.raises(ValueError, match="initial_position: one of 'latest', 'earliest', not 'first'"):
        await client.subscribe("t", "s", initial_position="first").__aenter__()  # type: ignore[call-overload]
    with pytest.raises(ValueError, match="no option 'queue_size'"):
        await client.subscribe("t", "s", queue_size=5).__aenter__()  # type: ignore[call-overload]
    with pytest.raises(ValueError, match="subscription: a name that is not blank"):
        await client.subscribe("t", " ").__aenter__()


async def test_a_second_exclusive_consumer_is_refused(client: Client) -> None:
    async with client.subscribe("t", "s", "exclusive"):
        with pytest.raises(ConsumerBusy):
            await client.subscribe("t", "s", "exclusive").__aenter__()


async def test_failover_says_who_is_active(client: Client) -> None:
    async with client.subscribe("t", "s", "failover") as first:
        await until(lambda: first.active)
        async with client.subscribe("t", "s", "failover") as second:
            assert not second.active


async def test_the_end_of_a_terminated_topic(broker: EmbeddedBroker, client: Client) -> None:
    """Rule ERR-03."""
    async with filled(client, 3, "exclusive") as consumer:
        broker.terminate("t")
        received = []
        with trio.fail_after(PATIENCE):
            async for message in consumer:
                received.append(int(message.data))
                consumer.acknowledge(message)
            assert received == [0, 1, 2]
            with pytest.raises(trio.EndOfChannel):
                await consumer.receive()
            with pytest.raises(trio.EndOfChannel):
                consumer.receive_nowait()
            with pytest.raises(trio.EndOfChannel):
                await consumer.receive_many()


async def test_unsubscribe_deletes_the_subscription(broker: EmbeddedBroker, client: Client) -> None:
    """Rule CONS-48."""
    async with filled(client, 3) as consumer:
        assert "s" in broker.stats("t")["subscriptions"]
        await consumer.unsubscribe()
        with pytest.raises(trio.ClosedResourceError):
            await consumer.receive()
    assert broker.stats("t")["subscriptions"] == {}


async def test_a_closed_consumer_says_so(client: Client) -> None:
    async with filled(client, 1) as consumer:
        message = await consumer.receive()
        await consumer.aclose()
        await consumer.aclose()
    for call in (consumer.receive, consumer.receive_many, consumer.flush, consumer.unsubscribe):
        with pytest.raises(ResourceClosed) as raised:
            await call()
        assert isinstance(raised.value, trio.ClosedResourceError)
    for plain in (consumer.acknowledge, consumer.negative_acknowledge):
        with pytest.raises(ResourceClosed):
            plain(message)
    with pytest.raises(ResourceClosed):
        consumer.receive_nowait()
    with pytest.raises(ResourceClosed):
        consumer.redeliver_unacknowledged()
    with pytest.raises(ResourceClosed):
        await anext(consumer)
    assert consumer.statistics().available == 0
    assert "closed" in repr(consumer)


async def test_closing_wakes_every_task_that_receives(client: Client) -> None:
    async with client.subscribe("t", "s") as consumer:

        async def receive() -> None:
            with pytest.raises(trio.ClosedResourceError):
                await consumer.receive()

        async with trio.open_nursery() as nursery:
            for _ in range(3):
                nursery.start_soon(receive)
            await trio.testing.wait_all_tasks_blocked()
            await consumer.aclose()


async def test_a_lost_connection_comes_back_by_itself() -> None:
    """Rule CONS-44."""
    async with (
        open_proxy() as proxy,
        open_client(proxy.url, initial_backoff=0.01) as client,
        filled(client, 10, "exclusive") as consumer,
        client.create_producer("t") as producer,
    ):
        for _ in range(5):
            consumer.acknowledge(await consumer.receive())
        await consumer.flush()
        proxy.cut()
        with trio.fail_after(PATIENCE):
            await producer.send(b"10")
            received: list[int] = []
            while received[-1:] != [10]:
                received.append(int((await consumer.receive()).data))
        assert received[-6:] == [5, 6, 7, 8, 9, 10]
        assert consumer.connected
        assert proxy.connections == 2


async def test_a_topic_that_is_deleted_breaks_its_consumer(broker: EmbeddedBroker) -> None:
    async with open_client(broker.url, initial_backoff=0.01, max_backoff=0.05) as client:
        broker.create_topic("t")
        broker.set_policy("public/default", "auto_topic_creation", False)
        async with client.subscribe("t", "s") as consumer:
            broker.delete_topic("t", force=True)
            with trio.fail_after(PATIENCE), pytest.raises(trio.BrokenResourceError) as raised:
                await consumer.receive()
            assert isinstance(raised.value, ResourceBroken)
            assert raised.value.__cause__ is not None


# --- what cannot be read --------------------------------------------------------------------------------


async def send_encrypted(broker: EmbeddedBroker, topic: str, count: int) -> None:
    """Send by hand what a producer that encrypts sends, because our producer does not encrypt."""
    kinds = proto.BaseCommand
    connect = proto.CommandConnect(client_version="test", protocol_version=21)
    producer = proto.CommandProducer(topic=topic, producer_id=0, request_id=0, encrypted=True)
    stream = await trio.open_tcp_stream("127.0.0.1", int(broker.url.rpartition(":")[2]))
    async with stream:
        await stream.send_all(encode_command(kinds.CONNECT, connect))
        await stream.receive_some()
        await stream.send_all(encode_command(kinds.PRODUCER, producer))
        await stream.receive_some()
        for number in range(count):
            metadata = MessageMetadata("p", number, 1, encryption_keys=[EncryptionKey("tom's", b"")])
            packed = pack_payload(encode_message_metadata(metadata), b"secret")
            frame = encode_send(0, number, 1, None, packed, sum(map(len, packed)))
            await stream.send_all(frame if isinstance(frame, bytes) else b"".join(frame))
            await stream.receive_some()


async def test_encrypted_messages_are_not_delivered_and_the_log_says_so(
    broker: EmbeddedBroker, client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    """CRYPTO-05, FAIL: they stay in the subscription."""
    topic = "persistent://public/default/t"
    async with client.subscribe(topic, "s", "shared") as consumer:
        await send_encrypted(broker, topic, 3)
        await fill(client, topic, 1)
        assert (await consumer.receive()).data == b"0"
        assert consumer.statistics().undelivered == ArrivalCounters(undecryptable=3)
    (record,) = [each for each in caplog.records if each.name.startswith("pulsar_trio")]
    assert record.levelno == logging.WARNING
    text = record.getMessage()
    for part in ("SharedConsumer 's' on persistent://public/default/t", '"tom\'s"', "cannot be decrypted"):
        assert part in text
    assert consumer.statistics().undelivered.undecryptable == 3  # still, when it is closed
    assert broker.stats(topic)["subscriptions"]["s"]["msgBacklog"] == 4


@pytest.mark.parametrize("batch_receive", [None, BatchReceivePolicy(timeout=30.0)])
async def test_nothing_is_kept_of_calls_that_were_cancelled(batch_receive: BatchReceivePolicy | None) -> None:
    """An application may try again and again for a while, when the broker does not answer."""
    async with open_proxy() as proxy, open_client(proxy.url) as client:
        async with client.subscribe("t", "s", batch_receive=batch_receive) as consumer:
            await fill(client, "t", 1)
            message = await consumer.receive()
            proxy.hold()
            consumer.acknowledge(message)
            machine = client._driver.machine._handles.consumers[consumer._handle]
            assert isinstance(machine, ConsumerMachine)
            for _ in range(3):
                for call in (consumer.flush, consumer.last_message_id, consumer.receive_many):
                    with trio.move_on_after(0.001):
                        await call()
            assert machine._acknowledgements.grouping._flushes == []
            assert machine._positions._requests._open == set()
            assert machine._batch_receive is None or machine._batch_receive.waiting() == []
            assert client._driver.answers == {}
            proxy.release()
