"""The broker behind sockets: ports, administration, what survives it, and how it ends."""

import errno
import logging
import socket
from typing import Any

import pytest
import trio
import trio.testing

from pulsar_sansio import LocalProtocolError, MemoryStore, MessageId
from pulsar_sansio.core.buffers import ReceiveBuffer
from pulsar_sansio.wire import FrameDecoder, MessageCommand, encode_command, encode_flow, proto
from pulsar_trio import EmbeddedBroker, open_broker, open_client, serve
from pulsar_trio.broker.server import BrokerDriver
from tests.patience import PATIENCE
from tests.trio.waiting import until


async def test_serve_runs_in_a_nursery_until_it_is_cancelled() -> None:
    async with trio.open_nursery() as nursery:
        broker: EmbeddedBroker = await nursery.start(serve, 0)
        assert broker.url == f"pulsar://127.0.0.1:{broker.port}"
        async with open_client(broker.url) as client, client.create_producer("t") as producer:
            await producer.send(b"1")
        nursery.cancel_scope.cancel()
    with pytest.raises(OSError):
        await trio.open_tcp_stream("127.0.0.1", broker.port)


async def test_a_broker_comes_back_on_its_port_with_what_was_stored() -> None:
    store = MemoryStore()
    async with open_broker(store=store) as broker:
        port = broker.port
        async with open_client(broker.url) as client, client.subscribe("t", "s") as consumer:
            async with client.create_producer("t", batching=None) as producer:
                await producer.send_many([b"1", b"2", b"3"])
                consumer.acknowledge(await consumer.receive())
                await consumer.flush()
    async with open_broker(port, store=store) as broker, open_client(broker.url) as client:
        async with client.subscribe("t", "s") as consumer:
            assert [(await consumer.receive()).data for _ in range(2)] == [b"2", b"3"]


async def test_clients_outlive_a_broker() -> None:
    """Killed and started again: what was in the window is sent, in order, and nothing confirmed is lost."""
    store = MemoryStore()
    async with trio.open_nursery() as nursery:
        broker: EmbeddedBroker
        first = trio.CancelScope()

        async def run(
            scope: trio.CancelScope, port: int, task_status: trio.TaskStatus[EmbeddedBroker]
        ) -> None:
            with scope:
                await serve(port, store=store, deduplication=True, task_status=task_status)
            ended.set()

        ended = trio.Event()
        broker = await nursery.start(run, first, 0)
        async with (
            open_client(broker.url, initial_backoff=0.01, max_backoff=0.05) as client,
            client.subscribe("t", "s", "exclusive") as consumer,
            client.create_producer("t", batching=None) as producer,
        ):
            await producer.send(b"0")
            first.cancel()
            await until(lambda: not producer.connected)
            await ended.wait()  # its port is free
            receipts = [await producer.enqueue(b"%d" % number) for number in range(1, 20)]
            assert not any(receipt.done() for receipt in receipts)
            second = trio.CancelScope()
            await nursery.start(run, second, broker.port)
            with trio.fail_after(PATIENCE):
                for receipt in receipts:
                    await receipt.wait()
                received: set[int] = set()
                while len(received) < 20:
                    received.add(int((await consumer.receive()).data))
            assert producer.connected
        second.cancel()


@pytest.mark.parametrize("host", ["localhost", "", "127.0.0.1"])
async def test_hosts_with_one_and_with_several_addresses(host: str) -> None:
    async with open_broker(
        host=host, service_url="pulsar://127.0.0.1:1", allow_unauthenticated=True
    ) as broker:
        stream = await trio.open_tcp_stream(broker.url.split("/")[2].rpartition(":")[0], broker.port)
        await stream.aclose()


async def test_administration(broker: EmbeddedBroker) -> None:
    broker.create_tenant("acme")
    broker.create_namespace("acme/orders")
    broker.set_policy("acme/orders", "deduplication", True)
    broker.create_topic("acme/orders/new")
    broker.create_partitioned_topic("acme/orders/many", 3)
    broker.update_partitions("acme/orders/many", 4)
    assert "persistent://acme/orders/many-partition-3" in broker.topics("acme/orders")
    async with open_client(broker.url) as client:
        assert len(await client.partitions("acme/orders/many")) == 4
        assert len(await client.partitions("acme/orders/new")) == 0
        async with client.create_producer("acme/orders/new") as producer:
            await producer.send(b"1")
            broker.unload("acme/orders/new")
            last = await producer.send(b"2")
            assert len(broker.stats("acme/orders/new")["publishers"]) == 1
            assert broker.terminate("acme/orders/new") == MessageId(last.ledger_id, last.entry_id)
        assert broker.internal_stats("acme/orders/new")["ledgers"]
    broker.delete_topic("acme/orders/new", force=True)
    assert "persistent://acme/orders/new" not in broker.topics("acme/orders")
    assert broker.topics() == []
    for wrong in (
        lambda: broker.create_tenant("acme"),
        lambda: broker.create_namespace("unknown/x"),
        lambda: broker.set_policy("acme/orders", "colour", "blue"),
        lambda: broker.delete_topic("nothing"),
        lambda: broker.stats("nothing"),
    ):
        with pytest.raises(LocalProtocolError):
            wrong()


