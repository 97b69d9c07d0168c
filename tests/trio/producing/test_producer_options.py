"""A producer's options and counts: waiting or failing, memory, interceptors, delays."""

import time
from typing import Any

import pytest
import trio
import trio.testing

from pulsar_sansio import (
    InvalidConfiguration,
    InvalidMessage,
    MemoryBufferIsFull,
    MessageId,
    ProducerInterceptor,
    ProducerQueueIsFull,
    PulsarError,
    TopicName,
)
from pulsar_trio import BatchingPolicy, Client, EmbeddedBroker, OutgoingMessage, open_client
from tests.patience import PATIENCE
from tests.trio.producing.test_producer import SLOW, everything_on
from tests.trio.proxy import open_proxy


class Book(ProducerInterceptor):
    def __init__(self) -> None:
        self.sent: list[OutgoingMessage] = []
        self.outcomes: list[MessageId | PulsarError | None] = []
        self.closed = False

    def before_send(self, topic: TopicName, message: OutgoingMessage) -> OutgoingMessage:
        self.sent.append(message)
        return message

    def on_send_acknowledgement(
        self,
        topic: TopicName,
        message: OutgoingMessage,
        message_id: MessageId | None,
        error: PulsarError | None,
    ) -> None:
        self.outcomes.append(message_id or error)

    def close(self) -> None:
        self.closed = True


# --- room --------------------------------------------------------------------------------------------


async def test_it_may_fail_at_once_where_there_is_no_room() -> None:
    """Rule CFG-106."""
    async with (
        open_proxy() as proxy,
        open_client(proxy.url) as client,
        client.create_producer("t", max_pending_messages=3, when_full="fail") as producer,
    ):
        proxy.hold()
        for number in range(3):
            await producer.enqueue(b"%d" % number)
        with pytest.raises(ProducerQueueIsFull):
            await producer.enqueue(b"refused")
        with pytest.raises(ProducerQueueIsFull):
            await producer.send(b"refused")
        with pytest.raises(ProducerQueueIsFull):
            await producer.send_many([b"refused"])
        assert producer.statistics().waiting == 0
        proxy.release()
        await producer.flush()
        with pytest.raises(ProducerQueueIsFull):
            await producer.send_many([b"%d" % number for number in range(3, 100)])
        await producer.flush()
        received = await everything_on(client, "t")
        assert received[:6] == [b"%d" % number for number in range(6)]
        assert b"refused" not in received


async def test_another_word_for_it_is_refused(client: Client) -> None:
    with pytest.raises(InvalidConfiguration, match="when_full: one of 'wait', 'fail'"):
        async with client.create_producer("t", when_full="block"):  # type: ignore[call-overload]
            pass


async def test_producers_share_the_clients_memory_and_wait_for_it(broker: EmbeddedBroker) -> None:
    """Each message of one producer lets one of another go; all arrive, in the order of each producer."""
    async with (
        open_client(broker.url, memory_limit=1000) as client,
        client.create_producer("a", batching=None) as one,
        client.create_producer("b", batching=BatchingPolicy(max_messages=4)) as two,
        client.create_producer("c", batching=BatchingPolicy(max_messages=9, by_key=True)) as three,
    ):
        producers = {"a": one, "b": two, "c": three}

        async def send_all(topic: str) -> None:
            for number in range(40):
                await producers[topic].enqueue(b"%d" % number + bytes(350), key=str(number % 2))

        with trio.fail_after(PATIENCE):
            async with trio.open_nursery() as nursery:
                for topic in producers:
                    nursery.start_soon(send_all, topic)
            for producer in producers.values():
                await producer.flush()
        for topic in ("a", "b"):
            received = await everything_on(client, topic)
            assert received == [b"%d" % number + bytes(350) for number in range(40)]
        assert sorted(await everything_on(client, "c")) == sorted(received)
        assert client.statistics().memory_held == 0


async def test_a_cancelled_wait_for_memory_holds_up_no_other_task() -> None:
    """BUG-084."""
    async with (
        open_proxy() as proxy,
        open_client(proxy.url, memory_limit=100) as client,
        client.create_producer("a", batching=None) as one,
        client.create_producer("b", batching=None) as two,
    ):
        proxy.hold()
        await one.enqueue(bytes(100))
        assert client.statistics().memory_held == 100
        with pytest.raises(MemoryBufferIsFull):
            two.enqueue_nowait(b"1")
        with trio.move_on_after(0.05):
            await two.enqueue(bytes(100))
        async with trio.open_nursery() as nursery:
            nursery.start_soon(one.enqueue, bytes(60))
            await trio.testing.wait_all_tasks_blocked()
            proxy.release()
        with trio.fail_after(PATIENCE):
            await one.flush()
            await two.send(bytes(100))
        assert client.statistics().memory_held == 0


