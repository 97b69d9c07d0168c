"""A broker over a store that blocks: receipts wait for it, the event loop does not, nothing is left out."""

import threading
from collections.abc import Sequence
from pathlib import Path

import pytest
import trio
import trio.testing

from pulsar_sansio import MemoryStore, PulsarError
from pulsar_sansio import broker_records as records
from pulsar_sansio.broker.topics.topic import Topic
from pulsar_store import StoreInUse, StoreNotWritable
from pulsar_trio import SqliteStore, StoreFailed, open_broker, open_client
from tests.patience import PATIENCE
from tests.trio.waiting import until

HOST = b" HTTP/1.1\r\nHost: localhost\r\n"
TOPIC = "persistent://public/default/t"


class SlowStore(MemoryStore):
    """Writes when the test lets it, in the thread that calls it."""

    blocking = True

    def __init__(self) -> None:
        super().__init__()
        self.allowed = threading.Semaphore(1)  # the broker's first write
        self.wanted = 0
        self.done = 0
        self.threads: set[int] = set()
        self.failure: Exception | None = None
        self.closed = 0

    def write(self, batch: Sequence[records.Record]) -> None:
        self.wanted += 1
        assert self.allowed.acquire(timeout=PATIENCE)
        self.threads.add(threading.get_ident())
        if self.failure is not None:
            raise self.failure
        super().write(batch)
        self.done += 1

    def forbid(self) -> None:
        while self.allowed.acquire(blocking=False):
            pass

    def allow(self, writes: int = 1000) -> None:
        self.allowed.release(writes)

    def close(self) -> None:
        self.closed += 1


async def test_a_receipt_waits_for_the_store() -> None:
    store = SlowStore()
    async with open_broker(store=store) as broker:
        port = broker.port
        store.allow(20)
        async with open_client(broker.url) as client, client.create_producer("t") as producer:
            await producer.send(b"1")
            store.forbid()
            receipt = await producer.enqueue(b"2")
            await until(lambda: store.wanted > store.done)
            await trio.sleep(0.1)
            assert not receipt.done()
            store.allow()
            with trio.fail_after(PATIENCE):
                await receipt.wait()
        assert threading.get_ident() not in store.threads
    assert store.closed == 1
    async with open_broker(port, store=store) as broker:
        assert broker.stats(TOPIC)["subscriptions"] == {}


async def test_records_gather_while_a_write_is_outstanding() -> None:
    """One write has what many producers sent meanwhile."""
    store = SlowStore()
    async with open_broker(store=store) as broker, open_client(broker.url) as client:
        store.allow(30)
        async with client.create_producer("t", batching=None) as producer:
            await producer.send(b"first")
            store.forbid()
            before = store.wanted
            receipts = [await producer.enqueue(b"%d" % number) for number in range(100)]
            topic = broker._driver.machine.topics.by_name[TOPIC]
            assert isinstance(topic, Topic)
            await until(lambda: topic.log.end == 101)
            store.allow()
            for receipt in receipts:
                await receipt.wait()
            assert store.wanted - before <= 2


async def test_flush_waits_for_what_commands_changed() -> None:
    store = SlowStore()
    async with open_broker(store=store) as broker:
        broker.create_tenant("one")
        broker.create_tenant("two")  # is in the write after the one of the first
        async with trio.open_nursery() as nursery:
            done = trio.Event()

            async def flush() -> None:
                await broker.flush()
                done.set()

            nursery.start_soon(flush)
            await trio.testing.wait_all_tasks_blocked(0.01)
            store.allow(1)
            await until(lambda: store.wanted == 3)
            assert not done.is_set()
            store.allow()
            with trio.fail_after(PATIENCE):
                await done.wait()
        assert {"one", "two"} <= store.load().tenants.keys()
        await broker.flush()  # nothing is outstanding


async def test_a_change_over_http_is_answered_when_it_is_stored_and_others_at_once() -> None:
    store = SlowStore()
    async with open_broker(store=store, http_port=0) as broker:
        assert broker.http_port is not None
        async with await trio.open_tcp_stream("127.0.0.1", broker.http_port) as stream:
            path = b"/admin/v2/persistent/public/default"
            await stream.send_all(b"PUT " + path + b"/new" + HOST + b"\r\n")
            with trio.move_on_after(0.2) as waited:
                await stream.receive_some()
            assert waited.cancelled_caught
            async with await trio.open_tcp_stream("127.0.0.1", broker.http_port) as other:
                await other.send_all(b"GET " + path + HOST + b"\r\n")
                with trio.fail_after(PATIENCE):
                    assert b"200" in await other.receive_some()
            store.allow()
            with trio.fail_after(PATIENCE):
                assert b" 204 " in await stream.receive_some()
            assert "persistent://public/default/new" in store.load().topics


