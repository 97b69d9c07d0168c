"""Options of a producer, as a broker sees them: batches by key, delays, replication, the client's memory."""

import pulsar
import pytest
import trio

from pulsar_sansio import NO_REPLICATION, MessageId, OutgoingMessage, ProducerInterceptor, TopicName
from pulsar_trio import BatchingPolicy, Client, open_client
from tests.official.client import Letter, consume, in_thread, produce
from tests.suite.brokers import BrokerUnderTest
from tests.suite.helpers import gather, numbers, receive_and_acknowledge

BY_KEY = BatchingPolicy(max_messages=100, max_delay=0.05, by_key=True)


async def test_batches_by_key_let_key_shared_consumers_share(client: Client, topic: str) -> None:
    """Ten keys, one batch each: every key with one consumer, in its order; nothing is shared twice."""
    async with (
        client.subscribe(topic, "s", "key_shared") as one,
        client.subscribe(topic, "s", "key_shared") as two,
        client.create_producer(topic, batching=BY_KEY) as producer,
    ):
        ids = await producer.send_many(
            OutgoingMessage(b"%d" % number, key=f"key-{number % 10}") for number in range(100)
        )
        assert len({message_id[:2] for message_id in ids}) == 10
        assert [message_id.batch_index for message_id in ids] == [number // 10 for number in range(100)]
        found: dict[str | None, list[int]] = {}
        owners: dict[str | None, set[int]] = {}
        for index, messages in enumerate(await gather([one, two], 100)):
            for message in messages:
                found.setdefault(message.key, []).append(int(message.data))
                owners.setdefault(message.key, set()).add(index)
        assert found == {f"key-{key}": list(range(key, 100, 10)) for key in range(10)}
        assert all(len(by) == 1 for by in owners.values())
        assert producer.statistics().batches == 10


async def test_the_official_client_reads_batches_by_key(
    broker: BrokerUnderTest, client: Client, topic: str
) -> None:
    async with client.create_producer(topic, batching=BY_KEY) as producer:
        await producer.send_many(
            OutgoingMessage(b"%d" % number, key=f"key-{number % 3}") for number in range(9)
        )
    letters = await in_thread(consume, broker.url, topic, 9)
    assert [letter.value for letter in letters] == [b"%d" % number for number in (0, 3, 6, 1, 4, 7, 2, 5, 8)]
    assert [letter.key for letter in letters] == ["key-0"] * 3 + ["key-1"] * 3 + ["key-2"] * 3


async def test_we_read_the_official_clients_batches_by_key(
    broker: BrokerUnderTest, client: Client, topic: str
) -> None:
    """The C++ client names such a batch by its lowest id, and we read what the entries say."""
    options = {"batching_enabled": True, "batching_max_publish_delay_ms": 200}
    letters = [Letter(b"%d" % number, key=f"key-{number % 3}") for number in range(9)]
    await in_thread(
        produce, broker.url, topic, letters, batching_type=pulsar.BatchingType.KeyBased, **options
    )
    async with client.subscribe(topic, "s", "key_shared", initial_position="earliest") as consumer:
        messages = await receive_and_acknowledge(consumer, 9)
    assert sorted(numbers(messages)) == list(range(9))
    for key in range(3):
        mine = [message for message in messages if message.key == f"key-{key}"]
        assert numbers(mine) == [key, key + 3, key + 6]
        assert {message.message_id.batch_size for message in mine} == {3}


async def test_deduplication_drops_a_round_that_came_already(
    broker: BrokerUnderTest, client: Client, topic: str
) -> None:
    """The ids of the entries increase, so nothing that is new is dropped."""
    topic = topic.replace("public/default", "public/deduplication")
    await broker.create_topic(topic)
    async with (
        client.subscribe(topic, "s", "exclusive", initial_position="earliest") as consumer,
        client.create_producer(topic, name="by-key", batching=BY_KEY) as producer,
    ):
        for start in (0, 9):
            await producer.send_many(
                OutgoingMessage(b"%d" % number, key=f"{number % 3}") for number in range(start, start + 9)
            )
        got = await receive_and_acknowledge(consumer, 18)
        assert sorted(numbers(got)) == list(range(18))
        assert [numbers(got)[index] for index in (0, 1, 2)] == [0, 3, 6]


@pytest.mark.slow
async def test_a_delayed_message_comes_later_and_others_before_it(client: Client, topic: str) -> None:
    async with (
        client.subscribe(topic, "s", "shared") as consumer,
        client.create_producer(topic) as producer,
    ):
        begun = trio.current_time()
        await producer.send(b"1", deliver_after=4.0)
        await producer.send(b"0")
        came = {}
        for _ in range(2):
            message = await consumer.receive()
            came[int(message.data)] = trio.current_time() - begun
        assert came.keys() == {0, 1}
        assert came[1] > 3.0


async def test_messages_that_are_not_to_be_replicated(client: Client, topic: str) -> None:
    """The messages arrive where they were sent, by themselves and in batches."""
    async with (
        client.subscribe(topic, "s", "exclusive") as consumer,
        client.create_producer(topic, batching=BatchingPolicy(max_delay=0.05)) as producer,
    ):
        messages = [
            OutgoingMessage(b"%d" % number, replicate_to=NO_REPLICATION if number % 4 < 2 else ())
            for number in range(8)
        ]
        ids = await producer.send_many(messages)
        assert len({message_id[:2] for message_id in ids}) == 4
        assert numbers(await receive_and_acknowledge(consumer, 8)) == list(range(8))


async def test_much_more_than_the_memory_holds_arrives(broker: BrokerUnderTest, topic: str) -> None:
    async with (
        open_client(broker.url, memory_limit=20_000) as client,
        client.subscribe(topic, "s", "exclusive") as consumer,
        client.create_producer(topic) as producer,
    ):
        ids = await producer.send_many(b"%01000d" % number for number in range(300))
        assert len(ids) == 300
        await producer.send(b"%030000d" % 300)  # larger than the limit
        got = await receive_and_acknowledge(consumer, 301)
        assert [int(message.data[-3:]) for message in got] == list(range(301))
        assert client.statistics().memory_held == 0


async def test_interceptors_get_the_ids_that_the_broker_gave(client: Client, topic: str) -> None:
    acknowledged: list[MessageId | None] = []

    class KeepsIds(ProducerInterceptor):
        def before_send(self, topic: TopicName, message: OutgoingMessage) -> OutgoingMessage:
            return OutgoingMessage(message.payload, properties={"seen by": "an interceptor"})

        def on_send_acknowledgement(
            self, topic: TopicName, message: OutgoingMessage, message_id: MessageId | None, error: object
        ) -> None:
            acknowledged.append(message_id)

    async with (
        client.subscribe(topic, "s", "exclusive") as consumer,
        client.create_producer(topic, interceptors=(KeepsIds(),)) as producer,
    ):
        ids = await producer.send_many(b"%d" % number for number in range(10))
        assert acknowledged == list(ids)
        messages = await receive_and_acknowledge(consumer, 10)
        assert {message.properties["seen by"] for message in messages} == {"an interceptor"}
