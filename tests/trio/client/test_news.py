"""The adapter logs lost connections, failed attempts, recoveries and the reasons why nothing moves."""

import logging
from typing import Any

import pytest
import trio
import trio.testing

from pulsar_sansio import ConnectionLost, DeadLetterPolicy, TimedOut, client_outputs
from pulsar_trio import Client, EmbeddedBroker, open_broker, open_client
from pulsar_trio.client.driver import Driver
from pulsar_trio.rate_limit import INTERVAL
from tests.trio.proxy import open_proxy
from tests.trio.waiting import until

NOWHERE = "pulsar://127.0.0.1:1"
"""Nothing listens there."""


def written(caplog: pytest.LogCaptureFixture, level: int, logger: str = "pulsar_trio") -> list[str]:
    return [
        record.getMessage()
        for record in caplog.records
        if record.levelno == level and record.name.startswith(logger)
    ]


@pytest.fixture
def log(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.INFO, "pulsar_trio")
    return caplog


async def test_a_refused_attempt_is_a_warning_before_the_next_one(log: pytest.LogCaptureFixture) -> None:
    async with (
        open_client(NOWHERE, initial_backoff=50, max_backoff=50) as client,
        trio.open_nursery() as nursery,
    ):
        nursery.start_soon(_produce, client)
        await until(lambda: log.records)
        (text,) = written(log, logging.WARNING, "pulsar_trio.connection")
        assert text.startswith(
            "producer on persistent://public/default/t: not connected, an attempt failed: "
        )
        assert "127.0.0.1:1" in text
        assert "refused" in text
        assert "; next attempt in 4" in text or "; next attempt in 50" in text
        nursery.cancel_scope.cancel()


async def _produce(client: Client) -> None:
    async with client.create_producer("t"):
        raise AssertionError("there is no broker")


async def test_a_long_outage_is_told_now_and_then(
    autojump_clock: trio.testing.MockClock, log: pytest.LogCaptureFixture
) -> None:
    """The same reason once in an interval, with the number of records that were left out."""
    async with open_client(NOWHERE, max_backoff=0.5, operation_timeout=100.0) as client:
        with pytest.raises(TimedOut) as raised:
            async with client.create_producer("t"):
                raise AssertionError("there is no broker")
    assert isinstance(raised.value.__cause__, ConnectionLost)
    texts = written(log, logging.WARNING, "pulsar_trio.connection")
    assert 100 / INTERVAL <= len(texts) <= 100 / INTERVAL + 2
    assert "left out" not in texts[0]
    assert all("records were left out before this one" in text for text in texts[1:])
    attempts = len(texts) + sum(int(text.rpartition("(")[2].split()[0]) for text in texts[1:])
    assert attempts > len(texts)


async def test_many_producers_of_one_lost_connection_make_one_warning(log: pytest.LogCaptureFixture) -> None:
    async with open_proxy() as proxy, open_client(proxy.url) as client, trio.open_nursery() as nursery:
        ready = []

        async def produce(number: int) -> None:
            async with client.create_producer(f"t-{number}") as producer:
                ready.append(producer)
                await trio.sleep_forever()

        for number in range(30):
            nursery.start_soon(produce, number)
        await until(lambda: len(ready) == 30)
        log.clear()
        proxy.cut()
        await until(lambda: not any(producer.connected for producer in ready))
        lost = [text for text in written(log, logging.WARNING) if "the connection is lost" in text]
        assert len(lost) == 1
        assert "next attempt in 0.1 s" in lost[0]
        await until(lambda: all(producer.connected for producer in ready))
        back = written(log, logging.INFO, "pulsar_trio.connection")
        assert back
        assert all(": connected after " in text for text in back)
        nursery.cancel_scope.cancel()


async def test_a_consumer_that_is_back_says_after_how_long(log: pytest.LogCaptureFixture) -> None:
    async with (
        open_proxy() as proxy,
        open_client(proxy.url) as client,
        client.subscribe("t", "s") as consumer,
    ):
        assert not log.records, "all is well"
        proxy.cut()
        await until(lambda: not consumer.connected)
        assert "not connected for" in consumer.explain()
        assert "next attempt in" in consumer.explain() or "asking" in consumer.explain()
        await until(lambda: consumer.connected)
        (text,) = written(log, logging.INFO)
        assert text.startswith(
            "<SharedConsumer 's' on persistent://public/default/t, connected>: connected after "
        )
        assert consumer.explain().startswith(
            "consumer on persistent://public/default/t, subscription 's': connected to"
        )


