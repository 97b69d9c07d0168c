"""A consumer's requests for messages: queue sizes, pausing, ranges of keys."""

import pytest
import trio

from pulsar_sansio import ConsumerAssignError, ConsumerBusy, MetadataError
from pulsar_trio import (
    BatchingPolicy,
    BatchReceivePolicy,
    Client,
    FailoverConsumer,
    KeySharedPolicy,
    OutgoingMessage,
)
from tests.patience import PATIENCE
from tests.real_pulsar.admin import topic_path
from tests.suite.brokers import BrokerUnderTest
from tests.suite.helpers import (
    numbers,
    payloads,
    receive,
    receive_and_acknowledge,
    rest,
    until,
    values,
)


@pytest.mark.parametrize("size", [0, 1, 2, 1000])
@pytest.mark.parametrize("batching", [None, BatchingPolicy(7)])
async def test_every_size_of_the_queue_gets_everything(
    client: Client, topic: str, size: int, batching: BatchingPolicy | None
) -> None:
    async with (
        client.subscribe(topic, "sub", "exclusive", receiver_queue_size=size) as consumer,
        client.create_producer(topic, batching=batching) as producer,
    ):
        await producer.send_many(payloads(40))
        assert numbers(await receive_and_acknowledge(consumer, 40)) == list(range(40))


async def test_with_a_queue_of_size_0_others_get_what_one_does_not_want(client: Client, topic: str) -> None:
    async with (
        client.subscribe(topic, "sub", "shared", receiver_queue_size=0) as idle,
        client.subscribe(topic, "sub", "shared", receiver_queue_size=0) as busy,
        client.create_producer(topic, batching=None) as producer,
    ):
        await producer.send_many(payloads(10))
        assert numbers([await busy.receive() for _ in range(9)]) == list(range(9))
        assert numbers([await idle.receive()]) == [9]


async def test_paused_consumers_get_what_they_had_asked_for(client: Client, topic: str) -> None:
    async with (
        client.subscribe(topic, "sub", "exclusive", receiver_queue_size=4) as consumer,
        client.create_producer(topic, batching=None) as producer,
    ):
        consumer.pause()
        await producer.send_many(payloads(10))
        assert values(await receive(consumer, 4)) == payloads(4)
        assert await rest(consumer) == []
        consumer.resume()
        assert values(await receive(consumer, 6)) == payloads(6, start=4)


async def test_started_paused(client: Client, topic: str) -> None:
    async with (
        client.subscribe(topic, "sub", "exclusive", start_paused=True) as consumer,
        client.create_producer(topic) as producer,
    ):
        await producer.send(b"x")
        assert await rest(consumer) == []
        consumer.resume()
        with trio.fail_after(PATIENCE):
            assert (await consumer.receive()).data == b"x"


async def test_a_queue_that_scales(client: Client, topic: str) -> None:
    async with (
        client.subscribe(
            topic, "sub", "exclusive", receiver_queue_size=50, auto_scaled_receiver_queue_size=True
        ) as consumer,
        client.create_producer(topic, batching=None) as producer,
    ):
        await producer.send_many(payloads(200))
        assert numbers(await receive_and_acknowledge(consumer, 200)) == list(range(200))


async def test_keys_go_where_their_ranges_are(client: Client, topic: str) -> None:
    """The hash of key-1 is 5536, that of hello 64071 (Murmur3 of the key, modulo 65536)."""
    lower, upper = KeySharedPolicy(((0, 32767),)), KeySharedPolicy(((32768, 65535),))
    async with (
        client.subscribe(topic, "sub", "key_shared", key_shared=lower) as below,
        client.subscribe(topic, "sub", "key_shared", key_shared=upper) as above,
        client.create_producer(topic, batching=None) as producer,
    ):
        for key in ("key-1", "hello") * 3:
            await producer.send(key.encode(), key=key)
        assert values(await receive(below, 3)) == [b"key-1"] * 3
        assert values(await receive(above, 3)) == [b"hello"] * 3


async def test_ranges_that_overlap_those_of_another_consumer_are_refused(client: Client, topic: str) -> None:
    async with client.subscribe(
        topic, "sub", "key_shared", key_shared=KeySharedPolicy(((0, 100), (200, 300)))
    ):
        with pytest.raises(ConsumerAssignError):
            async with client.subscribe(
                topic, "sub", "key_shared", key_shared=KeySharedPolicy(((150, 200),))
            ):
                pass
        with pytest.raises(ConsumerBusy):
            async with client.subscribe(topic, "sub", "key_shared"):
                pass
        async with client.subscribe(topic, "sub", "key_shared", key_shared=KeySharedPolicy(((101, 199),))):
            pass


