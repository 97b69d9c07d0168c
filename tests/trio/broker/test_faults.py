"""Faults of the embedded broker, and what our client makes of each of them."""

from pathlib import Path

import pytest
import trio
import trio.testing

from pulsar_sansio import InvalidConfiguration, MemoryStore, NotApplicable, StoredState
from pulsar_trio import (
    ChecksumRefused,
    Client,
    EmbeddedBroker,
    NotAllowed,
    ServerError,
    SqliteStore,
    TimedOut,
    open_broker,
    open_client,
)
from tests.patience import PATIENCE

FULL = "persistent://public/default/"


async def test_a_refused_send_is_sent_again_and_stored_once(broker: EmbeddedBroker, client: Client) -> None:
    refusal = broker.faults.add("SEND", "error", code="PersistenceError", message="disk full", times=2)
    sends = broker.faults.add("SEND")
    async with client.subscribe("t", "s") as consumer, client.create_producer("t", batching=None) as producer:
        with trio.fail_after(PATIENCE):
            await producer.send_many([b"%d" % number for number in range(10)])
            received = [(await consumer.receive()).data for _ in range(10)]
    assert received == [b"%d" % number for number in range(10)]
    assert refusal.fired == 2
    assert sends.counts["SEND"][FULL + "t"] > 10


async def test_a_send_that_is_not_allowed_fails_alone(broker: EmbeddedBroker, client: Client) -> None:
    broker.faults.add("SEND", "error", code=ServerError.NotAllowedError, message="no", after=1, times=1)
    async with client.create_producer("t", batching=None) as producer:
        await producer.send(b"0")
        with pytest.raises(NotAllowed, match="no"):
            await producer.send(b"1")
        await producer.send(b"2")
    assert broker.stats("t")["msgInCounter"] == 2


async def test_a_producer_that_is_not_ready_yet_is_asked_for_again(
    broker: EmbeddedBroker, client: Client
) -> None:
    refusal = broker.faults.add("PRODUCER", "error", code="ServiceNotReady", topic="t", times=2)
    with trio.fail_after(PATIENCE):
        async with client.create_producer("t") as producer:
            await producer.send(b"x")
    assert refusal.fired == 2


@pytest.mark.parametrize("command", ["LOOKUP", "PARTITIONED_METADATA", "SUBSCRIBE"])
async def test_a_refused_request_is_sent_again(broker: EmbeddedBroker, client: Client, command: str) -> None:
    refusal = broker.faults.add(command, "error", code="ServiceNotReady", topic="t*", times=1)
    with trio.fail_after(PATIENCE):
        async with client.subscribe("t", "s"):
            pass
    assert refusal.fired == 1


async def test_a_lost_acknowledgement_is_delivered_again(broker: EmbeddedBroker) -> None:
    async with open_client(broker.url, operation_timeout=0.5) as client:
        async with client.create_producer("t") as producer, client.subscribe("t", "s") as consumer:
            broker.faults.add("ACK", "drop")
            await producer.send(b"x")
            consumer.acknowledge(await consumer.receive())
            with pytest.raises(TimedOut):
                await consumer.flush()
        broker.faults.clear()
        async with client.subscribe("t", "s") as consumer:
            with trio.fail_after(PATIENCE):
                assert (await consumer.receive()).data == b"x"


async def test_a_delayed_receipt(
    broker: EmbeddedBroker, client: Client, autojump_clock: trio.testing.MockClock
) -> None:
    broker.faults.add("SEND_RECEIPT", "delay", seconds=5.0, times=1)
    async with client.create_producer("t") as producer:
        began = trio.current_time()
        await producer.send(b"x")
        assert 5 <= trio.current_time() - began < 6


@pytest.mark.parametrize("fault", ["close", "half frame"])
async def test_a_connection_that_ends_in_place_of_a_receipt(
    broker: EmbeddedBroker, client: Client, fault: str
) -> None:
    """The message may be stored twice, because the client cannot know that it was stored."""
    rule = broker.faults.add("SEND_RECEIPT", fault, times=1)  # type: ignore[arg-type]
    async with client.subscribe("t", "s") as consumer, client.create_producer("t") as producer:
        with trio.fail_after(PATIENCE):
            await producer.send(b"x")
            await producer.send(b"y")
            received = [(await consumer.receive()).data]
            while received[-1] != b"y":
                received.append((await consumer.receive()).data)
    assert set(received) == {b"x", b"y"}
    assert rule.fired == 1


