"""Access modes: a producer finds out whether it may send to a topic."""

import pytest
import trio

from pulsar_sansio import ProducerBusy, ProducerFenced, TopicTerminated
from pulsar_trio import Client, Producer, ResourceBroken
from tests.patience import PATIENCE
from tests.suite.brokers import BrokerUnderTest
from tests.suite.helpers import payloads, receive_and_acknowledge, until


async def test_exclusive_access_keeps_others_out_until_it_ends(client: Client, topic: str) -> None:
    async with client.create_producer(topic, access_mode="exclusive") as producer:
        with pytest.raises(ProducerFenced):
            async with client.create_producer(topic, access_mode="exclusive"):
                pass
        with pytest.raises(ProducerBusy):
            async with client.create_producer(topic):
                pass
        await producer.send(b"x")
    async with client.create_producer(topic) as producer:
        with pytest.raises(ProducerFenced):
            async with client.create_producer(topic, access_mode="exclusive"):
                pass
        await producer.send(b"y")


async def test_a_waiting_producer_gets_access_when_the_other_closes(
    client: Client, topic: str, nursery: trio.Nursery
) -> None:
    opened: list[Producer] = []

    async def wait(task_status: trio.TaskStatus[None]) -> None:
        manager = client.create_producer(topic, access_mode="wait_for_exclusive")
        task_status.started()
        async with manager as producer:
            opened.append(producer)
            await producer.send(b"second")

    async with client.subscribe(topic, "sub") as consumer:
        async with client.create_producer(topic, access_mode="exclusive") as producer:
            async with trio.open_nursery() as waiting:
                await waiting.start(wait)
                await trio.sleep(0.5)
                assert not opened
                await producer.send(b"first")
                await producer.aclose()
        messages = await receive_and_acknowledge(consumer, 2)
    assert [message.data for message in messages] == [b"first", b"second"]


async def test_waiting_can_be_given_up(client: Client, topic: str) -> None:
    async with client.create_producer(topic, access_mode="exclusive"):
        with trio.move_on_after(0.5) as scope:
            async with client.create_producer(topic, access_mode="wait_for_exclusive"):
                pass
        assert scope.cancelled_caught

    async def no_producer_is_there() -> bool:
        try:
            async with client.create_producer(topic, access_mode="exclusive") as producer:
                await producer.send(b"x")
        except ProducerFenced:  # a real Pulsar lets the one that was given up have its turn for a moment
            return False
        return True

    await until(no_producer_is_there)


async def test_fencing_sends_the_other_away_for_good(client: Client, topic: str) -> None:
    async with client.subscribe(topic, "sub") as consumer:
        async with client.create_producer(topic, access_mode="exclusive") as fenced:
            await fenced.send(b"0")
            async with client.create_producer(topic, access_mode="exclusive_with_fencing") as producer:
                await producer.send(b"1")
                with pytest.raises(ProducerFenced):
                    await fenced.send(b"never")
                with pytest.raises(ResourceBroken):
                    await fenced.send(b"never either")
                await producer.send(b"2")
        messages = await receive_and_acknowledge(consumer, 3)
    assert [message.data for message in messages] == [b"0", b"1", b"2"]


async def test_exclusive_access_survives_an_unload(
    broker: BrokerUnderTest, client: Client, topic: str
) -> None:
    async with client.subscribe(topic, "sub") as consumer:
        async with client.create_producer(topic, access_mode="exclusive") as producer:
            await producer.send_many(payloads(5))
            await broker.unload(topic)
            await producer.send_many(payloads(5))
            with pytest.raises(ProducerBusy):
                async with client.create_producer(topic):
                    pass
        assert len(await receive_and_acknowledge(consumer, 10)) == 10


async def test_a_waiting_producer_is_told_that_the_topic_is_terminated(
    broker: BrokerUnderTest, client: Client, topic: str
) -> None:
    async with client.create_producer(topic, access_mode="exclusive"):
        async with trio.open_nursery() as nursery:

            async def wait() -> None:
                with pytest.raises(TopicTerminated), trio.fail_after(PATIENCE):
                    async with client.create_producer(topic, access_mode="wait_for_exclusive"):
                        pass

            nursery.start_soon(wait)
            await trio.sleep(0.5)
            await broker.terminate(topic)