async def test_leaving_the_block_writes_all_that_is_left() -> None:
    """The block is cancelled while a write is outstanding."""
    store = SlowStore()
    with trio.CancelScope() as scope:
        async with open_broker(store=store) as broker:
            broker.create_tenant("one")
            broker.create_tenant("two")
            await until(lambda: store.wanted == 2)
            threading.Timer(0.05, store.allow).start()
            scope.cancel()
            await trio.sleep_forever()
    assert {"one", "two"} <= store.load().tenants.keys()
    assert store.closed == 1


async def test_positions_that_were_not_confirmed_are_written_at_the_end(tmp_path: Path) -> None:
    async with open_broker(store=SqliteStore(tmp_path), cursor_flush_interval=3600.0) as broker:
        async with open_client(broker.url) as client, client.subscribe("t", "s") as consumer:
            async with client.create_producer("t", batching=None) as producer:
                await producer.send_many([b"1", b"2", b"3"])
            consumer.acknowledge(await consumer.receive())
            await consumer.flush()
            await until(lambda: broker.stats(TOPIC)["subscriptions"]["s"]["msgBacklog"] == 2)
    async with open_broker(store=SqliteStore(tmp_path)) as broker:
        assert broker.stats(TOPIC)["subscriptions"]["s"]["msgBacklog"] == 2


async def test_a_store_that_fails_ends_the_broker_without_a_receipt() -> None:
    store = SlowStore()
    store.allow(20)
    with pytest.raises(StoreFailed, match="no space left"):
        async with open_broker(store=store) as broker:
            async with open_client(broker.url, operation_timeout=0.2) as client:
                async with client.create_producer("t", send_timeout=0.2) as producer:
                    store.failure = OSError("no space left")
                    with pytest.raises(PulsarError):
                        await producer.send(b"1")
            with pytest.raises(StoreFailed):
                await broker.flush()
            with pytest.raises(StoreFailed):
                broker.create_tenant("late")
            await broker.wait_failed()
    assert store.closed == 1
    ledgers = store.load().topics[TOPIC].ledgers.values()
    assert [ledger.entries for ledger in ledgers] == [[]]


async def test_a_store_that_fails_at_the_start_or_at_the_end() -> None:
    store = SlowStore()
    store.failure = OSError("no space left")
    with pytest.raises(StoreFailed, match="no space left"):
        async with open_broker(store=store):
            raise AssertionError("the broker has not stored its start")
    store = SlowStore()
    with pytest.raises(StoreFailed, match="no space left"):
        async with open_broker(store=store) as broker:
            broker.create_tenant("late")
            store.failure = OSError("no space left")
            store.allow()


async def test_a_flush_that_waits_ends_when_the_store_fails() -> None:
    store = SlowStore()
    with pytest.raises(StoreFailed):
        async with open_broker(store=store) as broker:
            broker.create_tenant("one")
            threading.Timer(0.05, store.allow).start()
            store.failure = OSError("no space left")
            with pytest.raises(StoreFailed, match="no space left"), trio.fail_after(PATIENCE):
                await broker.flush()


async def test_a_flush_of_a_closed_broker_is_an_error_where_a_change_is_not_stored() -> None:
    store = SlowStore()
    store.allow()
    async with open_broker(store=store) as broker:
        broker.create_tenant("one")
    await broker.flush()
    broker.create_tenant("late")
    with pytest.raises(trio.ClosedResourceError), trio.fail_after(PATIENCE):
        await broker.flush()
    assert "late" not in store.load().tenants


async def test_a_broker_on_disk_comes_back_on_its_port(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path)
    async with open_broker(store=store) as broker, open_client(broker.url) as client:
        port = broker.port
        async with client.subscribe("t", "s") as consumer:
            async with client.create_producer("t", batching=None) as producer:
                await producer.send_many([b"1", b"2", b"3"])
            consumer.acknowledge(await consumer.receive())
            await consumer.flush()
    async with open_broker(port, store=store) as broker, open_client(broker.url) as client:
        async with client.subscribe("t", "s") as consumer:
            assert [(await consumer.receive()).data for _ in range(2)] == [b"2", b"3"]


async def test_a_store_that_cannot_be_loaded_is_the_error_of_open_broker(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreNotWritable):
        async with open_broker(store=SqliteStore(tmp_path / "file")):
            pass
    async with open_broker(store=SqliteStore(tmp_path / "data")):
        with pytest.raises(StoreInUse):
            async with open_broker(store=SqliteStore(tmp_path / "data")):
                pass
    async with open_broker(store=SqliteStore(tmp_path / "data")):
        pass
