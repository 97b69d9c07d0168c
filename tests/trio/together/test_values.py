"""Payloads and times as applications write and read them."""

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
import trio

from pulsar_trio import (
    Client,
    EmbeddedBroker,
    InvalidMessage,
    LocalProtocolError,
    OutgoingMessage,
    open_broker,
    open_client,
)
from tests.trio.reading import first_value

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize("given", [b"value", bytearray(b"value"), memoryview(b"a value")[2:]])
async def test_payloads_of_every_kind(client: Client, given: bytes | bytearray | memoryview) -> None:
    async with client.create_producer("t") as producer, client.subscribe("t", "s") as consumer:
        await producer.send(given)
        receipt = await producer.enqueue(given, key="k")
        producer.enqueue_nowait(given)
        await producer.send_many([given, b"other", OutgoingMessage(given), given])
        await receipt.wait()
        received = [(await consumer.receive()).value for _ in range(7)]
        assert received == [b"value"] * 4 + [b"other", b"value", b"value"]


async def test_what_can_be_changed_is_copied(client: Client) -> None:
    """Copies are made where one buffer serves all messages of `send_many`, and behind other messages, too."""
    buffer = bytearray(2)

    def messages() -> Any:
        for number in range(200):
            buffer[:] = b"%02d" % (number % 100)
            yield buffer

    async with client.create_producer("t") as producer, client.subscribe("t", "s") as consumer:
        await producer.send_many(messages())
        received = [(await consumer.receive()).value for _ in range(200)]
        assert received == [b"%02d" % (number % 100) for number in range(200)]
        await producer.send_many([b"first", buffer])
        receipt = await producer.enqueue(buffer)
        buffer[:] = b"!!"
        await receipt.wait()
        assert [(await consumer.receive()).value for _ in range(3)] == [b"first", b"99", b"99"]


async def test_tombstones(client: Client) -> None:
    """Rule CFG-402."""
    async with (
        client.create_producer("t") as producer,
        client.create_table_view("t") as view,
        client.subscribe("t", "s", initial_position="earliest") as consumer,
    ):
        await producer.send(b"value", key="k")
        await view.refresh()
        assert view["k"] == b"value"
        await producer.send(None, key="k")
        await view.refresh()
        assert dict(view) == {}
        await producer.send(None)
        await producer.send_many([None, b""])
        values = [(await consumer.receive()).value for _ in range(5)]
        assert values == [b"value", None, None, None, b""]


async def test_a_wrong_payload_is_refused(client: Client) -> None:
    wrong: Any = "text"
    async with client.create_producer("t") as producer:
        for call in (producer.send, producer.enqueue):
            with pytest.raises(InvalidMessage, match="not str"):
                await call(wrong)
        with pytest.raises(InvalidMessage, match="not str"):
            await producer.send_many([bytearray(b"right"), wrong])


async def test_times_are_datetimes_in_and_out(client: Client) -> None:
    when = datetime(2026, 2, 3, 4, 5, 6, 789_999, tzinfo=timezone(timedelta(hours=2)))
    async with client.create_producer("t") as producer, client.subscribe("t", "s") as consumer:
        await producer.send(b"1", event_time=when)
        await producer.send(b"2")
        message = await consumer.receive()
        assert message.event_datetime == datetime(2026, 2, 3, 2, 5, 6, 789_000, tzinfo=UTC)
        assert message.event_time == (when - EPOCH) // timedelta(milliseconds=1)
        assert message.publish_datetime == EPOCH + timedelta(milliseconds=message.publish_time)
        assert message.publish_datetime.utcoffset() == timedelta(0)
        assert (await consumer.receive()).event_datetime is None
        for field in ("event_time", "deliver_at"):
            with pytest.raises(InvalidMessage, match=f"{field}: a datetime with a time zone"):
                await producer.send(b"x", **{field: datetime(2026, 1, 1)})  # type: ignore[arg-type]
        with pytest.raises(InvalidMessage, match="deliver_at: a datetime or milliseconds since 1970"):
            await producer.send(b"x", deliver_at=EPOCH - timedelta(days=1))


async def test_a_cursor_is_reset_to_a_datetime(client: Client, broker: EmbeddedBroker) -> None:
    topic = "persistent://public/default/t"
    async with client.subscribe("t", "s", initial_position="earliest") as consumer:
        async with client.create_producer("t") as producer:
            await producer.send(b"1")
        consumer.acknowledge(await consumer.receive())
        await consumer.flush()
    broker.reset_cursor(topic, "s", EPOCH + timedelta(days=1))
    async with client.subscribe("t", "s") as consumer:
        assert (await consumer.receive()).value == b"1"
    with pytest.raises(LocalProtocolError, match="position: a datetime with a time zone"):
        broker.reset_cursor(topic, "s", datetime(2026, 1, 1))


async def test_delivery_at_a_datetime_and_after_a_timedelta(client: Client) -> None:
    async with client.create_producer("t") as producer, client.subscribe("t", "s") as consumer:
        await producer.send(b"past", deliver_at=EPOCH + timedelta(days=1))
        assert (await consumer.receive()).value == b"past"
        await producer.send(b"far", deliver_after=timedelta(days=1))
        await producer.send(b"now")
        assert (await consumer.receive()).value == b"now"
        for delay in (timedelta(days=-1), timedelta(days=10_000)):
            with pytest.raises(
                InvalidMessage, match="deliver_after: a timedelta or seconds from 0 to 315360000"
            ):
                await producer.send(b"x", deliver_after=delay)


async def test_reconsumed_after_a_timedelta(client: Client) -> None:
    async with (
        client.create_producer("t") as producer,
        client.subscribe("t", "s", retry=True) as consumer,
    ):
        await producer.send(b"x")
        await consumer.reconsume_later(await consumer.receive(), timedelta(milliseconds=1))
        again = await consumer.receive()
        assert (again.value, again.properties["DELAY_TIME"]) == (b"x", "1")


async def test_index_and_time_of_the_broker(nursery: trio.Nursery) -> None:
    before = datetime.now(UTC) - timedelta(minutes=1)
    async with open_broker(broker_entry_metadata=True) as broker, open_client(broker.url) as client:
        async with client.create_producer("t") as producer, client.subscribe("t", "s") as consumer:
            await producer.send(b"0")
            await producer.send_many([b"%d" % number for number in range(1, 100)])
            messages = [await consumer.receive() for _ in range(100)]
        assert [message.index for message in messages] == list(range(100))
        for message in messages:
            assert message.broker_publish_datetime is not None
            assert before < message.broker_publish_datetime < datetime.now(UTC) + timedelta(minutes=1)
            assert message.broker_publish_datetime.utcoffset() == timedelta(0)


async def test_without_the_brokers_word_there_is_no_index(client: Client) -> None:
    async with client.create_producer("t") as producer:
        await producer.send(b"x")
    message = await first_value(client)
    assert (message.index, message.broker_publish_time, message.broker_publish_datetime) == (None, None, None)