async def test_a_send_that_times_out_has_the_cause(log: pytest.LogCaptureFixture) -> None:
    async with (
        open_proxy() as proxy,
        open_client(proxy.url) as client,
        client.create_producer("t", send_timeout=0.3) as producer,
    ):
        proxy.tamper = lambda data: b"HTTP" * len(data)
        with pytest.raises(TimedOut, match=r"the producer is not connected: .* answers in HTTP") as raised:
            await producer.send(b"x")
        assert isinstance(raised.value.__cause__, ConnectionLost)
    assert "the connection is lost" in written(log, logging.WARNING)[0]


async def test_a_request_that_times_out_while_disconnected_has_the_cause() -> None:
    """The adapter adds a cause that the machine does not know: why there is no connection."""
    async with (
        open_broker() as broker,
        open_client(broker.url) as client,
        client.subscribe("t", "s") as consumer,
    ):
        driver = consumer._driver
        outage = driver.sides[consumer._handle].outage
        outage.begin(ConnectionLost("gone"), trio.current_time())

        def never(now: int, handle: int) -> int:
            request = driver.machine.flush_acknowledgements(now, handle)
            driver.machine.outputs.clear()
            driver.machine.outputs.append(client_outputs.RequestFailed(request, TimedOut("late")))
            return request

        with pytest.raises(TimedOut) as raised:
            await consumer._request(never)
        assert raised.value.__cause__ is outage.cause
        outage.end(trio.current_time())


async def test_a_wrong_port_is_named(log: pytest.LogCaptureFixture) -> None:
    async with open_broker(http_port=0) as broker:
        url = f"pulsar://127.0.0.1:{broker.http_port}"
        async with open_client(url) as client, trio.open_nursery() as nursery:
            nursery.start_soon(_produce, client)
            await until(lambda: log.records)
            nursery.cancel_scope.cancel()
    assert "answers in HTTP: this is a port for HTTP, such as 8080" in written(log, logging.WARNING)[0]


async def test_a_broker_names_what_asks_at_its_port(
    broker: EmbeddedBroker, log: pytest.LogCaptureFixture
) -> None:
    for _ in range(3):
        async with await trio.open_tcp_stream("127.0.0.1", broker.port) as stream:
            await stream.send_all(b"GET / HTTP/1.1\r\n\r\n")
            assert await stream.receive_some(100) == b""
    (text,) = written(log, logging.INFO, "pulsar_trio.broker")
    assert "the peer asks in HTTP: its port for HTTP is another one" in text


async def test_a_dead_letter_is_information(client: Client, log: pytest.LogCaptureFixture) -> None:
    policy = DeadLetterPolicy(1, "dead")
    async with (
        client.create_producer("t") as producer,
        client.subscribe("t", "s", dead_letter=policy, negative_acknowledgement_delay=0.01) as consumer,
    ):
        await producer.send(b"bad")
        for _ in range(2):
            consumer.negative_acknowledge(await consumer.receive())
        await until(lambda: written(log, logging.INFO, "pulsar_trio.consumer"))
        (text,) = written(log, logging.INFO, "pulsar_trio.consumer")
        assert "was copied to persistent://public/default/dead" in text
        assert "bad" not in text


async def test_a_topic_that_ends_is_information(
    broker: EmbeddedBroker, client: Client, log: pytest.LogCaptureFixture
) -> None:
    async with client.create_producer("t") as producer, client.subscribe("t", "s") as consumer:
        broker.terminate("t")
        with pytest.raises(trio.EndOfChannel):
            await consumer.receive()
        assert any("the topic is terminated" in text for text in written(log, logging.INFO))
        assert "the topic is terminated" in consumer.explain()
        with pytest.raises(Exception, match="terminated"):
            await producer.send(b"x")
        assert any("has ended and cannot be used again" in text for text in written(log, logging.INFO))
        assert "has ended" in producer.explain()


async def test_a_topic_that_grows_is_information(
    broker: EmbeddedBroker, client: Client, log: pytest.LogCaptureFixture
) -> None:
    broker.create_partitioned_topic("t", 2)
    async with client.create_producer("t", partitions_update_interval=0.05):
        broker.update_partitions("t", 4)
        await until(lambda: written(log, logging.INFO, "pulsar_trio.producer"))
        (text,) = written(log, logging.INFO, "pulsar_trio.producer")
        assert text.endswith("the topic has grown to 4 partitions")