async def test_messages_of_a_hash_without_a_consumer_wait(client: Client, topic: str) -> None:
    async with client.create_producer(topic, batching=None) as producer:
        async with client.subscribe(
            topic, "sub", "key_shared", key_shared=KeySharedPolicy(((0, 6000),))
        ) as consumer:
            await producer.send_many([OutgoingMessage(b"1", key="key-1"), OutgoingMessage(b"2", key="hello")])
            assert values(await receive(consumer, 1)) == [b"1"]
            assert await rest(consumer) == []
            async with client.subscribe(
                topic, "sub", "key_shared", key_shared=KeySharedPolicy(((6001, 65535),))
            ) as other:
                assert values(await receive(other, 1)) == [b"2"]


async def test_a_better_priority_is_served_first(client: Client, topic: str) -> None:
    """SUBT-07: the next level gets what the first has no permits for."""
    async with (
        client.subscribe(topic, "sub", "shared", receiver_queue_size=2, priority_level=1) as later,
        client.subscribe(topic, "sub", "shared", receiver_queue_size=4, priority_level=0) as first,
        client.create_producer(topic, batching=None) as producer,
    ):
        await producer.send_many(payloads(6))
        assert numbers(await receive(later, 2)) == [4, 5]
        assert numbers(await receive(first, 4)) == [0, 1, 2, 3]


async def told(consumer: FailoverConsumer) -> None:
    """Wait until the broker has said for the first time which consumer is active."""
    while consumer.active is None:  # noqa: ASYNC110
        await trio.sleep(0.02)


async def test_the_best_priority_is_active(broker: BrokerUnderTest, client: Client, topic: str) -> None:
    """SUBT-04; and the other one is told when it is its turn (LSNR-05)."""
    await broker.create_partitioned_topic(topic, 1)
    partition = f"{topic}-partition-0"
    async with client.subscribe(partition, "sub", "failover", consumer_name="a", priority_level=1) as waits:
        await told(waits)
        assert waits.active
        async with client.subscribe(
            partition, "sub", "failover", consumer_name="b", priority_level=0
        ) as active:
            assert not await waits.active_changed()
            await told(active)
            assert active.active
        assert await waits.active_changed()


async def test_a_subscription_that_others_use_goes_by_force_only(
    broker: BrokerUnderTest, client: Client, topic: str
) -> None:
    async with client.subscribe(topic, "sub", "shared"), client.subscribe(topic, "sub", "shared") as other:
        with pytest.raises(MetadataError):
            await other.unsubscribe()
        await other.unsubscribe(force=True)


async def test_what_has_arrived_is_enough_when_time_is_up(client: Client, topic: str) -> None:
    policy = BatchReceivePolicy(max_messages=10, timeout=0.3)
    async with (
        client.subscribe(topic, "sub", batch_receive=policy) as consumer,
        client.create_producer(topic) as producer,
    ):
        await producer.send_many(payloads(14))
        assert sorted(numbers(await consumer.receive_many())) == list(range(10))
        assert sorted(numbers(await consumer.receive_many())) == list(range(10, 14))


async def test_so_many_bytes_are_enough(client: Client, topic: str) -> None:
    """No more are given at once, but for one message that has more by itself."""
    policy = BatchReceivePolicy(max_bytes=10, timeout=30.0)
    async with (
        client.subscribe(topic, "sub", "exclusive", batch_receive=policy) as consumer,
        client.create_producer(topic, batching=None) as producer,
    ):
        await producer.send_many([b"1234", b"5678", b"90", b"more than ten", b"1234567890"])
        found = [values(await consumer.receive_many()) for _ in range(3)]
        assert found == [[b"1234", b"5678", b"90"], [b"more than ten"], [b"1234567890"]]


async def test_partitions_share_a_queue(broker: BrokerUnderTest, client: Client, topic: str) -> None:
    """Rules FLOW-16, MULTI-15: a consumer whose application receives nothing holds no more than the total."""
    await broker.create_partitioned_topic(topic, 4)
    async with (
        client.subscribe(topic, "sub", "shared", max_total_receiver_queue_size=8) as consumer,
        client.create_producer(topic, batching=None) as producer,
    ):
        await producer.send_many(payloads(40))
        held: dict[str, int] = {}

        async def all_have_their_share() -> bool:
            for index in range(4):
                _, stats = await broker.request("GET", f"{topic_path(f'{topic}-partition-{index}')}/stats")
                held[str(index)] = stats["subscriptions"]["sub"]["unackedMessages"]
            return sum(held.values()) >= 8

        await until(all_have_their_share)
        assert held == {"0": 2, "1": 2, "2": 2, "3": 2}
        assert sorted(numbers(await receive_and_acknowledge(consumer, 40))) == list(range(40))