@pytest.mark.breaks("GAP-02", "INV-C2", why="a rule of faults damages a message")
async def test_a_damaged_message_is_not_delivered(broker: EmbeddedBroker, client: Client) -> None:
    """The client drops it with a validation error, as the Java client does, and goes on with the next one."""
    broker.faults.add("MESSAGE", "corrupt", times=1)
    async with client.subscribe("t", "s") as consumer, client.create_producer("t", batching=None) as producer:
        await producer.send_many([b"x", b"y"])
        with trio.fail_after(PATIENCE):
            assert (await consumer.receive()).data == b"y"


async def test_a_message_damaged_on_its_way_to_the_broker(broker: EmbeddedBroker, client: Client) -> None:
    """The client's own bytes are whole, so it sends them again."""
    rule = broker.faults.add("SEND", "corrupt", times=1)
    async with (
        client.create_producer("t") as producer,
        client.subscribe("t", "s", initial_position="earliest") as consumer,
    ):
        with trio.fail_after(PATIENCE):
            try:
                await producer.send(b"x")
            except ChecksumRefused:
                await producer.send(b"x")
            assert (await consumer.receive()).data == b"x"
    assert rule.fired == 1


@pytest.mark.breaks("CHECK-67", "NACK-03", why="a rule of faults writes a MESSAGE twice")
async def test_a_message_that_comes_twice(broker: EmbeddedBroker, client: Client) -> None:
    broker.faults.add("MESSAGE", "duplicate", times=1)
    async with (
        client.subscribe("t", "s", "shared") as consumer,
        client.create_producer("t") as producer,
    ):
        await producer.send(b"x")
        await producer.send(b"y")
        received: list[bytes] = []
        with trio.fail_after(PATIENCE):
            while b"y" not in received:
                received.append((await consumer.receive()).data)
    assert received in ([b"x", b"x", b"y"], [b"x", b"y"])


async def test_a_rule_can_be_removed_and_a_wrong_one_is_refused(broker: EmbeddedBroker) -> None:
    with pytest.raises(InvalidConfiguration, match="half frame"):
        broker.faults.add("SEND", "half frame")
    first, second = broker.faults.add("SEND", "drop"), broker.faults.add("ACK", "drop")
    broker.faults.remove(first)
    assert list(broker.faults.rules) == [second]
    broker.faults.clear()
    assert list(broker.faults.rules) == []


# --- waiting for a state ------------------------------------------------------------------------------


async def test_until_the_application_is_connected_and_has_read_all(
    broker: EmbeddedBroker, nursery: trio.Nursery, client: Client
) -> None:
    async def consume() -> None:
        async with client.subscribe("t", "workers", "shared") as consumer:
            async for message in consumer:
                consumer.acknowledge(message)

    for _ in range(2):
        nursery.start_soon(consume)
    await broker.until(consumers=2, topic="t", subscription="workers", timeout=PATIENCE)
    async with client.create_producer("t") as producer:
        await broker.until(producers=1, timeout=PATIENCE)
        await producer.send_many([b"%d" % number for number in range(100)])
    await broker.until(backlog=0, producers=0, topic="t", subscription="workers", timeout=PATIENCE)
    nursery.cancel_scope.cancel()


async def test_until_says_what_the_state_was(
    broker: EmbeddedBroker, client: Client, autojump_clock: trio.testing.MockClock
) -> None:
    async with client.subscribe("t", "s"):
        with pytest.raises(trio.TooSlowError, match=r"after 5 s: consumers: 1, not 2"):
            await broker.until(consumers=2, backlog=0, timeout=5.0)
    with pytest.raises(InvalidConfiguration):
        await broker.until()


