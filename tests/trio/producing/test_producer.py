"""Sending: order, receipts, the window, and what a cancellation leaves behind."""

import time
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from typing import Any

import pytest
import trio
import trio.testing

from pulsar_sansio import (
    InvalidMessage,
    MessageTooLarge,
    ProducerBusy,
    ProducerQueueIsFull,
    TimedOut,
)
from pulsar_trio import (
    BatchingPolicy,
    Client,
    EmbeddedBroker,
    MessageId,
    OutgoingMessage,
    Producer,
    Receipt,
    ResourceClosed,
    open_client,
)
from tests.trio.proxy import open_proxy

SLOW = BatchingPolicy(max_messages=1000, max_delay=30.0)
"""A batch that nothing fills: what is enqueued stays in the window until it is flushed."""


async def everything_on(client: Client, topic: str) -> list[bytes]:
    """All payloads of a topic, from the first."""
    async with (
        client.subscribe(topic, "all", "exclusive", initial_position="earliest") as consumer,
        client.create_producer(topic) as producer,
    ):
        await producer.send(b"the end")
        payloads: list[bytes] = []
        async for message in consumer:
            if message.data == b"the end":
                return payloads
            payloads.append(message.data)
        raise AssertionError("the topic ended")


async def test_send_gives_the_message_id(client: Client) -> None:
    async with client.create_producer("t") as producer:
        first = await producer.send(b"1")
        second = await producer.send(b"2", key="k", properties={"a": "b"}, event_time=5)
        assert isinstance(first, MessageId)
        assert first < second
        assert producer.topic == "persistent://public/default/t"
        assert producer.name.startswith("standalone-")
        assert producer.last_sequence_id == 1
        assert producer.connected
    assert await everything_on(client, "t") == [b"1", b"2"]


@pytest.mark.breaks("INV-P6", why="sequence ids of the application, in any order")
async def test_everything_said_of_a_message_arrives(client: Client) -> None:
    async with (
        client.subscribe("t", "s", "exclusive") as consumer,
        client.create_producer("t") as producer,
    ):
        await producer.send(
            b"1", key="k", properties={"a": "b"}, ordering_key=b"o", event_time=5, sequence_id=7
        )
        await producer.send(OutgoingMessage(None, key="gone"))
        message = await consumer.receive()
        assert (message.value, message.key, message.properties) == (b"1", "k", {"a": "b"})
        assert (message.ordering_key, message.event_time, message.sequence_id) == (b"o", 5, 7)
        assert message.producer_name == producer.name
        assert abs(message.publish_time / 1000 - time.time()) < 60
        message = await consumer.receive()
        assert (message.value, message.key) == (None, "gone")


async def test_receipts_are_settled_by_the_batch(client: Client) -> None:
    async with client.create_producer("t", batching=SLOW) as producer:
        receipts = [await producer.enqueue(b"%d" % number) for number in range(10)]
        assert not any(receipt.done() for receipt in receipts)
        with pytest.raises(trio.WouldBlock):
            receipts[0].result()
        assert producer.statistics().pending == 10
        await producer.flush()
        assert all(receipt.done() for receipt in receipts)
        ids = [receipt.result() for receipt in receipts]
        assert [message_id.batch_index for message_id in ids] == list(range(10))
        assert ids == [await receipt.wait() for receipt in receipts]
        assert producer.statistics().confirmed == 10
        assert "done" in repr(receipts[0])


async def test_send_does_not_wait_for_a_batch_to_fill(client: Client) -> None:
    """Rule PROD-28."""
    async with client.create_producer("t", batching=SLOW) as producer:
        with trio.fail_after(25):
            await producer.send(b"alone")
            async with trio.open_nursery() as nursery:
                for number in range(20):
                    nursery.start_soon(producer.send, b"%d" % number)


async def test_an_open_batch_is_sent_after_its_delay(
    autojump_clock: trio.testing.MockClock, client: Client
) -> None:
    async with client.create_producer("t", batching=BatchingPolicy(max_delay=2.0)) as producer:
        for _ in range(3):
            began = trio.current_time()
            receipt = await producer.enqueue(b"1")
            await trio.sleep(1.0)
            later = await producer.enqueue(b"2")
            assert not receipt.done()
            await later.wait()
            assert trio.current_time() - began == pytest.approx(2.0, abs=0.01)


