"""Rates cover the last whole interval, and nothing is kept of objects that no longer exist."""

from pulsar_sansio.broker import BrokerConfig
from pulsar_sansio.broker.rates import Rates
from tests.broker.peer import SECOND, TOPIC, World


class Counter:
    """An object with counters."""

    def __init__(self) -> None:
        self.counted = [0, 0, 0, 0]

    def counters(self) -> tuple[int, int, int, int]:
        messages_in, bytes_in, messages_out, bytes_out = self.counted
        return messages_in, bytes_in, messages_out, bytes_out


def read(rates: Rates, counter: Counter) -> list[float]:
    rate = rates.of(counter)
    return [rate.messages_in, rate.bytes_in, rate.messages_out, rate.bytes_out]


def test_per_second_over_the_last_interval() -> None:
    rates, counter = Rates(0), Counter()
    counter.counted = [10, 1000, 20, 2000]
    assert read(rates, counter) == [0, 0, 0, 0], "before the first interval"
    rates.update(10 * SECOND, [counter])
    assert read(rates, counter) == [1, 100, 2, 200]
    counter.counted = [10, 1000, 40, 4000]
    assert read(rates, counter) == [1, 100, 2, 200], "until the interval ends"
    rates.update(30 * SECOND, [counter])
    assert read(rates, counter) == [0, 0, 1, 100]
    rates.update(40 * SECOND, [counter])
    assert read(rates, counter) == [0, 0, 0, 0]


def test_no_time_is_no_interval() -> None:
    rates, counter = Rates(0), Counter()
    counter.counted = [10, 0, 0, 0]
    rates.update(10 * SECOND, [counter])
    rates.update(10 * SECOND, [counter])
    assert read(rates, counter)[0] == 1


def test_what_is_gone_is_forgotten() -> None:
    rates, counter = Rates(0), Counter()
    counter.counted = [10, 0, 0, 0]
    rates.update(10 * SECOND, [counter])
    rates.update(20 * SECOND, [])
    assert read(rates, counter)[0] == 0
    rates.update(30 * SECOND, [counter])
    assert read(rates, counter)[0] == 1, "a stranger again: all of it is new"


def test_rates_in_the_stats_of_a_topic() -> None:
    world = World(BrokerConfig(housekeeping_interval=10.0))
    peer = world.connect()
    peer.producer(name="p")
    peer.subscribe()
    peer.flow(1000)
    for sequence in range(20):
        peer.publish(b"x" * 50, sequence)
    stats = world.broker.topic_administration.stats(TOPIC)
    assert (stats["msgInCounter"], stats["msgOutCounter"], stats["msgRateIn"]) == (20, 20, 0.0)
    world.advance(10)
    stats = world.broker.topic_administration.stats(TOPIC)
    assert (stats["msgRateIn"], stats["msgRateOut"]) == (2.0, 2.0)
    assert stats["msgThroughputIn"] == stats["bytesInCounter"] / 10
    assert stats["averageMsgSize"] == stats["bytesInCounter"] / 20
    assert stats["publishers"][0]["msgRateIn"] == 2.0
    subscription = stats["subscriptions"]["s"]
    assert subscription["msgRateOut"] == subscription["consumers"][0]["msgRateOut"] == 2.0
    world.advance(10)
    assert world.broker.topic_administration.stats(TOPIC)["msgRateIn"] == 0.0


def test_rates_in_the_stats_of_a_non_persistent_topic() -> None:
    """Its one producer has the rates of the topic."""
    topic = TOPIC.replace("persistent", "non-persistent", 1)
    world = World(BrokerConfig(housekeeping_interval=10.0))
    peer = world.connect()
    peer.producer(topic, name="p")
    for sequence in range(20):
        peer.publish(b"x" * 50, sequence)
    world.advance(10)
    stats = world.broker.topic_administration.stats(topic)
    (producer,) = stats["publishers"]
    assert producer["msgRateIn"] == stats["msgRateIn"] == 2.0
    assert producer["msgThroughputIn"] == stats["msgThroughputIn"] == stats["bytesInCounter"] / 10
    assert producer["averageMsgSize"] == stats["averageMsgSize"]