async def test_until_does_not_poll(broker: EmbeddedBroker, autojump_clock: trio.testing.MockClock) -> None:
    """The state is compared at the beginning, after changes, and at the end, not by the clock."""
    compared = 0
    administration = broker._driver.machine.topic_administration
    compare = administration.differences

    def counted(wanted: object) -> str:
        nonlocal compared
        compared += 1
        return compare(wanted)  # type: ignore[arg-type]

    administration.differences = counted  # type: ignore[method-assign]
    with pytest.raises(trio.TooSlowError):
        await broker.until(consumers=1, timeout=1000.0)
    assert compared == 2


async def test_until_ends_with_the_broker(nursery: trio.Nursery) -> None:
    ended = trio.Event()

    async def wait(broker: EmbeddedBroker) -> None:
        with pytest.raises(trio.ClosedResourceError):
            await broker.until(consumers=1, timeout=PATIENCE)
        ended.set()

    async with open_broker() as broker:
        nursery.start_soon(wait, broker)
        await trio.testing.wait_all_tasks_blocked()
    with trio.fail_after(PATIENCE):
        await ended.wait()


# --- reset, snapshots ---------------------------------------------------------------------------------


async def test_reset(broker: EmbeddedBroker, client: Client) -> None:
    broker.create_namespace("public/mine")
    broker.set_policy("public/default", "max_producers", 1)
    broker.faults.add("SEND", "count")
    async with client.create_producer("t") as producer:
        await producer.send(b"x")
        broker.reset()
        assert broker.topics() == []
        assert list(broker.faults.rules) == []
        with trio.fail_after(PATIENCE):
            await producer.send(b"y")  # the client connects again
        assert broker.stats("t")["msgInCounter"] == 1
        async with client.create_producer("t") as other:  # the policy is gone
            await other.send(b"z")
    with pytest.raises(Exception, match="public/mine"):
        broker.topics("public/mine")


async def test_a_snapshot_is_restored_as_often_as_wanted(broker: EmbeddedBroker, client: Client) -> None:
    async with client.subscribe("t", "s") as consumer, client.create_producer("t") as producer:
        await producer.send(b"0")
        consumer.acknowledge(await consumer.receive())
        await consumer.flush()
        await producer.send(b"1")
    snapshot = broker.snapshot()
    for number in range(2):
        async with client.subscribe("t", "s") as consumer, client.create_producer("t") as producer:
            await producer.send(b"after")
            with trio.fail_after(PATIENCE):
                received = [await consumer.receive() for _ in range(2)]
            assert [each.data for each in received] == [b"1", b"after"], number
            for each in received:
                consumer.acknowledge(each)
            await consumer.flush()
        broker.restore(snapshot)


async def test_a_snapshot_of_one_broker_restored_at_another(broker: EmbeddedBroker, client: Client) -> None:
    broker.create_partitioned_topic("p", 3)
    async with open_broker() as other:
        other.restore(broker.snapshot())
        assert len(other.topics()) == 3
    with pytest.raises(InvalidConfiguration, match="snapshot"):
        broker.restore(5)  # type: ignore[arg-type]


async def test_reset_returns_to_what_the_store_had_at_the_start() -> None:
    store = MemoryStore()
    async with open_broker(store=store) as broker:
        broker.create_topic("kept")
    async with open_broker(store=store) as broker:
        broker.delete_topic("kept")
        broker.create_topic("new")
        broker.reset()
        assert broker.topics() == [FULL + "kept"]


async def test_a_store_that_cannot_go_back(tmp_path: Path) -> None:
    async with open_broker(store=SqliteStore(tmp_path)) as broker:
        for back in (broker.reset, broker.snapshot, lambda: broker.restore(StoredState())):
            with pytest.raises(NotApplicable, match="MemoryStore"):
                back()


# --- emulated versions --------------------------------------------------------------------------------


async def test_a_broker_of_an_older_version() -> None:
    """A broker of protocol 15 does not answer acknowledgements."""
    async with open_broker(protocol_version=15, feature_flags=False) as broker:
        answers = broker.faults.add("ACK_RESPONSE")
        connected = broker.faults.add("CONNECTED")
        async with open_client(broker.url) as client:
            async with client.subscribe("t", "s") as consumer, client.create_producer("t") as producer:
                await producer.send(b"x")
                consumer.acknowledge(await consumer.receive())
                await consumer.flush()
                await broker.until(backlog=0, timeout=PATIENCE)
        assert (connected.fired > 0, answers.fired) == (True, 0)
