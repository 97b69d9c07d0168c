"""SUBSCRIBE commands of a consumer, counted in periods that follow each other."""

from pulsar_sansio.broker.outputs import Output
from pulsar_sansio.broker.policies import SubscribeRate
from pulsar_sansio.broker.throttling.rate_limiter import SECOND
from pulsar_sansio.broker.throttling.subscribe_throttle import MOST_COUNTED, SubscribeThrottle
from pulsar_sansio.core.context import Context

CONSUMER = ("127.0.0.1:1", "c", 0)


def test_periods_begin_when_the_rate_was_set() -> None:
    clock: Context[Output] = Context(3 * SECOND, 1)
    throttle = SubscribeThrottle(clock, SubscribeRate(1, 10))
    allowed = []
    for moment in (3, 4, 12, 13, 14, 48, 52, 53):
        clock.now = moment * SECOND
        allowed.append((moment, throttle.take(CONSUMER)))
    assert [moment for moment, ok in allowed if ok] == [3, 13, 48, 53]


def test_no_limit_where_a_number_is_not_above_zero() -> None:
    for rate in (SubscribeRate(0), SubscribeRate(-1), SubscribeRate(1, 0), SubscribeRate(1, -5)):
        throttle = SubscribeThrottle(Context(0, 1), rate)
        assert all(throttle.take(CONSUMER) for _ in range(3)), rate


def test_a_client_with_ever_new_names_fills_no_memory() -> None:
    throttle = SubscribeThrottle(Context(0, 1), SubscribeRate(1, 2**31))
    names = [("127.0.0.1:1", f"c{number}", 0) for number in range(MOST_COUNTED + 1)]
    assert all(throttle.take(name) for name in names)
    assert not throttle.take(names[1])
    assert throttle.take(names[0]), "discarded for the last one"