async def test_a_broker_keeps_silent_connections_from_living_for_ever(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Its timers run on trio's clock."""
    async with open_broker(keepalive_interval=5.0) as broker:
        stream = await trio.open_tcp_stream("127.0.0.1", broker.port)
        async with stream:
            while await stream.receive_some(1000):
                pass
        assert 4 < trio.current_time() < 20


class Reader:
    """A consumer without any client: it subscribes, grants permits for everything, and reads when told to."""

    def __init__(self, sock: trio.socket.SocketType) -> None:
        self._stream = trio.SocketStream(sock)
        self._buffer = ReceiveBuffer()

    @classmethod
    async def subscribed(cls, port: int, topic: str, permits: int) -> "Reader":
        kinds = proto.BaseCommand
        sock = trio.socket.socket()
        sock.setsockopt(trio.socket.SOL_SOCKET, trio.socket.SO_RCVBUF, 64 * 1024)
        await sock.connect(("127.0.0.1", port))
        reader = cls(sock)
        connect = proto.CommandConnect(client_version="test", protocol_version=21)
        await reader._stream.send_all(encode_command(kinds.CONNECT, connect))
        await reader.commands(1)
        subscribe = proto.CommandSubscribe(
            topic=topic, subscription="s", subType=proto.CommandSubscribe.Shared, consumer_id=0, request_id=0
        )
        await reader._stream.send_all(encode_command(kinds.SUBSCRIBE, subscribe))
        await reader.commands(1)
        await reader._stream.send_all(encode_flow(0, permits))
        return reader

    async def commands(self, count: int) -> list[object]:
        """The next so many; PINGs are not answered, as the test takes less than a keepalive interval."""
        found: list[object] = []
        while len(found) < count:
            whole = self._buffer.feed(await self._stream.receive_some(1_000_000))
            position = 0
            while whole and (frame := FrameDecoder().decode(whole, position, 5_000_000)) is not None:
                _, command, position = frame
                found.append(command)
            if whole:
                self._buffer.hold(whole, position)
        assert len(found) == count
        return found

    async def aclose(self) -> None:
        await self._stream.aclose()


async def test_a_slow_reader_is_not_sent_everything_at_once() -> None:
    """The broker holds a bounded number of bytes for a peer that does not read. It dispatches again when the
    peer reads."""
    count, size, bound = 250, 20_000, 200_000
    topic = "persistent://public/default/t"
    async with open_broker(max_unsent_bytes=bound) as broker, open_client(broker.url) as client:
        reader = await Reader.subscribed(broker.port, topic, permits=count)
        (link,) = broker._driver.links.values()
        assert link._socket is not None
        link._socket.setsockopt(trio.socket.SOL_SOCKET, trio.socket.SO_SNDBUF, 64 * 1024)
        async with client.create_producer(topic, batching=None) as producer:
            await producer.send_many([b"x" * size] * count)
        await trio.testing.wait_all_tasks_blocked()
        dispatched = broker.stats(topic)["subscriptions"]["s"]["unackedMessages"]
        assert link.bytes_sent < count * size / 2, "the system's buffers hold so much that nothing is shown"
        held = dispatched * size - link.bytes_sent
        assert 0 < held < 2 * (bound + size)  # in the outbox, and handed to the socket
        messages = await reader.commands(count)
        assert [type(message) for message in messages] == [MessageCommand] * count
        await reader.aclose()


async def test_a_connection_that_fails_before_it_is_accepted_is_not_the_brokers_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """accept(2) reports what has become of the connection meanwhile."""
    with trio.socket.socket() as example:
        kind = type(example)
    original = kind.accept
    problems = [errno.ECONNABORTED, errno.EPROTO, errno.EPERM]

    async def accept(self: Any) -> Any:
        if problems:
            raise OSError(problems.pop(), "it is gone")
        return await original(self)

    monkeypatch.setattr(kind, "accept", accept)
    async with open_broker() as broker, open_client(broker.url) as client:
        assert len(await client.partitions("t")) == 0
    assert not problems


class Unnamed(socket.socket):
    """The socket of a connection that was reset, where the system then has no name for it."""

    def __init__(self, family: int = -1, type: int = -1, proto: int = -1, fileno: int | None = None) -> None:
        if fileno is not None and family == -1:
            raise OSError(errno.EINVAL, "getsockname")
        super().__init__(family, type, proto, fileno)


async def test_a_connection_that_has_no_name_any_more_is_not_the_brokers_end(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with trio.socket.socket() as example:
        kind = type(example)
    original = kind.accept

    async def accept(self: Any) -> Any:
        accepted, _ = await original(self)
        return accepted, None

    monkeypatch.setattr(kind, "accept", accept)
    monkeypatch.setattr(socket, "socket", Unnamed)
    async with open_broker() as broker, open_client(broker.url) as client:
        assert len(await client.partitions("t")) == 0
    assert [each for each in caplog.records if each.levelno >= logging.ERROR] == []


@pytest.mark.parametrize("method", ["_open_link", "_serve_http"])
async def test_a_connection_that_cannot_be_served_ends_alone(
    method: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The connection is closed, the failure is logged, and the next one is served."""
    original = getattr(BrokerDriver, method)
    problems = [RuntimeError("planted")]

    def fail(*arguments: Any) -> None:
        if problems:
            raise problems.pop()
        original(*arguments)

    monkeypatch.setattr(BrokerDriver, method, fail)
    with trio.fail_after(PATIENCE):
        async with open_broker(http_port=0) as broker:
            port = broker.port if method == "_open_link" else broker.http_port
            assert port is not None
            async with await trio.open_tcp_stream("127.0.0.1", port) as stream:
                assert await stream.receive_some() == b""
            async with open_client(broker.url) as client:
                assert len(await client.partitions("t")) == 0
            async with await trio.open_tcp_stream("127.0.0.1", port) as stream:
                await stream.send_all(b"junk\r\n\r\n" if method == "_serve_http" else encode_flow(1, 1))
                await stream.receive_some()
    assert not problems
    (logged,) = [each for each in caplog.records if each.levelno >= logging.ERROR]
    assert logged.exc_info is not None
    assert repr(logged.exc_info[1]) == "RuntimeError('planted')"
