"""The log of the statistics of producers and consumers, at an interval (rule STATS-01).

Each producer and consumer has one line at INFO, with the rates since its last line. The log only reads the
counters; an application that wants the figures calls `statistics()`. The Java client logs every minute. This
client logs only on request, so a program under a `MockClock` has no timer that it did not set.
"""

from collections.abc import Mapping
from logging import getLogger

import trio

from ..consuming.consumer import Consumer, ConsumerStatistics
from ..producing.producer import Producer, ProducerStatistics
from .driver_side import DriverSide

_log = getLogger("pulsar_trio.statistics_log")

Statistics = ProducerStatistics | ConsumerStatistics


async def log_statistics(sides: Mapping[int, DriverSide], interval: float) -> None:
    """Log every `interval` seconds, for ever. `sides`: all that are open, as they come and go."""
    last: dict[int, Statistics] = {}
    while True:
        await trio.sleep(interval)
        now: dict[int, Statistics] = {}
        for handle, side in list(sides.items()):
            endpoint = side.endpoint
            if isinstance(endpoint, Producer):
                now[handle] = sent = endpoint.statistics()
                _log.info("%r: %s", endpoint, _producer_line(sent, last.get(handle), interval))
            elif isinstance(endpoint, Consumer):
                now[handle] = received = endpoint.statistics()
                _log.info("%r: %s", endpoint, _consumer_line(received, last.get(handle), interval))
        last = now


def _producer_line(now: ProducerStatistics, last: Statistics | None, interval: float) -> str:
    before = last if isinstance(last, ProducerStatistics) else None
    messages = now.messages_sent - (before.messages_sent if before else 0)
    size = now.bytes_sent - (before.bytes_sent if before else 0)
    line = (
        f"{messages / interval:.1f} messages/s, {size / interval:.0f} bytes/s, {now.confirmed} confirmed, "
        f"{now.failed} failed, {now.pending} pending"
    )
    if now.latency is not None:
        line += (
            f"; ms until the receipt: half within {now.latency.p50 * 1000:.1f}, "
            f"99 % within {now.latency.p99 * 1000:.1f}, at most {now.latency.maximum * 1000:.1f}"
        )
    return line


def _consumer_line(now: ConsumerStatistics, last: Statistics | None, interval: float) -> str:
    before = last if isinstance(last, ConsumerStatistics) else None
    messages = now.messages_received - (before.messages_received if before else 0)
    size = now.bytes_received - (before.bytes_received if before else 0)
    acknowledgements = now.acknowledgements_sent - (before.acknowledgements_sent if before else 0)
    return (
        f"{messages / interval:.1f} messages/s, {size / interval:.0f} bytes/s, "
        f"{acknowledgements / interval:.1f} acknowledgements/s, {now.acknowledgements_failed} of all failed, "
        f"{now.available} wait"
    )