async def test_send_many_keeps_the_order_and_gives_all_ids(client: Client) -> None:
    expected = [b"%d" % number for number in range(3000)]
    async with client.create_producer("t", max_pending_messages=700) as producer:
        ids = await producer.send_many(iter(expected))
        assert len(ids) == len(list(ids)) == 3000
        assert list(ids) == sorted(ids) == [ids[number] for number in range(3000)]
        assert ids[-1] == ids[2999] == max(ids)
        assert ids[10:13] == [ids[10], ids[11], ids[12]]
        with pytest.raises(IndexError):
            ids[3000]
        assert "3000" in repr(ids)
        assert list(await producer.send_many([])) == []
    assert await everything_on(client, "t") == expected


async def test_send_many_from_several_tasks_keeps_the_order_of_each(client: Client) -> None:
    async with (
        client.create_producer("t", max_pending_messages=100) as producer,
        trio.open_nursery() as nursery,
    ):
        for task in range(4):
            nursery.start_soon(producer.send_many, [b"%d %d" % (task, number) for number in range(500)])
    received = await everything_on(client, "t")
    for task in range(4):
        mine = [payload for payload in received if payload.startswith(b"%d " % task)]
        assert mine == [b"%d %d" % (task, number) for number in range(500)]


async def test_send_many_sends_what_came_before_a_wrong_message(client: Client) -> None:
    async with client.create_producer("t") as producer:
        wrong: list[bytes | OutgoingMessage] = [b"1", b"2", "text", b"3"]  # type: ignore[list-item]
        with pytest.raises(InvalidMessage):
            await producer.send_many(wrong)
    assert await everything_on(client, "t") == [b"1", b"2"]


async def test_send_many_sends_what_it_took_before_the_iterable_raised(client: Client) -> None:
    def breaking() -> Iterator[bytes]:
        for number in range(200):
            yield b"%d" % number
        raise KeyError("mine")

    async with client.create_producer("t") as producer:
        with pytest.raises(KeyError, match="mine"):
            await producer.send_many(breaking())
    assert await everything_on(client, "t") == [b"%d" % number for number in range(200)]


async def test_a_full_window_makes_enqueue_wait_and_enqueue_nowait_raise() -> None:
    async with (
        open_proxy() as proxy,
        open_client(proxy.url) as client,
        client.create_producer("t", max_pending_messages=3) as producer,
    ):
        proxy.hold()
        for number in range(3):
            producer.enqueue_nowait(b"%d" % number)
        with pytest.raises(ProducerQueueIsFull):
            producer.enqueue_nowait(b"3")
        async with trio.open_nursery() as nursery:
            for number in range(3, 8):
                nursery.start_soon(producer.enqueue, b"%d" % number)
                await trio.testing.wait_all_tasks_blocked()
            assert producer.statistics().waiting == 5
            with pytest.raises(ProducerQueueIsFull, match="wait"):
                producer.enqueue_nowait(b"overtaking")
            proxy.release()
        await producer.flush()
        assert await everything_on(client, "t") == [b"%d" % number for number in range(8)]


@pytest.mark.parametrize("steps", range(12))
async def test_a_cancelled_enqueue_either_happened_or_did_not(client: Client, steps: int) -> None:
    """Cancelled at any moment: a message whose enqueue returned is sent, any other is not, all in order."""
    returned: list[bytes] = []
    async with client.create_producer("t", batching=None, max_pending_messages=2) as producer:

        async def enqueue_all(scope: trio.CancelScope) -> None:
            with scope:
                for number in range(30):
                    await producer.enqueue(b"%d" % number)
                    returned.append(b"%d" % number)

        async with trio.open_nursery() as nursery:
            scope = trio.CancelScope()
            nursery.start_soon(enqueue_all, scope)
            for _ in range(steps):
                await trio.lowlevel.checkpoint()
            scope.cancel()
        await producer.send(b"after")
    assert await everything_on(client, "t") == [*returned, b"after"]


@pytest.mark.parametrize("steps", range(8))
async def test_a_cancelled_wait_only_stops_waiting(client: Client, steps: int) -> None:
    """Rule CLIENT-07."""
    async with client.create_producer("t", batching=SLOW) as producer:
        receipt = await producer.enqueue(b"1")

        async def wait(scope: trio.CancelScope) -> None:
            with scope:
                await receipt.wait()

        async with trio.open_nursery() as nursery:
            scopes = [trio.CancelScope() for _ in range(2)]
            for scope in scopes:
                nursery.start_soon(wait, scope)
            nursery.start_soon(producer.flush)
            for _ in range(steps):
                await trio.lowlevel.checkpoint()
            scopes[0].cancel()
        assert receipt.done()
        assert await receipt.wait() == receipt.result()
    assert await everything_on(client, "t") == [b"1"]


