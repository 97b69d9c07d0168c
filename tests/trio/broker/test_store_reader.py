"""A broker over a store on disk reads back the entries that are not in memory."""

import sqlite3
from contextlib import suppress
from http.client import HTTPException
from pathlib import Path

import pytest
import trio

from pulsar_trio import SqliteStore, StoreFailed, open_client
from pulsar_trio.broker.embedded_broker import EmbeddedBroker
from pulsar_trio.broker.server import open_broker
from tests.real_pulsar.admin import Admin

TOPIC = "persistent://public/default/t"
PATH = "/admin/v2/persistent/public/default/t"
COUNT = 1_000
CACHE = 50_000
"""Bytes of memory for entries: an eighth of the test's."""


def held(broker: EmbeddedBroker) -> int:
    return broker._driver.machine.services.entry_cache.used


async def subscribe(url: str, *subscriptions: str) -> None:
    """Create subscriptions that receive all that follows."""
    async with open_client(url) as client:
        for subscription in subscriptions:
            async with client.subscribe(TOPIC, subscription, initial_position="earliest"):
                pass


async def publish(url: str, count: int = COUNT, first: int = 0) -> None:
    async with open_client(url) as client, client.create_producer(TOPIC, batching=None) as producer:
        await producer.send_many([b"%d" % number for number in range(first, first + count)])


async def test_a_backlog_is_read_back_in_order_also_after_a_restart(tmp_path: Path) -> None:
    async with open_broker(store=SqliteStore(tmp_path, sync="none"), entry_cache_bytes=CACHE) as broker:
        await subscribe(broker.url, "before", "after")
        await publish(broker.url)
        assert held(broker) <= CACHE
        await receive_all(broker, "before")
    async with open_broker(store=SqliteStore(tmp_path, sync="none"), entry_cache_bytes=CACHE) as broker:
        assert held(broker) == 0
        assert broker.stats(TOPIC)["subscriptions"]["after"]["msgBacklog"] == COUNT
        assert held(broker) == 0, "a look at stats needs no entry"
        await receive_all(broker, "after")


async def receive_all(broker: EmbeddedBroker, subscription: str) -> None:
    async with (
        open_client(broker.url) as client,
        client.subscribe(TOPIC, subscription, "exclusive", receiver_queue_size=100) as consumer,
    ):
        for number in range(COUNT):
            message = await consumer.receive()
            assert message.payload == b"%d" % number
            assert held(broker) <= CACHE
        consumer.acknowledge_cumulative(message)
        await consumer.flush()


async def test_an_entry_that_cannot_be_read_ends_the_broker(tmp_path: Path) -> None:
    async with open_broker(store=SqliteStore(tmp_path)) as broker:
        await subscribe(broker.url, "s")
        await publish(broker.url, 10)
    connection = sqlite3.connect(tmp_path / "broker.db", isolation_level=None)
    connection.execute("DELETE FROM entry WHERE id % 4294967296 = 5")
    connection.close()
    with pytest.raises(StoreFailed, match=f"cannot read.*entry 5 of ledger 0 is missing in {TOPIC}"):
        async with open_broker(store=SqliteStore(tmp_path)) as broker, open_client(broker.url) as client:
            async with client.subscribe(TOPIC, "s"):
                await broker.wait_failed()


@pytest.mark.parametrize(
    ("method", "path"), [("GET", f"{PATH}/ledger/0/entry/5"), ("PUT", f"{PATH}/compaction")]
)
async def test_an_entry_that_an_administrator_wants_and_cannot_be_read_ends_the_broker(
    method: str, path: str, tmp_path: Path
) -> None:
    async with open_broker(store=SqliteStore(tmp_path)) as broker:
        await publish(broker.url, 10)
    connection = sqlite3.connect(tmp_path / "broker.db", isolation_level=None)
    connection.execute("DELETE FROM entry WHERE id % 4294967296 = 5")
    connection.close()
    with pytest.raises(StoreFailed, match="cannot read"):
        async with open_broker(store=SqliteStore(tmp_path), http_port=0) as broker:
            assert broker.admin_url is not None
            admin = Admin("127.0.0.1", int(broker.admin_url.rpartition(":")[2]))
            with suppress(OSError, HTTPException):
                await trio.to_thread.run_sync(admin.exchange, method, path)
            await broker.wait_failed()


async def test_a_backlog_on_disk_may_be_larger_than_the_memory_for_messages(tmp_path: Path) -> None:
    """A broker that keeps all entries in memory closes the producer at this limit."""
    store = SqliteStore(tmp_path, sync="none")
    async with open_broker(store=store, max_stored_bytes=2 * CACHE) as broker:
        await subscribe(broker.url, "after")
        for first in range(0, COUNT, 50):
            await publish(broker.url, 50, first)
        assert held(broker) <= CACHE
        await receive_all(broker, "after")
