"""Wrong input, from the user and from the network: one clear error each, and everything else goes on."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from pulsar_sansio import (
    InvalidConfiguration,
    InvalidMessage,
    InvalidServiceUrl,
    InvalidTopicName,
    LocalProtocolError,
    MemoryStore,
    MessageId,
    TopicMessageId,
)
from pulsar_sansio.wire import encode_command, encode_ping, proto
from pulsar_trio import (
    Client,
    Consumer,
    EmbeddedBroker,
    PulsarError,
    open_broker,
    open_client,
    serve,
)
from pulsar_trio.client.options import Topics
from tests.patience import PATIENCE
from tests.trio.proxy import open_proxy

HASTY = {"operation_timeout": 0.3, "initial_backoff": 0.02, "connect_timeout": 0.2}

# --- from the user ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("ftp://localhost:6650", "begins with pulsar://.*'ftp'"),
        ("http://localhost:8080/admin", "nothing may follow"),
        ("localhost:6650", "no scheme"),
        ("pulsar://localhost:0", "port 0 is out of range"),
        ("pulsar://localhost:65536", "port of 1 to 65535"),
        ("pulsar://localhost:many", "port of 1 to 65535"),
        ("pulsar://", "no host name"),
        ("pulsar://localhost:6650/topic", "nothing may follow"),
    ],
)
async def test_a_wrong_url(url: str, words: str) -> None:
    """Rules CLIENT-01 and ERR-01."""
    with pytest.raises(InvalidServiceUrl, match=words):
        async with open_client(url):
            raise AssertionError("it was accepted")


@pytest.mark.parametrize("topic", ["", "a/b", "queue://public/default/t", "persistent://public/t", "a/b/c/d"])
async def test_a_wrong_topic_name(client: Client, topic: str) -> None:
    with pytest.raises(InvalidTopicName, match="topic name"):
        await client.create_producer(topic).__aenter__()
    with pytest.raises(InvalidTopicName, match="topic name"):
        await client.subscribe(topic, "s").__aenter__()
    with pytest.raises(InvalidTopicName, match="topic name"):
        await client.partitions(topic)


HALF = "half a surrogate pair: \ud800"


@pytest.mark.parametrize(
    "opening",
    [
        lambda client: client.create_producer(HALF),
        lambda client: client.create_producer("t", name=HALF),
        lambda client: client.create_producer("t", initial_subscription=HALF),
        lambda client: client.create_producer("t", properties={"name": HALF}),
        lambda client: client.subscribe(HALF, "s"),
        lambda client: client.subscribe(["t", HALF], "s"),
        lambda client: client.subscribe("t", HALF),
        lambda client: client.subscribe("t", "s", consumer_name=HALF),
        lambda client: client.subscribe("t", "s", subscription_properties={HALF: "value"}),
        lambda client: client.create_reader("t", "earliest", name=HALF),
        lambda client: client.create_reader("t", "earliest", subscription_prefix=HALF),
        lambda client: client.create_table_view(HALF),
        lambda client: client.subscribe(None, "s"),
        lambda client: client.create_reader(5, "earliest"),
        lambda client: client.create_table_view(None),
        lambda client: client.create_reader("t", MessageId(2**70, 2)),
    ],
)
async def test_what_could_not_be_told_a_broker(client: Client, opening: Callable[[Client], Any]) -> None:
    with pytest.raises(InvalidConfiguration):
        await opening(client).__aenter__()
    async with client.create_producer("t") as producer:  # the client goes on
        await producer.send(b"1")


@pytest.mark.parametrize("topic", ["t", ["t", "u"]])
async def test_wrong_arguments_of_a_consumer(client: Client, topic: Topics) -> None:
    def fails(topic: str) -> int:
        raise KeyError(topic)

    one = MessageId("1", 2)  # type: ignore[arg-type]
    odd: Any = None
    calls: list[Callable[[Consumer], Any]] = [
        lambda consumer: consumer.receive_many(odd),
        lambda consumer: consumer.receive_many(0),
        lambda consumer: consumer.unsubscribe(force=odd),
        lambda consumer: consumer.seek(fails),
        lambda consumer: consumer.seek(lambda _: one),
        lambda consumer: consumer.seek(one),
        lambda consumer: consumer.reconsume_later(odd, 1.0),
        lambda consumer: consumer.run(odd),
        lambda consumer: consumer.acknowledge(one),
        lambda consumer: consumer.negative_acknowledge(TopicMessageId("t", one)),
    ]
    async with client.subscribe(topic, "s", retry=True) as consumer:
        for call in calls:
            with pytest.raises(LocalProtocolError):
                await call(consumer)
        await consumer.flush()  # it goes on


@pytest.mark.parametrize("wrong", ["x", 1.5, True, b"seed"])
async def test_a_wrong_seed(wrong: Any) -> None:
    for opening in (lambda: open_client("pulsar://localhost", seed=wrong), lambda: open_broker(seed=wrong)):
        with pytest.raises(InvalidConfiguration, match="seed: a whole number or None"):
            await opening().__aenter__()


async def test_a_wrong_option_of_a_client() -> None:
    for options, words in (
        ({"operation_timeout": -1}, "operation_timeout: seconds from"),
        ({"statistics_interval": 10**400}, "statistics_interval: "),
        ({"keepalive": 3}, r"there is no option 'keepalive'; did you mean 'keepalive_interval'\?"),
    ):
        with pytest.raises(InvalidConfiguration, match=words):
            async with open_client("pulsar://localhost", **options):  # type: ignore[arg-type]
                raise AssertionError("it was accepted")


@pytest.mark.parametrize("port", [-1, 65536, "6650", True])
async def test_a_wrong_port_of_a_broker(port: int) -> None:
    with pytest.raises(InvalidConfiguration, match="port: a whole number from 0 to 65535"):
        async with open_broker(port):
            raise AssertionError("it was accepted")


@pytest.mark.parametrize("host", [None, 7, b"localhost", ["localhost"], "a..b", HALF])
async def test_a_wrong_host_of_a_broker(host: Any) -> None:
    with pytest.raises(InvalidConfiguration, match="host: the name or an address of this machine"):
        async with open_broker(host=host):
            raise AssertionError("it was accepted")
    with pytest.raises(InvalidConfiguration, match="host: "):
        await serve(0, host=host)


@pytest.mark.parametrize("store", [7, "memory", {}, MemoryStore])
async def test_a_wrong_store_of_a_broker(store: Any) -> None:
    with pytest.raises(InvalidConfiguration, match=r"store: None or a store such as MemoryStore\(\)"):
        async with open_broker(store=store):
            raise AssertionError("it was accepted")
    with pytest.raises(InvalidConfiguration, match="store: "):
        await serve(0, store=store)


@pytest.mark.parametrize("messages", [None, 7])
async def test_what_is_no_series_of_messages(client: Client, messages: Any) -> None:
    async with client.create_producer("t") as producer:
        with pytest.raises(InvalidMessage, match="messages: several of bytes or OutgoingMessage, not"):
            await producer.send_many(messages)
        await producer.send_many([b"1"])


async def test_a_port_in_use(broker: EmbeddedBroker) -> None:
    with pytest.raises(OSError, match="in use"):
        async with open_broker(broker.port):
            raise AssertionError("it listens twice")


# --- peers that are none ------------------------------------------------------------------------------------

Handler = Callable[[trio.SocketStream], Awaitable[None]]


@asynccontextmanager
async def peer(handler: Handler) -> AsyncIterator[str]:
    """The URL of something that listens and is not Pulsar."""
    async with trio.open_nursery() as nursery:
        listeners = await nursery.start(trio.serve_tcp, handler, 0)
        yield f"pulsar://127.0.0.1:{listeners[0].socket.getsockname()[1]}"
        nursery.cancel_scope.cancel()


async def fails_clearly(url: str, words: str) -> None:
    """Producer, consumer and question all give up after the operation timeout, each saying what is wrong."""

    async def fails(call: Callable[[], Awaitable[object]]) -> None:
        began = trio.current_time()
        with pytest.raises(PulsarError, match=words) as raised:
            await call()
        assert raised.value.retryable
        assert 0.2 < trio.current_time() - began < 20  # and not 30, the default

    with trio.fail_after(PATIENCE):
        async with open_client(url, **HASTY) as client, trio.open_nursery() as nursery:  # type: ignore[arg-type]
            nursery.start_soon(fails, client.create_producer("t").__aenter__)
            nursery.start_soon(fails, client.subscribe("t", "s").__aenter__)
            nursery.start_soon(fails, partial(client.partitions, "t"))


async def test_a_closed_port_is_tried_until_the_operation_timeout(autojump_clock: MockClock) -> None:
    async with open_broker() as broker:
        url = broker.url
    await fails_clearly(url, r"(?s)0\.3 s.*refused")


async def test_a_host_that_does_not_exist() -> None:
    await fails_clearly("pulsar://does.not.exist.invalid", "resolve|Name|does.not.exist")


async def test_a_web_server(autojump_clock: MockClock) -> None:
    async def web(stream: trio.SocketStream) -> None:
        await stream.receive_some(1000)
        await stream.send_all(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n")
        await stream.send_eof()
        await trio.sleep(1)

    async with peer(web) as url:
        await fails_clearly(url, "frame|Pulsar")


async def test_a_peer_that_never_answers(autojump_clock: MockClock) -> None:
    async def silent(stream: trio.SocketStream) -> None:
        await trio.sleep_forever()

    async with peer(silent) as url:
        await fails_clearly(url, "0.3 s|0.2 s")


async def test_a_peer_that_hangs_up(autojump_clock: MockClock) -> None:
    async with peer(lambda stream: stream.aclose()) as url:
        await fails_clearly(url, "closed|reset|ended")


@pytest.mark.parametrize(
    "answer",
    [
        b"\x7f\xff\xff\xff\x00\x00\x00\x00",  # larger than any frame may be
        b"\x00\x00\x00\x04\x00\x00\x00\x10",  # the command would be longer than its frame
        b"\x00\x00\x00\x08\x00\x00\x00\x04\xff\xff\xff\xff",  # no protobuf
        b"\x00\x00\x00\x06\x00\x00\x00\x02\x08\x03",  # CONNECTED without its content
    ],
)
async def test_a_malformed_frame(autojump_clock: MockClock, answer: bytes) -> None:
    async def wrong(stream: trio.SocketStream) -> None:
        await stream.receive_some(1000)
        await stream.send_all(answer)
        await trio.sleep_forever()

    async with peer(wrong) as url:
        await fails_clearly(url, "frame|command|sub-message|content|lacks|total")


# --- a broker whose bytes are damaged on the way ------------------------------------------------------------


async def test_an_unknown_command_is_ignored() -> None:
    """A newer broker may say what this client does not know (rule CONN-10)."""
    unknown = b"\x00\x00\x00\x07\x00\x00\x00\x03\x08\xe7\x07"  # type 999, nothing else
    async with (
        open_proxy() as proxy,
        open_client(proxy.url) as client,
        client.create_producer("t") as producer,
    ):
        proxy.tamper = lambda data: unknown + data + unknown
        await producer.send(b"1")
        await producer.send(b"2")
        assert proxy.connections == 1


async def test_a_wrong_checksum_is_not_delivered_and_the_rest_is() -> None:
    async with (
        open_proxy() as proxy,
        open_client(proxy.url, initial_backoff=0.01) as client,
        client.subscribe("t", "s", "shared") as consumer,
        client.create_producer("t", batching=None) as producer,
    ):
        proxy.tamper = lambda data: data.replace(b"wrong", b"WRONG")
        await producer.send_many([b"wrong", b"right"])
        with trio.fail_after(PATIENCE):
            assert (await consumer.receive()).data == b"right"


async def test_damage_in_a_frame_ends_the_link_and_nothing_else() -> None:
    """The link is opened again; what was not confirmed is sent again, in order and once."""
    damaged = False

    def damage(data: bytes) -> bytes:
        nonlocal damaged
        if damaged:
            return data
        damaged = True
        return b"\x7f" + data[1:]

    async with (
        open_proxy(deduplication=True) as proxy,
        open_client(proxy.url, initial_backoff=0.01) as client,
        client.subscribe("t", "s", "exclusive") as consumer,
        client.create_producer("t", batching=None) as producer,
    ):
        proxy.tamper = damage
        with trio.fail_after(PATIENCE):
            await producer.send_many(b"%d" % number for number in range(20))
            received: list[bytes] = []
            while received[-1:] != [b"19"]:
                received.append((await consumer.receive()).data)
        assert sorted(set(received), key=int) == [b"%d" % number for number in range(20)]
        assert damaged
        assert proxy.connections == 2


# --- clients that are none ----------------------------------------------------------------------------------

CONNECT = encode_command(
    proto.BaseCommand.CONNECT, proto.CommandConnect(client_version="x", protocol_version=21)
)


@pytest.mark.parametrize(
    "sent",
    [
        b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"\x7f\xff\xff\xff\x00\x00\x00\x00",
        b"\x00\x00\x00\x04\x00\x00\x00\x10",
        b"\x00\x00\x00\x08\x00\x00\x00\x04\xff\xff\xff\xff",
        CONNECT + b"\x00\x00\x00\x08\x00\x00\x00\x04\xff\xff\xff\xff",
        CONNECT + CONNECT,
    ],
)
async def test_the_broker_hangs_up_on_what_is_no_client(
    client: Client, broker: EmbeddedBroker, sent: bytes
) -> None:
    async with client.create_producer("t") as producer:
        await producer.send(b"before")
        with trio.fail_after(PATIENCE):
            stream = await trio.open_tcp_stream("127.0.0.1", broker.port)
            async with stream:
                await stream.send_all(sent)
                while await stream.receive_some(1000):
                    pass
        await producer.send(b"after")
        assert producer.connected


@pytest.mark.parametrize("length", [1, 5, 9, len(CONNECT) - 1])
async def test_the_broker_survives_a_client_that_stops_in_a_frame(
    client: Client, broker: EmbeddedBroker, length: int
) -> None:
    stream = await trio.open_tcp_stream("127.0.0.1", broker.port)
    await stream.send_all(CONNECT[:length])
    await stream.send_eof()
    with trio.fail_after(PATIENCE):
        while await stream.receive_some(1000):
            pass
    await stream.aclose()
    assert len(await client.partitions("t")) == 0


async def test_the_broker_ignores_an_unknown_command(broker: EmbeddedBroker) -> None:
    unknown = b"\x00\x00\x00\x07\x00\x00\x00\x03\x08\xe7\x07"
    stream = await trio.open_tcp_stream("127.0.0.1", broker.port)
    async with stream:
        await stream.send_all(CONNECT + unknown + encode_ping())
        answer = b""
        with trio.fail_after(PATIENCE):
            while len(answer) < 20 or not answer.endswith(b"\x08\x13\x9a\x01\x00"):
                answer += await stream.receive_some(1000)
