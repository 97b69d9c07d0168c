"""Interceptors of a consumer, in an application."""

import logging
from typing import Any

import pytest
import trio

from pulsar_sansio import ConsumerInterceptor, InvalidConfiguration, MessageId, ProducerInterceptor, TopicName
from pulsar_trio import Client, Message

from .test_consumer import fill, numbers_left


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
