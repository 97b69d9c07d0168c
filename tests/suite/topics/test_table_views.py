"""Table views: the last value of every key, of one topic or many, from the beginning and as it changes."""

from collections.abc import Sized
from functools import partial

import pytest
import trio
import trio.testing

from pulsar_sansio import TableViewTooLarge
from pulsar_trio import BatchingPolicy, Client, OutgoingMessage, ResourceClosed, TableView
from tests.suite.brokers import BrokerUnderTest
from tests.suite.helpers import Interruption, cut, grow, unload, until
from tests.suite.line import Line
from tests.suite.topics.test_compaction import compact, keyed


async def test_what_is_there_and_what_comes(client: Client, topic: str) -> None:
    async with client.create_producer(topic, batching=None) as producer:
        await producer.send_many([keyed("a", b"1"), keyed("b", b"2"), keyed(None, b"3"), keyed("c", b"4")])
        await producer.send_many([keyed("c", None)])
        async with client.create_table_view(topic) as view:
            assert dict(view) == {"a": b"1", "b": b"2"}
            assert len(view) == 2
            assert view["a"] == b"1"
            assert view.get("c") is None
            assert "c" not in view
            snapshot = view.snapshot()
            await producer.send_many([keyed("a", b"3"), keyed("b", None), keyed("d", b"5")])
            await view.refresh()
            assert dict(view) == {"a": b"3", "d": b"5"}
            assert snapshot == {"a": b"1", "b": b"2"}
        assert dict(view) == {"a": b"3", "d": b"5"}
        with pytest.raises(ResourceClosed):
            await view.refresh()


async def test_of_an_empty_topic(client: Client, topic: str) -> None:
    async with client.create_table_view(topic) as view:
        assert dict(view) == {}
        await view.refresh()


@pytest.mark.parametrize("batched", [False, True], ids=["singles", "batches"])
async def test_of_a_compacted_topic(
    broker: BrokerUnderTest, client: Client, topic: str, batched: bool
) -> None:
    batching = BatchingPolicy(max_messages=7, max_delay=0.01) if batched else None
    async with client.create_producer(topic, batching=batching) as producer:
        await producer.send_many([keyed(f"k{number % 10}", b"%d" % number) for number in range(100)])
        await producer.send_many([keyed("k9", None), keyed("k3", None)])
        await compact(broker, topic)
        await producer.send_many([keyed("k0", b"new")])
        async with client.create_table_view(topic) as view:
            expected = {f"k{number}": b"%d" % (90 + number) for number in range(9) if number != 3}
            assert dict(view) == {**expected, "k0": b"new"}


async def test_of_partitions_and_several_topics(broker: BrokerUnderTest, client: Client, topic: str) -> None:
    await broker.create_partitioned_topic(topic, 3)
    other = f"{topic}-other"
    async with client.create_producer(topic) as producer, client.create_producer(other) as more:
        await producer.send_many([keyed(f"k{number}", b"%d" % number) for number in range(30)])
        await more.send_many([keyed("x", b"1")])
        async with client.create_table_view([topic, other]) as view:
            assert dict(view) == {**{f"k{number}": b"%d" % number for number in range(30)}, "x": b"1"}
            await more.send_many([keyed("x", b"2")])
            await view.refresh()
            assert view["x"] == b"2"


async def test_of_partitions_that_come(broker: BrokerUnderTest, client: Client, topic: str) -> None:
    await broker.create_partitioned_topic(topic, 1)
    async with client.create_table_view(topic, partitions_update_interval=0.2) as view:
        await grow(broker, topic, 3)
        async with client.create_producer(topic) as producer:
            await producer.send_many([keyed(f"k{number}", b"%d" % number) for number in range(30)])
        await until(partial(_has, view, 30))
        assert dict(view) == {f"k{number}": b"%d" % number for number in range(30)}


async def test_changes(client: Client, topic: str) -> None:
    async with (
        client.create_producer(topic, batching=None) as producer,
        client.create_table_view(topic) as view,
        trio.open_nursery() as nursery,
    ):
        seen: list[tuple[str, bytes | None]] = []
        nursery.start_soon(_listen, view, seen)
        await trio.testing.wait_all_tasks_blocked(0.01)
        await producer.send_many([keyed("a", b"1"), keyed("b", b"2")])
        await until(partial(_has, seen, 2))
        await producer.send_many([keyed("a", None)])
        await until(partial(_has, seen, 3))
        assert seen == [("a", b"1"), ("b", b"2"), ("a", None)]
        nursery.cancel_scope.cancel()


async def _has(seen: Sized, count: int) -> bool:
    return len(seen) >= count


async def _listen(view: TableView, seen: list[tuple[str, bytes | None]]) -> None:
    async for change in view.changes():
        seen.append(change)


async def test_too_large(client: Client, topic: str) -> None:
    async with client.create_producer(topic) as producer:
        await producer.send_many([OutgoingMessage(bytes(1000), key=f"k{number}") for number in range(20)])
        with pytest.raises(TableViewTooLarge, match="max_size"):
            async with client.create_table_view(topic, max_size=10_000):
                pass


@pytest.mark.parametrize("interrupt", [cut, unload])
async def test_over_interruptions(
    client_on_line: Client, line: Line, topic: str, interrupt: Interruption
) -> None:
    async with (
        client_on_line.create_producer(topic, batching=None) as producer,
        client_on_line.create_table_view(topic) as view,
    ):
        for part in range(3):
            await producer.send_many([keyed(f"k{number}", b"%d" % part) for number in range(20)])
            await interrupt(line, topic)
        await producer.send_many([keyed("last", b"1")])
        await view.refresh()
        assert dict(view) == {**{f"k{number}": b"2" for number in range(20)}, "last": b"1"}
