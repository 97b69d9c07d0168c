"""Dispatch rates lose no message, stall no subscription and are not exceeded, in any order of events."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from pulsar_sansio.broker import BrokerConfig
from pulsar_sansio.broker.policies import MessageRate
from tests.broker.peer import SECOND, TOPIC, SubType, Type, World

KINDS = st.sampled_from([SubType.Exclusive, SubType.Shared, SubType.Key_Shared])
RATES = st.builds(MessageRate, st.integers(-1, 8), st.just(-1), st.integers(1, 3))
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("publish"), st.sampled_from([1, 1, 3])),
        st.tuples(st.just("flow"), st.integers(1, 5)),
        st.tuples(st.just("advance"), st.integers(1, 3000)),
        st.tuples(st.just("redeliver"), st.just(0)),
    ),
    max_size=40,
)
"""Commands, each with the messages of an entry, permits, or milliseconds."""

LONG = 10_000
"""Seconds after which every message has been delivered by the slowest rate."""


class Run:
    """One topic with a consumer of each of two subscriptions."""

    def __init__(self, kinds: tuple[Any, Any], topic: MessageRate, own: MessageRate) -> None:
        self.world = World(BrokerConfig(keepalive_interval=10.0 * 365 * 86_400))
        self.producing = self.world.connect()
        self.producing.producer()
        for policy, rate in (("dispatch_rate", topic), ("subscription_dispatch_rate", own)):
            self.world.broker.administration.set_policy(self.world.now, TOPIC, policy, rate)
        self.consumers = [self.world.connect() for _ in kinds]
        for number, (peer, kind) in enumerate(zip(self.consumers, kinds, strict=True)):
            peer.subscribe(kind, subscription=f"s{number}", permits=0)
        self.sizes: list[int] = []
        """The number of messages in each published entry."""
        self.received: list[set[int]] = [set(), set()]
        self.deliveries: list[list[tuple[int, int]]] = [[], []]
        """Moment (ns) and number of messages of each entry that a subscription delivered."""

    def step(self, command: str, number: int) -> None:
        if command == "publish":
            sequence, key = sum(self.sizes), f"key{len(self.sizes) % 3}"
            if number == 1:
                self.producing.publish(b"x", sequence, partition_key=key)
            else:
                self.producing.publish_batch([b"x"] * number, sequence, partition_key=key)
            self.sizes.append(number)
        elif command == "advance":
            self.advance(number * 1_000_000)
        for peer in self.consumers:
            if command == "flow":
                peer.flow(number)
            elif command == "redeliver":
                peer.redeliver()
        self._collect()

    def advance(self, span: int) -> None:
        """Let time pass from deadline to deadline, so that each delivery has its exact moment."""
        end = self.world.now + span
        while (due := self.world.broker.next_deadline()) is not None and due <= end:
            self.world.advance((max(due, self.world.now) - self.world.now) / SECOND)
            self._collect()
        self.world.now = end

    def _collect(self) -> None:
        for peer, received, deliveries in zip(self.consumers, self.received, self.deliveries, strict=True):
            while peer.inbox:
                entry = peer.expect(Type.MESSAGE).entry_id
                received.add(entry)
                deliveries.append((self.world.now, self.sizes[entry]))


def check_rate(deliveries: list[tuple[int, int]], rate: MessageRate) -> None:
    """In any span, no entry is delivered after a full bucket and all that flows into it are used up.

    Entries of one moment may have been delivered in any order, so the largest one counts as the last.
    """
    deliveries = sorted(deliveries)
    for index, (since, _) in enumerate(deliveries):
        taken = 0
        for moment, messages in deliveries[index:]:
            flowed = (moment - since) * rate.messages // (rate.period * SECOND)
            assert taken < rate.messages + flowed + 1
            taken += messages


@given(kinds=st.tuples(KINDS, KINDS), topic=RATES, own=RATES, steps=STEPS)
def test_every_subscription_receives_everything_in_time(
    kinds: tuple[Any, Any], topic: MessageRate, own: MessageRate, steps: list[tuple[str, int]]
) -> None:
    run = Run(kinds, topic, own)
    for command, number in steps:
        run.step(command, number)
    run.step("flow", 1000)
    run.advance(LONG * SECOND)
    assert run.received == [set(range(len(run.sizes)))] * 2
    if own.limits:
        for deliveries in run.deliveries:
            check_rate(deliveries, own)
    if topic.limits:
        check_rate(run.deliveries[0] + run.deliveries[1], topic)
