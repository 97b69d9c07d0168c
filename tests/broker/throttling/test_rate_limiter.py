"""A rate limiter lets connections and subscriptions go on in turn."""

from collections.abc import Callable

from pulsar_sansio.broker.outputs import Output
from pulsar_sansio.broker.policies import MessageRate
from pulsar_sansio.broker.throttling.rate_limiter import LEAST_PAUSE, SECOND, RateLimiter
from pulsar_sansio.core.context import Context


def context() -> Context[Output]:
    return Context(0, 1)


def advance(context: Context[Output], until: int) -> None:
    while (due := context.deadlines.next()) is not None and due <= until:
        context.now = due
        context.deadlines.run(due)
    context.now = until


def test_both_limits_need_a_token() -> None:
    limiter = RateLimiter(context(), MessageRate(messages=2, size=100))
    assert limiter.take(1, 99)
    assert not limiter.take(0, 1), "no byte is left"
    assert not RateLimiter(context(), MessageRate(messages=1)).take(1, 10**9)
    assert RateLimiter(context(), MessageRate(size=100)).take(10**9, 99)


def test_a_period_below_one_second_counts_as_one() -> None:
    clock = context()
    limiter = RateLimiter(clock, MessageRate(messages=1, period=0))
    gone: list[int] = []
    limiter.take(1, 0)
    limiter.wait("a", lambda: gone.append(clock.now))
    advance(clock, 2 * SECOND)
    assert gone == [SECOND]


def taker(
    clock: Context[Output], limiter: RateLimiter, name: str, log: list[tuple[str, int]]
) -> Callable[[], None]:
    """One that always has another message."""

    def go_on() -> None:
        while limiter.admits(name, go_on):
            log.append((name, clock.now // SECOND))
            if not limiter.take(1, 0):
                limiter.wait(name, go_on)
                return

    return go_on


def test_those_that_share_a_limiter_take_turns() -> None:
    """A subscription with a long backlog does not keep the topic's rate for itself."""
    clock = context()
    limiter = RateLimiter(clock, MessageRate(messages=1))
    log: list[tuple[str, int]] = []
    for name in ("a", "b", "c"):
        taker(clock, limiter, name, log)()
    advance(clock, 6 * SECOND)
    assert log == [("a", 0), ("a", 1), ("b", 2), ("c", 3), ("a", 4), ("b", 5), ("c", 6)]


def test_a_newcomer_waits_behind_those_that_wait() -> None:
    clock = context()
    limiter = RateLimiter(clock, MessageRate(messages=1000))
    gone: list[str] = []
    limiter.take(1000, 0)
    limiter.wait("first", lambda: gone.append("first"))
    clock.now = 2_000_000  # There are tokens, and the turn of the first comes with the timer.
    assert not limiter.admits("second", lambda: gone.append("second"))
    advance(clock, LEAST_PAUSE)
    assert gone == ["first", "second"]
    assert limiter.admits("third", lambda: None)


def test_a_high_rate_costs_few_wake_ups() -> None:
    """An entry of 1 kB every 100 µs would be a timer each; the limiter waits for a hundred of them."""
    clock = context()
    limiter = RateLimiter(clock, MessageRate(size=10_000_000))
    log: list[tuple[str, int]] = []
    wakes: list[int] = []

    def go_on() -> None:
        wakes.append(clock.now)
        while limiter.admits("a", go_on):
            log.append(("a", 0))
            if not limiter.take(1, 1000):
                limiter.wait("a", go_on)
                return

    go_on()
    advance(clock, SECOND)
    assert wakes == [0, *range(LEAST_PAUSE, SECOND + 1, LEAST_PAUSE)]
    assert len(log) == 20_000


def test_one_that_left_does_not_go_on() -> None:
    clock = context()
    limiter = RateLimiter(clock, MessageRate(messages=1))
    gone: list[str] = []
    limiter.take(1, 0)
    limiter.wait("a", lambda: gone.append("a"))
    limiter.wait("b", lambda: gone.append("b"))
    limiter.leave("a")
    limiter.leave("a")
    advance(clock, SECOND)
    assert gone == ["b"]


def test_the_last_one_that_leaves_leaves_no_timer() -> None:
    """A large message may leave a debt of days, and the topic may be deleted meanwhile."""
    clock = context()
    limiter = RateLimiter(clock, MessageRate(size=1))
    gone: list[int] = []
    limiter.take(1, 10**6)
    limiter.wait("a", lambda: None)
    limiter.leave("a")
    assert clock.deadlines.next() is None
    limiter.wait("b", lambda: gone.append(clock.now))
    advance(clock, 10**6 * SECOND)
    assert gone == [10**6 * SECOND]


def test_all_go_on_when_the_rate_no_longer_holds() -> None:
    clock = context()
    limiter = RateLimiter(clock, MessageRate(messages=1, period=3600))
    gone: list[str] = []
    limiter.take(100, 0)
    limiter.wait("a", lambda: gone.append("a"))
    limiter.wait("b", lambda: gone.append("b"))
    limiter.close()
    assert gone == ["a", "b"]
    assert clock.deadlines.next() is None