# --- delays ------------------------------------------------------------------------------------------


async def test_deliver_after_is_a_time_of_the_wall_clock(client: Client) -> None:
    """Rule GAP-26."""
    book = Book()
    async with client.create_producer("t", interceptors=(book,)) as producer:
        await producer.send(b"later", deliver_after=90.5)
        await producer.send(b"at once", deliver_after=0)
    later, at_once = [message.deliver_at or 0 for message in book.sent]
    assert abs(later - time.time() * 1000 - 90_500) < 20_000
    assert abs(at_once - time.time() * 1000) < 20_000


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"deliver_after": -1}, "deliver_after: a timedelta or seconds from 0 to 315360000, not -1"),
        ({"deliver_after": 1e9}, "deliver_after: a timedelta or seconds from 0 to 315360000"),
        ({"deliver_after": float("nan")}, "deliver_after"),
        ({"deliver_after": "1s"}, "deliver_after"),
        ({"deliver_after": True}, "deliver_after"),
        ({"deliver_after": 1, "deliver_at": 5}, "deliver_after: not together with deliver_at"),
        ({"deliver_at": -1}, "deliver_at"),
        ({"sequence_id": -1}, "sequence_id"),
        ({"sequence_id": 2**63}, "sequence_id"),
        ({"event_time": 2**63}, "event_time"),
        ({"properties": {"a": 1}}, "properties"),
        ({"replicate_to": "us-west"}, "replicate_to"),
    ],
)
async def test_wrong_fields_are_refused_before_anything_is_sent(
    client: Client, fields: dict[str, Any], text: str
) -> None:
    async with client.create_producer("t", batching=SLOW) as producer:
        for call in (producer.send, producer.enqueue):
            with pytest.raises(InvalidMessage, match=text):
                await call(b"x", **fields)
        with pytest.raises(InvalidMessage, match=text):
            producer.enqueue_nowait(b"x", **fields)
        assert producer.statistics().pending == 0


# --- interceptors ------------------------------------------------------------------------------------


async def test_interceptors_see_every_way_of_sending(client: Client) -> None:
    book = Book()
    async with client.create_producer("t", interceptors=(book,), max_pending_messages=3) as producer:
        await producer.send(b"0")
        await producer.enqueue(b"1", key="k")
        producer.enqueue_nowait(b"2")
        ids = await producer.send_many([b"%d" % number for number in range(3, 20)])
        assert len(ids) == 17
    assert [message.payload for message in book.sent] == [b"%d" % number for number in range(20)]
    assert len(book.outcomes) == 20
    assert all(isinstance(outcome, MessageId) for outcome in book.outcomes)
    assert book.closed
    assert await everything_on(client, "t") == [b"%d" % number for number in range(20)]


async def test_a_wrong_one_of_many_is_shown_once(client: Client) -> None:
    book = Book()
    async with client.create_producer("t", interceptors=(book,), batching=None) as producer:
        with pytest.raises(InvalidMessage):
            await producer.send_many([b"1", bytes(6_000_000), b"3"])
        with pytest.raises(InvalidMessage):
            await producer.send_many([bytes(6_000_000), b"5"])
    assert [len(message.payload or b"") for message in book.sent] == [1, 6_000_000, 1, 6_000_000]
    assert len(book.outcomes) == 4
    assert await everything_on(client, "t") == [b"1", b"3"]


async def test_a_failing_interceptor_is_logged(client: Client, caplog: pytest.LogCaptureFixture) -> None:
    class Breaks(ProducerInterceptor):
        def before_send(self, topic: TopicName, message: OutgoingMessage) -> OutgoingMessage:
            raise ValueError("on purpose")

    async with client.create_producer("t", interceptors=(Breaks(),)) as producer:
        await producer.send(b"1")
    assert await everything_on(client, "t") == [b"1"]
    (record,) = caplog.records
    assert "Breaks" in record.getMessage()
    assert record.exc_info is not None
    assert isinstance(record.exc_info[1], ValueError)


# --- statistics --------------------------------------------------------------------------------------


async def test_statistics(client: Client) -> None:
    async with client.create_producer("t", batching=SLOW) as producer:
        for number in range(10):
            await producer.enqueue(b"%d" % number)
        found = producer.statistics()
        assert (found.pending, found.pending_bytes, found.messages_sent) == (10, 10, 0)
        await producer.flush()
        found = producer.statistics()
        assert (found.confirmed, found.failed, found.pending) == (10, 0, 0)
        assert (found.messages_sent, found.bytes_sent) == (10, 10)
        assert (found.batches, found.batched_messages) == (1, 10)
        assert found.latency is not None
        assert 0 < found.latency.p50 <= found.latency.p99 <= found.latency.maximum < 5
    assert producer.statistics() == found
