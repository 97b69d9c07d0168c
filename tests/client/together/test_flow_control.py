"""Every kind of receiver queue against a broker that keeps to its permits: no consumer is ever stuck."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pulsar_sansio.model.config import BatchReceivePolicy, SubscriptionType
from pulsar_sansio.model.interceptors import ConsumerInterceptor
from tests.client.broker_script import ConsumerScript, batch_bytes, entry_bytes

KINDS: dict[str, dict[str, Any]] = {
    "nothing in advance": {"receiver_queue_size": 0},
    "one": {"receiver_queue_size": 1},
    "several": {"receiver_queue_size": 5},
    "scaled": {"receiver_queue_size": 8, "auto_scaled_receiver_queue_size": True},
    "collected": {"receiver_queue_size": 5, "batch_receive": BatchReceivePolicy(4, 9, 0.0)},
    "timed": {"receiver_queue_size": 3, "acknowledgement_timeout": 1.0},
    "seen": {"receiver_queue_size": 5, "interceptors": (ConsumerInterceptor(),)},
    "all of it": {
        "receiver_queue_size": 6,
        "acknowledgement_timeout": 1.0,
        "batch_receive": BatchReceivePolicy(3),
        "interceptors": (ConsumerInterceptor(),),
    },
    "paused at first": {"receiver_queue_size": 2, "start_paused": True},
}

ACTIONS = [
    "publish",
    "batch",
    "broken",
    "receive",
    "take",
    "nack",
    "redeliver",
    "reconnect",
    "pause",
    "resume",
]


class Broker:
    """A broker that sends whole entries while it has permits."""

    def __init__(self, **spec: Any) -> None:
        self.s = ConsumerScript(subscription_type=SubscriptionType.SHARED, **spec)
        self.size = spec["receiver_queue_size"]
        self.permits = 0
        self.waiting: list[int] = []
        self.out: list[int] = []
        self.sizes: list[int] = []
        self.broken: set[int] = set()
        self.s.accept()
        self.go_on()

    def publish(self, size: int, broken: bool = False) -> None:
        if broken:
            self.broken.add(len(self.sizes))
        self.waiting.append(len(self.sizes))
        self.sizes.append(size)
        self.go_on()

    def go_on(self) -> None:
        """Take the client's commands, and send what the permits allow."""
        while True:
            for name, command in self.s.frames():
                if name == "FLOW":
                    assert command.message_permits > 0
                    self.permits += command.message_permits
                elif name == "ACK":
                    for ledger_and_entry in command.message_ids:
                        self.settle(ledger_and_entry[1])
                elif name == "REDELIVER_UNACKNOWLEDGED_MESSAGES":
                    ids = [each.entryId for each in command.message_ids] or list(self.out)
                    self.take_back([each for each in ids if each in self.out])
            assert self.permits <= max(self.size, 1)
            if self.permits <= 0 or not self.waiting:
                return
            entry = self.waiting.pop(0)
            self.out.append(entry)
            self.permits -= max(self.sizes[entry], 1)
            self.send(entry)

    def send(self, entry: int) -> None:
        size = self.sizes[entry]
        stored = bytearray(batch_bytes([b"%d" % entry] * size) if size else entry_bytes(b"%d" % entry))
        if entry in self.broken:
            stored[-1] ^= 1
        self.s.deliver(entry, bytes(stored))

    def settle(self, entry: int) -> None:
        for places in (self.out, self.waiting):
            if entry in places:
                places.remove(entry)

    def take_back(self, entries: list[int]) -> None:
        for entry in entries:
            self.out.remove(entry)
        self.waiting = sorted(self.waiting + entries)

    def reconnect(self) -> None:
        self.s.frames()
        self.permits = 0
        self.take_back(list(self.out))
        self.s.reconnect()
        self.go_on()


def act(broker: Broker, action: str) -> None:
    s = broker.s
    match action:
        case "publish":
            broker.publish(0)
        case "batch":
            broker.publish(3)
        case "broken":
            broker.publish(4, broken=True)
        case "receive":
            if (message := s.receive()) is not None:
                s.acknowledge(message)
        case "take":
            s.acknowledge(s.take_together(3))
        case "nack":
            if (message := s.receive()) is not None:
                s.negative_acknowledge(message)
        case "redeliver":
            s.redeliver()
        case "reconnect":
            broker.reconnect()
        case "pause":
            s.client.pause(s.now, s.consumer)
        case "resume":
            s.client.resume(s.now, s.consumer)
    broker.go_on()


GROWS = pytest.mark.breaks("INV-C6", why="a queue that scales outgrows the first grant of a connection")


@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=[GROWS] if kind == "scaled" else []) for kind in KINDS]
)
@given(st.lists(st.sampled_from(ACTIONS), max_size=25))
@settings(max_examples=12)
def test_everything_comes_in_the_end(kind: str, actions: list[str]) -> None:
    broker = Broker(
        negative_acknowledgement_delay=0.0,
        acknowledgement_group_time=0.0,
        **KINDS[kind],
    )
    for action in actions:
        act(broker, action)
    act(broker, "resume")
    act(broker, "redeliver")
    for _ in range(4 * sum(max(size, 1) for size in broker.sizes) + 4):
        act(broker, "receive")
    assert not broker.waiting
    assert not broker.out
