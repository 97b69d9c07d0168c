"""Statistics that are logged at an interval."""

import logging
from typing import Any

import pytest
import trio
import trio.testing

from pulsar_sansio import InvalidConfiguration
from pulsar_trio import open_broker, open_client


async def test_each_producer_and_consumer_has_a_line_with_its_rates(
    autojump_clock: trio.testing.MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    """Rule TIMER-12. Rule STATS-01."""
    caplog.set_level(logging.INFO, "pulsar_trio")
    async with open_broker() as broker, open_client(broker.url, statistics_interval=10) as client:
        async with client.subscribe("t", "s") as consumer, client.create_producer("t") as producer:
            await producer.send_many([b"12345"] * 100)
            for _ in range(40):
                consumer.acknowledge(await consumer.receive())
            await trio.sleep(10.5)
            sent, received = sorted(record.getMessage() for record in caplog.records)
            assert "10.0 messages/s, 50 bytes/s, 100 confirmed, 0 failed, 0 pending; ms until" in sent
            assert "4.0 messages/s" in received
            assert "0 of all failed, 60 wait" in received
            caplog.clear()
            await trio.sleep(10)
            assert all(": 0.0 messages/s" in line.getMessage() for line in caplog.records)
            assert len(caplog.records) == 2
        caplog.clear()
        await trio.sleep(10)
        assert not caplog.records
    caplog.clear()
    await trio.sleep(100)
    assert not caplog.records


@pytest.mark.parametrize("interval", [0, 0.05, -1, float("inf"), float("nan"), True, "60"])
async def test_an_interval_that_is_none_is_refused(interval: Any) -> None:
    with pytest.raises(InvalidConfiguration, match="statistics_interval"):
        async with open_client("pulsar://localhost", statistics_interval=interval):
            raise AssertionError("not reached")