@pytest.mark.parametrize("steps", range(14))
async def test_a_cancelled_send_is_sent_once_or_not_at_all(client: Client, steps: int) -> None:
    confirmed: list[bytes] = []
    async with client.create_producer("t", max_pending_messages=2) as producer:

        async def send(scope: trio.CancelScope) -> None:
            with scope:
                for number in range(10):
                    await producer.send(b"%d" % number)
                    confirmed.append(b"%d" % number)

        async with trio.open_nursery() as nursery:
            scope = trio.CancelScope()
            nursery.start_soon(send, scope)
            for _ in range(steps):
                await trio.lowlevel.checkpoint()
            scope.cancel()
        await producer.send(b"after")
    received = await everything_on(client, "t")
    assert received.pop() == b"after"
    assert received in (confirmed, [*confirmed, b"%d" % len(confirmed)])


@pytest.mark.parametrize("steps", range(14))
async def test_a_cancelled_close_closes_all_the_same(client: Client, steps: int) -> None:
    async with client.create_producer("t", name="mine", batching=SLOW) as producer:
        receipt = await producer.enqueue(b"1")

        async def close(scope: trio.CancelScope) -> None:
            with scope:
                await producer.aclose()

        async with trio.open_nursery() as nursery:
            scope = trio.CancelScope()
            nursery.start_soon(close, scope)
            for _ in range(steps):
                await trio.lowlevel.checkpoint()
            scope.cancel()
        with pytest.raises(ResourceClosed):
            await producer.send(b"2")
        assert receipt.done()
    with trio.fail_after(25):
        async with client.create_producer("t", name="mine"):
            pass
    assert await everything_on(client, "t") in ([], [b"1"])


@pytest.mark.parametrize("steps", range(10))
async def test_a_cancelled_send_many_leaves_a_prefix(client: Client, steps: int) -> None:
    expected = [b"%d" % number for number in range(1000)]
    async with client.create_producer("t", max_pending_messages=150) as producer:
        async with trio.open_nursery() as nursery:

            async def send(scope: trio.CancelScope) -> None:
                with scope:
                    await producer.send_many(expected)

            scope = trio.CancelScope()
            nursery.start_soon(send, scope)
            for _ in range(steps):
                await trio.lowlevel.checkpoint()
            scope.cancel()
        await producer.flush()
    received = await everything_on(client, "t")
    assert received == expected[: len(received)]


async def test_a_cancelled_flush_changes_nothing(client: Client) -> None:
    async with client.create_producer("t", batching=SLOW) as producer:
        receipt = await producer.enqueue(b"1")
        with trio.CancelScope() as scope:
            scope.cancel()
            await producer.flush()
        assert scope.cancelled_caught
        await receipt.wait()
    assert await everything_on(client, "t") == [b"1"]


async def test_closing_sends_and_confirms_first(client: Client) -> None:
    async with client.create_producer("t", batching=SLOW) as producer:
        receipt = await producer.enqueue(b"1")
    assert receipt.done()
    assert receipt.result() == await receipt.wait()
    assert await everything_on(client, "t") == [b"1"]


async def test_a_closed_producer_says_so(client: Client) -> None:
    async with client.create_producer("t") as producer:
        await producer.aclose()
        await producer.aclose()
    assert not producer.connected
    for call in (producer.send, producer.enqueue):
        with pytest.raises(trio.ClosedResourceError) as raised:
            await call(b"1")
        assert isinstance(raised.value, ResourceClosed)
    with pytest.raises(ResourceClosed):
        producer.enqueue_nowait(b"1")
    with pytest.raises(ResourceClosed):
        await producer.send_many([b"1"])
    with pytest.raises(ResourceClosed):
        await producer.flush()
    assert "closed" in repr(producer)


async def test_closing_the_client_wakes_waiting_tasks() -> None:
    async with open_proxy() as proxy:
        with trio.CancelScope() as scope:
            async with (
                open_client(proxy.url) as client,
                client.create_producer("t", max_pending_messages=1) as producer,
            ):
                proxy.hold()
                receipt = producer.enqueue_nowait(b"1")

                async def wait(call: Callable[[], Awaitable[object]]) -> None:
                    with trio.CancelScope(shield=True), pytest.raises(ResourceClosed):
                        await call()

                async with trio.open_nursery() as nursery:
                    for call in (receipt.wait, producer.flush, partial(producer.enqueue, b"2")):
                        nursery.start_soon(wait, call)
                    await trio.testing.wait_all_tasks_blocked()
                    scope.cancel()
                    client._driver.shut()


