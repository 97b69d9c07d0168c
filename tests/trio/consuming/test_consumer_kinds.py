"""The four kinds of consumers: each has the calls that its kind of subscription allows."""

from datetime import timedelta
from typing import assert_type

import pytest
import trio
import trio.testing

from pulsar_sansio import SubscriptionType
from pulsar_trio import (
    Client,
    Consumer,
    ExclusiveConsumer,
    FailoverConsumer,
    KeySharedConsumer,
    NotAwaitable,
    ResourceClosed,
    SharedConsumer,
)
from pulsar_trio.client.options import Kind
from pulsar_trio.consuming.consumer_kinds import CONSUMER_TYPES
from tests.patience import PATIENCE
from tests.trio.consuming.test_consumer import fill, numbers_left
from tests.trio.waiting import until


@pytest.mark.parametrize(
    ("kind", "expected", "cumulative"),
    [
        ("exclusive", ExclusiveConsumer, True),
        ("failover", FailoverConsumer, True),
        ("shared", SharedConsumer, False),
        ("key_shared", KeySharedConsumer, False),
    ],
)
async def test_what_a_kind_forbids_does_not_exist(
    client: Client, kind: Kind, expected: type[Consumer], cumulative: bool
) -> None:
    """Rule CONS-53."""
    for given in (kind, SubscriptionType(kind)):
        async with client.subscribe("t", "s", given) as consumer:
            assert type(consumer) is expected
            assert hasattr(consumer, "acknowledge_cumulative") == cumulative
            assert hasattr(consumer, "reconsume_later_cumulative") == cumulative
            assert isinstance(consumer, trio.abc.ReceiveChannel)


async def test_the_type_is_known_before_it_runs(client: Client) -> None:
    """Checked by mypy: a literal kind gives its type, one of several gives what all kinds have."""
    async with client.subscribe("a", "s", "exclusive") as exclusive:
        assert_type(exclusive, ExclusiveConsumer)
    async with client.subscribe("b", "s", SubscriptionType.FAILOVER) as failover:
        assert_type(failover, FailoverConsumer)
    async with client.subscribe("c", "s") as shared:
        assert_type(shared, SharedConsumer)
    kinds: list[Kind] = ["key_shared", "shared"]
    async with client.subscribe("d", "s", kinds[0]) as consumer:
        assert_type(consumer, Consumer)


async def test_cumulative_acknowledgement(client: Client) -> None:
    async with client.subscribe("t", "s", "exclusive", initial_position="earliest") as consumer:
        await fill(client, "t", 5)
        messages = [await consumer.receive() for _ in range(5)]
        consumer.acknowledge_cumulative(messages[3])
    assert await numbers_left(client) == [4]


@pytest.mark.parametrize("kind", ["exclusive", "failover"])
async def test_a_cumulative_acknowledgement_is_a_plain_call(client: Client, kind: Kind) -> None:
    async with client.subscribe("t", "s", kind, initial_position="earliest") as consumer:
        assert isinstance(consumer, ExclusiveConsumer | FailoverConsumer)
        await fill(client, "t", 1)
        message = await consumer.receive()
        with pytest.raises(NotAwaitable, match="acknowledge_cumulative is a plain call"):
            await consumer.acknowledge_cumulative(message)  # type: ignore[misc]


@pytest.mark.parametrize("delay", [60.0, timedelta(minutes=1)])
async def test_a_message_and_all_before_it_are_done_and_that_message_is_redelivered(
    client: Client, delay: float | timedelta
) -> None:
    """The copy states the delay and the properties; only Shared kinds wait for the delay."""
    async with client.subscribe("t", "s", "exclusive", initial_position="earliest", retry=True) as consumer:
        await fill(client, "t", 3)
        messages = [await consumer.receive() for _ in range(3)]
        await consumer.reconsume_later_cumulative(messages[1], delay, {"why": "busy"})
        again = await consumer.receive()
        assert (again.data, again.properties["RECONSUMETIMES"]) == (b"1", "1")
        assert (again.properties["why"], again.properties["DELAY_TIME"]) == ("busy", "60000")
        consumer.acknowledge(again)
    assert await numbers_left(client) == [2]


@pytest.mark.parametrize(
    ("kind", "by_key"), [("exclusive", False), ("failover", False), ("shared", False), ("key_shared", True)]
)
def test_only_key_shared_consumers_handle_by_key(kind: Kind, by_key: bool) -> None:
    assert CONSUMER_TYPES[SubscriptionType(kind)]._by_key is by_key


async def test_a_failover_consumer_is_told_when_its_turn_comes(client: Client) -> None:
    """LSNR-05. Rule CFG-217."""
    async with client.subscribe("t", "s", "failover", consumer_name="a") as first:
        await until(lambda: first.active)
        async with client.subscribe("t", "s", "failover", consumer_name="b") as second:
            await until(lambda: second.active is not None)
            active, waiting = (first, second) if first.active else (second, first)
            told: list[bool] = []

            async def listen() -> None:
                told.append(await waiting.active_changed())
                with pytest.raises(ResourceClosed):
                    await waiting.active_changed()
                told.append(False)

            async with trio.open_nursery() as nursery:
                nursery.start_soon(listen)
                await trio.testing.wait_all_tasks_blocked()
                await active.aclose()
                with trio.fail_after(PATIENCE):
                    await until(lambda: told)
                await trio.testing.wait_all_tasks_blocked()
                await waiting.aclose()
            assert told == [True, False]
            with pytest.raises(ResourceClosed):
                await waiting.active_changed()
