"""An application acknowledges or negatively acknowledges a message, or does neither in time."""

import logging

import pytest
import trio.testing

from pulsar_trio import (
    BatchingPolicy,
    Client,
    DeadLetterPolicy,
    EmbeddedBroker,
    PulsarError,
    open_broker,
    open_client,
)
from pulsar_trio.client.options import ConsumerOptions
from tests.trio.waiting import until


async def test_the_time_of_each_message_runs_from_when_it_was_received(
    mock_clock: trio.testing.MockClock, client: Client
) -> None:
    """UNACK-05: they have arrived together, and are taken one by one."""
    async with (
        client.subscribe(
            "t", "s", acknowledgement_timeout=10.0, acknowledgement_timeout_tick=1.0
        ) as consumer,
        client.create_producer("t", batching=None) as producer,
    ):
        await producer.send_many([b"0", b"1"])
        assert (await consumer.receive()).data == b"0"
        mock_clock.jump(4.0)
        assert (await consumer.receive()).data == b"1"
        mock_clock.jump(7.5)
        again = await consumer.receive()
        assert (again.data, again.redelivery_count) == (b"0", 1)
        await producer.send(b"2")
        second = await consumer.receive()
        assert second.data == b"2"
        consumer.acknowledge([again, second])
        mock_clock.jump(4.0)
        assert (await consumer.receive()).data == b"1"


async def test_a_dead_letter_that_cannot_be_copied_is_a_warning(
    broker: EmbeddedBroker, client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    """DLQ-05: and the message stays."""
    policy = DeadLetterPolicy(1, topic="public/nowhere/dead")
    async with client.subscribe(
        "t", "s", negative_acknowledgement_delay=0.01, dead_letter=policy
    ) as consumer:
        async with client.create_producer("t") as producer:
            await producer.send(b"poison")
        for _ in range(2):
            consumer.negative_acknowledge(await consumer.receive())
        await until(lambda: bool(caplog.records))
    record = caplog.records[0]
    assert (record.name, record.levelno) == ("pulsar_trio.consumer", logging.WARNING)
    text = record.getMessage()
    for part in ("SharedConsumer 's' on persistent://public/default/t", "public/nowhere/dead", "Namespace"):
        assert part in text
    assert broker.stats("persistent://public/default/t")["subscriptions"]["s"]["msgBacklog"] == 1


async def test_only_a_consumer_with_retry_can_consume_later(client: Client) -> None:
    async with client.subscribe("t", "s") as consumer, client.create_producer("t") as producer:
        await producer.send(b"x")
        message = await consumer.receive()
        with pytest.raises(PulsarError, match="retry=True"):
            await consumer.reconsume_later(message, 1.0)
        with pytest.raises(PulsarError, match="retry=True"):
            await consumer.reconsume_later([message], 1.0)
        consumer.acknowledge(message)


async def test_each_of_several_reconsumed_later_is_tried(client: Client) -> None:
    """A message of another consumer is refused, and the others are copied all the same."""
    async with (
        client.subscribe("t", "s", kind="shared", retry=True) as consumer,
        client.subscribe("other", "s") as other,
        client.create_producer("t") as producer,
        client.create_producer("other") as elsewhere,
    ):
        await producer.send_many([b"1", b"2"])
        await elsewhere.send(b"x")
        first, second = [await consumer.receive() for _ in range(2)]
        foreign = await other.receive()
        with pytest.raises(PulsarError):
            await consumer.reconsume_later([first, foreign, second], 0.0)
        again = [await consumer.receive() for _ in range(2)]
        assert [message.data for message in again] == [b"1", b"2"]
        assert {message.properties["RECONSUMETIMES"] for message in again} == {"1"}
        consumer.acknowledge(again)


@pytest.mark.parametrize("cumulative", [False, True])
async def test_the_copy_of_a_cancelled_call_is_made(client: Client, cumulative: bool) -> None:
    async with (
        client.subscribe("t", "s", kind="exclusive", retry=True) as consumer,
        client.create_producer("t") as producer,
    ):
        await producer.send_many([b"0", b"1"])
        first, second = [await consumer.receive() for _ in range(2)]
        with trio.CancelScope() as scope:
            scope.cancel()
            if cumulative:
                await consumer.reconsume_later_cumulative(second, 0.0)
            else:
                await consumer.reconsume_later(second, 0.0)
        assert scope.cancelled_caught
        again = await consumer.receive()
        assert (again.data, again.properties["RECONSUMETIMES"]) == (b"1", "1")
        consumer.acknowledge(again if cumulative else [first, again])
    async with client.subscribe("t", "s", kind="exclusive", retry=True) as consumer:
        with trio.move_on_after(0.1) as scope:
            await consumer.receive()
        assert scope.cancelled_caught


async def test_a_broker_that_does_not_keep_what_of_a_batch_is_acknowledged() -> None:
    """The broker confirms and forgets; it redelivers the batch as a whole, which is done when all of it is
    acknowledged."""
    async with (
        open_broker(batch_index_acknowledgement=False) as broker,
        open_client(broker.url) as client,
    ):
        options: ConsumerOptions = {"batch_index_acknowledgement": True}
        async with client.subscribe("t", "s", **options) as consumer:
            async with client.create_producer("t", batching=BatchingPolicy(max_delay=1.0)) as producer:
                await producer.send_many([b"0", b"1", b"2"])
            first, *_ = await consumer.receive_many()
            consumer.acknowledge(first)
            await consumer.flush()
        async with client.subscribe("t", "s", **options) as consumer:
            again = await consumer.receive_many()
            assert [message.data for message in again] == [b"0", b"1", b"2"]
            consumer.acknowledge(again)
            await consumer.flush()
        assert broker.stats("persistent://public/default/t")["subscriptions"]["s"]["msgBacklog"] == 0