async def test_a_message_that_is_wrong_or_too_large_changes_nothing(client: Client) -> None:
    async with client.create_producer("t", batching=None) as producer:
        with pytest.raises(MessageTooLarge, match=r"5242880|5 ?MiB"):
            await producer.send(bytes(5 * 1024 * 1024 + 1))
        with pytest.raises(InvalidMessage, match="bytes"):
            await producer.send("text")  # type: ignore[arg-type]
        with pytest.raises(InvalidMessage, match="key"):
            await producer.send(b"1", key=5)  # type: ignore[arg-type]
        with pytest.raises(InvalidMessage, match="OutgoingMessage"):
            await producer.send(OutgoingMessage(b"1"), key="k")
        await producer.send(b"good")
    assert await everything_on(client, "t") == [b"good"]


async def test_large_messages_pass_through(client: Client) -> None:
    payloads = [bytes([number]) * 3_000_000 for number in range(4)]
    async with client.create_producer("t", batching=None) as producer:
        await producer.send_many(payloads)
    assert await everything_on(client, "t") == payloads


async def test_enqueue_yields_now_and_then(client: Client) -> None:
    """Rule 1 of the API: at least one checkpoint in 64 messages, although there is room for all of them."""
    async with client.create_producer("t", batching=SLOW) as producer:
        for _ in range(3):
            with trio.CancelScope() as scope:
                scope.cancel()
                for _ in range(65):
                    await producer.enqueue(b"1")
            assert scope.cancelled_caught


async def test_options_are_checked_when_entering(broker: EmbeddedBroker) -> None:
    async with open_client(broker.url) as client:
        for options, words in (
            ({"max_pending_messages": 0}, "max_pending_messages"),
            ({"compression": "rar"}, "'none', 'lz4', 'zlib', 'zstd', 'snappy'"),
            ({"batching_delay": 3}, "batching"),
        ):
            with pytest.raises(ValueError, match=words):
                await client.create_producer("t", **options).__aenter__()


async def test_the_name_of_another_producer_is_refused(client: Client) -> None:
    async with client.create_producer("t", name="me"):
        with pytest.raises(ProducerBusy):
            await client.create_producer("t", name="me").__aenter__()


@pytest.mark.parametrize("compression", ["none", "lz4", "zlib", "zstd", "snappy"])
async def test_codecs_by_their_names(client: Client, compression: Any) -> None:
    async with client.create_producer("t", compression=compression) as producer:
        await producer.send_many([b"a" * 1000] * 5)
    assert await everything_on(client, "t") == [b"a" * 1000] * 5


async def test_statistics_and_repr(client: Client) -> None:
    async with client.create_producer("t", name="me") as producer:
        assert isinstance(producer, Producer)
        await producer.send(b"1")
        statistics = producer.statistics()
        assert (statistics.confirmed, statistics.failed, statistics.pending) == (1, 0, 0)
        assert repr(producer) == "<Producer 'me' of persistent://public/default/t, connected>"
        assert client.statistics().producers == 1
        assert client.statistics().bytes_sent > 100


async def test_a_push_that_comes_after_closing_has_begun_changes_nothing(client: Client) -> None:
    """One task sends in the moment in which another one closes the producer."""
    async with client.create_producer("t") as producer:
        client._driver.push_soon(producer._handle)
        await producer.aclose()
    assert len(await client.partitions("t")) == 0


async def test_a_producer_whose_last_message_fails_is_closed_all_the_same() -> None:
    """At the broker, too: its name is free again."""
    async with open_proxy() as proxy, open_client(proxy.url) as client, trio.open_nursery() as nursery:

        async def let_go(receipt: Receipt) -> None:
            with pytest.raises(TimedOut):
                await receipt.wait()
            proxy.release()

        async with client.create_producer("t", name="mine", send_timeout=0.1) as producer:
            proxy.hold()
            nursery.start_soon(let_go, await producer.enqueue(b"1"))
        async with client.create_producer("t", name="mine"):
            assert client.statistics().producers == 1


async def test_a_flush_raises_what_a_message_failed_with() -> None:
    async with open_proxy() as proxy, open_client(proxy.url) as client:
        async with client.create_producer("t", send_timeout=0.1) as producer:
            proxy.hold()
            receipt = await producer.enqueue(b"1")
            with pytest.raises(TimedOut):
                await producer.flush()
            assert receipt.done()
            proxy.release()
