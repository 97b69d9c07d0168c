"""Interceptors of a consumer, in an application."""

import logging
from typing import Any

import pytest
import trio

from pulsar_sansio import (
    ConsumerInterceptor,
    InvalidConfiguration,
    MessageId,
    ProducerInterceptor,
    TopicName,
)
from pulsar_trio import Client, Message
from tests.trio.consuming.test_consumer import fill, numbers_left


class Count(ConsumerInterceptor):
    def __init__(self) -> None:
        self.received: list[bytes] = []
        self.acknowledged = 0
        self.closed = False

    def before_consume(self, topic: TopicName, message: Message) -> Message:
        assert str(topic) == "persistent://public/default/t"
        self.received.append(message.data)
        return message

    def on_acknowledge(self, topic: TopicName, message_id: MessageId, error: object) -> None:
        assert error is None
        self.acknowledged += 1

    def close(self) -> None:
        self.closed = True


class Failing(ConsumerInterceptor):
    def before_consume(self, topic: TopicName, message: Message) -> Message:
        raise ZeroDivisionError


@pytest.mark.parametrize("how", ["receive", "receive_many", "async for", "run", "receive_nowait"])
async def test_they_see_what_is_received(client: Client, how: str) -> None:
    count = Count()
    async with client.subscribe("t", "s", initial_position="earliest", interceptors=(count,)) as consumer:
        await fill(client, "t", 3)
        match how:
            case "receive":
                for _ in range(3):
                    consumer.acknowledge(await consumer.receive())
            case "receive_many":
                while count.acknowledged < 3:
                    consumer.acknowledge(await consumer.receive_many())
            case "receive_nowait":
                consumer.acknowledge(await consumer.receive())
                for _ in range(2):
                    consumer.acknowledge(consumer.receive_nowait())
            case "async for":
                async for message in consumer:
                    async with message.processing():
                        pass
                    if count.acknowledged == 3:
                        break
            case _:
                await run_until(consumer, count)
    assert (count.received, count.acknowledged, count.closed) == ([b"0", b"1", b"2"], 3, True)
    assert await numbers_left(client) == []


async def run_until(consumer: Any, count: Count) -> None:
    async with trio.open_nursery() as nursery:

        async def handle(message: Message) -> None:
            if count.acknowledged == 2:
                nursery.start_soon(stop)

        async def stop() -> None:
            while count.acknowledged < 3:
                await trio.lowlevel.checkpoint()
            nursery.cancel_scope.cancel()

        nursery.start_soon(consumer.run, handle)


async def test_one_that_fails_is_logged(client: Client, caplog: pytest.LogCaptureFixture) -> None:
    async with client.subscribe("t", "s", interceptors=(Failing(),)) as consumer:
        await fill(client, "t", 1)
        assert (await consumer.receive()).data == b"0"
    (record,) = [each for each in caplog.records if each.levelno == logging.ERROR]
    assert "Failing" in record.getMessage()


@pytest.mark.parametrize("wrong", [Count(), [Count()], (ProducerInterceptor(),)])
async def test_what_is_no_interceptor_is_refused(client: Client, wrong: Any) -> None:
    with pytest.raises(InvalidConfiguration, match="interceptors"):
        async with client.subscribe("t", "s", interceptors=wrong):
            pass


@pytest.mark.parametrize("how", ["receive", "receive_many"])
async def test_they_see_what_comes_from_several_topics_once(client: Client, how: str) -> None:
    class Topics(ConsumerInterceptor):
        def __init__(self) -> None:
            self.seen: list[str] = []
            self.closed = 0

        def before_consume(self, topic: TopicName, message: Message) -> Message:
            self.seen.append(f"{topic.local} {message.data.decode()}")
            return message

        def on_acknowledge(self, topic: TopicName, message_id: MessageId, error: object) -> None:
            self.seen.append(f"{topic.local} acknowledged")

        def close(self) -> None:
            self.closed += 1

    topics = Topics()
    async with client.subscribe(["a", "b"], "s", interceptors=(topics,)) as consumer:
        for topic in "ab":
            await fill(client, topic, 2)
        received = 0
        while received < 4:
            if how == "receive":
                consumer.acknowledge(await consumer.receive())
                received += 1
            else:
                messages = await consumer.receive_many()
                consumer.acknowledge(messages)
                received += len(messages)
    assert sorted(topics.seen) == sorted(
        f"{topic} {what}" for topic in "ab" for what in ("0", "1", "acknowledged", "acknowledged")
    )
    assert topics.closed == 1


async def test_messages_of_several_topics_are_processed_and_handled(client: Client) -> None:
    """Rule MULTI-32."""
    async with client.subscribe(["a", "b"], "s", initial_position="earliest") as consumer:
        for topic in "ab":
            await fill(client, topic, 3)
        message = await consumer.receive()
        async with message.processing():
            pass
        handled: list[str] = []

        async def handle(message: Message) -> None:
            handled.append(message.topic[-1])
            if len(handled) == 5:
                nursery.start_soon(stop)

        async def stop() -> None:
            nursery.cancel_scope.cancel()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(consumer.run, handle)
    assert sorted([*handled, message.topic[-1]]) == ["a", "a", "a", "b", "b", "b"]
    left = [await numbers_left(client, topic) for topic in "ab"]
    assert sum(map(len, left)) <= 1  # the one whose handler was interrupted
