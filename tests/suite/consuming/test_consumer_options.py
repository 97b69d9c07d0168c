"""A consumer's options when it subscribes, on both brokers, beyond those that have tests of their own."""

from collections.abc import Sequence

import pytest
import trio
import trio.lowlevel

from pulsar_sansio import TopicName
from pulsar_trio import (
    BatchingPolicy,
    Client,
    ConsumerInterceptor,
    KeySharedPolicy,
    Message,
    MessageId,
    OutgoingMessage,
    PulsarError,
)
from tests.suite.helpers import gather, numbers, payloads, receive, receive_and_acknowledge, rest

KEYS = [f"key-{number}" for number in range(20)]


async def to_every_key(client: Client, topic: str) -> None:
    async with client.create_producer(topic, batching=None) as producer:
        await producer.send_many([OutgoingMessage(b"", key=key) for key in KEYS])


@pytest.mark.parametrize("in_order", [True, False])
async def test_a_key_whose_messages_are_not_acknowledged(client: Client, topic: str, in_order: bool) -> None:
    """In order, the key stays with the consumer that has its messages; else it goes to the one that joins."""
    policy = None if in_order else KeySharedPolicy(allow_out_of_order=True)
    async with client.subscribe(topic, "sub", kind="key_shared", key_shared=policy) as first:
        await to_every_key(client, topic)
        unacknowledged = await receive(first, len(KEYS))
        async with client.subscribe(topic, "sub", kind="key_shared", key_shared=policy) as second:
            await to_every_key(client, topic)
            moved = await rest(second)
            assert len(moved) in ([0] if in_order else range(1, len(KEYS)))
            first.acknowledge(unacknowledged)
            await first.flush()
            others = await gather([first, second], len(KEYS) - len(moved))
            assert sorted(message.key or "" for message in sum(others, moved)) == sorted(KEYS)


@pytest.mark.parametrize(("inclusive", "expected"), [(False, range(6, 12)), (True, range(5, 12))])
@pytest.mark.parametrize("batched", [False, True])
async def test_a_subscription_that_is_not_durable_begins_at_a_message(
    client: Client, topic: str, batched: bool, inclusive: bool, expected: range
) -> None:
    batching = BatchingPolicy(max_messages=4, max_delay=10.0) if batched else None
    async with client.subscribe(topic, "kept"), client.create_producer(topic, batching=batching) as producer:
        ids = await producer.send_many(payloads(12))
    async with client.subscribe(
        topic, "passing", durable=False, start_message_id=ids[5], start_message_id_inclusive=inclusive
    ) as consumer:
        assert numbers(await receive_and_acknowledge(consumer, len(expected))) == list(expected)
        assert await rest(consumer) == []


async def test_a_state_that_is_to_be_replicated(client: Client, topic: str) -> None:
    """There is no other cluster; it is a subscription like any other. Rule GEO-04."""
    async with client.subscribe(topic, "sub", replicate_subscription_state=True) as consumer:
        async with client.create_producer(topic) as producer:
            await producer.send_many(payloads(3))
        assert numbers(await receive_and_acknowledge(consumer, 3)) == [0, 1, 2]


async def test_topics_of_several_namespaces(client: Client, local_name: str) -> None:
    """Rule TOPIC-07."""
    names = [f"persistent://public/{namespace}/{local_name}" for namespace in ("default", "deduplication")]
    async with client.subscribe(names, "sub", kind="shared") as consumer:
        for name in names:
            async with client.create_producer(name) as producer:
                await producer.send(name.encode())
        messages = await receive_and_acknowledge(consumer, 2)
        assert sorted((message.topic, message.data.decode()) for message in messages) == [
            (name, name) for name in sorted(names)
        ]


class Listening(ConsumerInterceptor):
    """An interceptor that notes what it hears."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def before_consume(self, topic: TopicName, message: Message) -> Message:
        self.calls.append(f"consume {message.data.decode()}")
        return message

    def on_acknowledge(self, topic: TopicName, message_id: MessageId, error: PulsarError | None) -> None:
        self.calls.append(f"acknowledge {message_id.entry_id}, {error}")

    def on_negative_acknowledgements_send(self, topic: TopicName, message_ids: Sequence[MessageId]) -> None:
        self.calls += [f"again {message_id.entry_id}" for message_id in message_ids]


async def test_what_interceptors_hear(client: Client, topic: str) -> None:
    listening = Listening()
    async with (
        client.subscribe(
            topic, "sub", kind="shared", interceptors=(listening,), negative_acknowledgement_delay=0.1
        ) as consumer,
        client.create_producer(topic) as producer,
    ):
        await producer.send(b"x")
        consumer.negative_acknowledge(await consumer.receive())
        consumer.acknowledge(await consumer.receive())
        await consumer.flush()
    assert listening.calls == ["consume x", "again 0", "consume x", "acknowledge 0, None"]


async def test_chunks_of_two_producers_mixed(client: Client, topic: str) -> None:
    """Each message is put together from its own."""
    async with client.subscribe(topic, "sub", max_pending_chunked_messages=2) as consumer:

        async def send(number: int) -> None:
            async with client.create_producer(
                topic, batching=None, chunking=True, chunk_max_message_size=500
            ) as producer:
                for _ in range(5):
                    await producer.send(b"%d" % number * 5000)

        async with trio.open_nursery() as nursery:
            for number in range(2):
                nursery.start_soon(send, number)
            messages = await receive_and_acknowledge(consumer, 10)
        assert sorted(message.data for message in messages) == sorted([b"0" * 5000, b"1" * 5000] * 5)
        await consumer.flush()
        assert consumer.statistics().undelivered.chunks_dropped == 0


async def test_acknowledgements_go_when_there_are_enough_or_it_is_time(client: Client, topic: str) -> None:
    """By number at once, the rest when the group time is up: another consumer gets what is neither."""

    async with client.create_producer(topic, batching=None) as producer:
        async with client.subscribe(
            topic,
            "sub",
            kind="shared",
            initial_position="earliest",
            acknowledgement_group_time=0.3,
            acknowledgement_group_size=4,
        ) as consumer:
            await producer.send_many(payloads(10))
            for message in (await receive(consumer, 10))[:6]:
                consumer.acknowledge(message)
            while consumer.statistics().acknowledgements_sent < 4:
                await trio.lowlevel.checkpoint()
            assert consumer.statistics().acknowledgements_sent == 4
            while consumer.statistics().acknowledgements_sent < 6:  # noqa: ASYNC110
                await trio.sleep(0.02)
            await consumer.flush()
        async with client.subscribe(topic, "sub", kind="shared") as consumer:
            (again,) = await gather([consumer], 4)
            assert sorted(numbers(again)) == [6, 7, 8, 9]
            assert await rest(consumer) == []
