"""The checker of rules listens at both ends, and each end answers for itself only."""

from collections import Counter
from types import SimpleNamespace
from typing import Any

import pytest

from pulsar_sansio.conformance import Conversation, Side
from pulsar_sansio.wire import Flow, proto
from pulsar_sim import World
from pulsar_sim.checks.conformance import RuleWatch
from pulsar_sim.engine.failures import ViolationError
from pulsar_sim.engine.network import GARBAGE, Wire

T = proto.BaseCommand


class End:
    """One end of one wire."""

    def __init__(self, side: Side) -> None:
        self.watch = RuleWatch(lambda wire: "process", lambda wire: "process")
        self.end = self.watch.clients if side is Side.CLIENT else self.watch.brokers
        self.side = side
        self.wire: Any = SimpleNamespace(number=1)

    def seen(self, by: Side, kind: int, command: Any) -> None:
        (self.end.wrote if by is self.side else self.end.received)(self.wire, kind, command)

    def shake_hands(self) -> None:
        self.seen(Side.CLIENT, T.CONNECT, proto.CommandConnect(client_version="test", protocol_version=21))
        connected = proto.CommandConnected(server_version="test", protocol_version=21, max_message_size=9_999)
        self.seen(Side.BROKER, T.CONNECTED, connected)


def test_a_client_is_judged_at_its_own_end() -> None:
    end = End(Side.CLIENT)
    end.shake_hands()
    with pytest.raises(ViolationError, match="consumer"):
        end.seen(Side.CLIENT, T.FLOW, Flow(7, 100))


def test_a_client_is_not_judged_at_the_brokers_end() -> None:
    end = End(Side.BROKER)
    end.shake_hands()
    end.seen(Side.CLIENT, T.FLOW, Flow(7, 100))
    success = proto.CommandSuccess(request_id=99)
    with pytest.raises(ViolationError, match="99"):
        end.seen(Side.BROKER, T.SUCCESS, success)


def test_what_one_process_is_excused_from_others_are_not() -> None:
    end = End(Side.CLIENT)
    end.shake_hands()
    with pytest.raises(ViolationError) as found:
        end.seen(Side.CLIENT, T.FLOW, Flow(7, 100))
    end.watch.excuse("another", found.value.rule)
    with pytest.raises(ViolationError):
        end.seen(Side.CLIENT, T.FLOW, Flow(7, 100))
    end.watch.excuse("process", found.value.rule)
    end.seen(Side.CLIENT, T.FLOW, Flow(7, 100))


def test_behind_garbage_nothing_is_read() -> None:
    end = End(Side.CLIENT)
    end.shake_hands()
    end.seen(Side.BROKER, GARBAGE, None)
    end.seen(Side.BROKER, T.SUCCESS, proto.CommandSuccess(request_id=99))


def test_every_frame_of_a_world_is_judged_where_it_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(3)
    written, judged, received = Counter[bool](), Counter[bool](), Counter[bool]()
    monitor = world.network.monitor

    def counted(wire: Wire, to_broker: bool, kind: int, command: Any) -> bytes | None:
        written[to_broker] += 1
        return monitor(wire, to_broker, kind, command)

    def count(name: str, into: Counter[bool]) -> None:
        original = getattr(Conversation, name)

        def counting(self: Conversation, side: Side, kind: int, command: Any) -> Any:
            into[side is Side.CLIENT] += 1
            return original(self, side, kind, command)

        monkeypatch.setattr(Conversation, name, counting)

    world.network.monitor = counted
    count("frame", judged)
    count("received", received)
    world.run()
    assert judged == written
    assert set(received) == {True, False}