async def test_a_blocked_consumer_is_information(
    autojump_clock: trio.testing.MockClock, log: pytest.LogCaptureFixture
) -> None:
    async with (
        open_broker(max_unacked_messages_per_consumer=150) as broker,
        open_client(broker.url) as client,
        client.subscribe("t", "s", receiver_queue_size=20) as consumer,
        client.create_producer("t", batching=None) as producer,
    ):
        await producer.send_many([b"x"] * 400)
        received = []
        with trio.move_on_after(30):
            while True:
                received.append(await consumer.receive())
        (text,) = written(log, logging.INFO, "pulsar_trio.consumer")
        assert "the broker delivers nothing more of persistent://public/default/t" in text
        assert f"{len(received)} messages are unacknowledged" in text
        assert "blocked: the broker said" in consumer.explain()
        consumer.acknowledge(received)
        while len(received) < 400:
            message = await consumer.receive()
            received.append(message)
            consumer.acknowledge(message)


async def test_requests_at_debug(broker: EmbeddedBroker, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "pulsar_trio.request")
    async with open_client(broker.url) as client, client.create_producer("secret-topic") as producer:
        await producer.send(b"secret", key="secret", properties={"secret": "secret"})
    texts = written(caplog, logging.DEBUG, "pulsar_trio.request")
    assert "link 1: request 0: PARTITIONED_METADATA" in texts
    assert "link 1: request 0 answered: PARTITIONED_METADATA_RESPONSE" in texts
    assert "link 1: request 2: PRODUCER" in texts
    assert not any("secret" in text for text in texts)


async def test_without_debug_the_machine_says_nothing_of_requests(
    broker: EmbeddedBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    drivers: list[Driver] = []
    start = Driver.__init__

    def remember(self: Driver, *arguments: Any) -> None:
        start(self, *arguments)
        drivers.append(self)

    monkeypatch.setattr(Driver, "__init__", remember)
    async with open_client(broker.url) as client:
        (driver,) = drivers
        told: list[object] = []
        driver.actions[client_outputs.RequestSent] = told.append
        driver.actions[client_outputs.RequestAnswered] = told.append
        async with client.create_producer("t") as producer:
            await producer.send(b"x")
    assert told == []


class TestExplain:
    async def test_tasks_that_wait_are_counted(self, client: Client) -> None:
        async with client.subscribe("t", "s") as consumer, trio.open_nursery() as nursery:
            nursery.start_soon(consumer.receive)
            await trio.testing.wait_all_tasks_blocked(0.01)
            assert "  1 tasks wait for a message" in consumer.explain().splitlines()
            nursery.cancel_scope.cancel()

    async def test_of_a_producer_whose_window_is_full(self) -> None:
        async with (
            open_proxy() as proxy,
            open_client(proxy.url) as client,
            client.create_producer("t", max_pending_messages=2, batching=None) as producer,
            trio.open_nursery() as nursery,
        ):
            proxy.hold()
            for _ in range(3):
                nursery.start_soon(producer.send, b"x")
            await until(lambda: producer.statistics().waiting)
            text = producer.explain()
            assert "the window is full, 2 of at most 2 messages are pending" in text
            assert "  1 tasks wait for room in the window" in text.splitlines()
            proxy.release()

    async def test_of_a_reader_and_a_table_view(self, client: Client) -> None:
        async with client.create_reader("t", "earliest") as reader, client.create_table_view("t") as view:
            assert reader.explain().startswith("reader of persistent://public/default/t: connected to ")
            assert view.explain().startswith(
                "table view of 0 keys, reader of persistent://public/default/t: connected to "
            )

    async def test_after_the_end_it_says_why(self, client: Client) -> None:
        async with client.create_producer("t") as producer, client.create_reader("t", "earliest") as reader:
            pass
        assert producer.explain() == "the producer of persistent://public/default/t is closed"
        assert reader.explain() == "the reader of persistent://public/default/t is closed"


class TestAClosedReader:
    async def test_says_that_it_is_closed(self, client: Client) -> None:
        async with client.create_reader("t", "earliest") as reader:
            assert repr(reader) == "<Reader of persistent://public/default/t, connected>"
        assert repr(reader) == "<Reader of persistent://public/default/t, closed>"
        for use in (reader.receive, reader.receive_many, reader.last_message_id):
            with pytest.raises(trio.ClosedResourceError, match=r"the reader of .* is closed"):
                await use()
        with pytest.raises(trio.ClosedResourceError, match=r"the reader of .* is closed"):
            reader.receive_nowait()
        with pytest.raises(trio.ClosedResourceError, match=r"the reader of .* is closed"):
            reader.positions()

    async def test_and_while_it_is_closing(self, client: Client) -> None:
        async with client.create_reader("t", "earliest") as reader, trio.open_nursery() as nursery:
            nursery.start_soon(reader.aclose)
            with pytest.raises(trio.ClosedResourceError, match=r"the reader of .* is closed"):
                await reader.receive()
