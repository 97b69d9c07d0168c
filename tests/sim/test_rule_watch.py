"""The checker of rules listens at both ends, and each end answers for itself only."""

from types import SimpleNamespace
from typing import Any

import pytest

from pulsar_sansio.sim import World
from pulsar_sansio.sim.checker import Side
from pulsar_sansio.sim.network import GARBAGE
from pulsar_sansio.sim.rule_watch import RuleWatch
from pulsar_sansio.sim.violations import ViolationError
from pulsar_sansio.wire import Flow, proto

T = proto.BaseCommand


class End:
    """One end of one wire."""

    def __init__(self, side: Side) -> None:
        self.watch = RuleWatch()
        self.side = side
        self.wire: Any = SimpleNamespace(number=1)

    def seen(self, by: Side, kind: int, command: Any) -> None:
        self.watch.seen(self.side, lambda wire: "process", self.wire, by, kind, command)

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


def test_behind_garbage_nothing_is_read() -> None:
    end = End(Side.CLIENT)
    end.shake_hands()
    end.seen(Side.BROKER, GARBAGE, None)
    end.seen(Side.BROKER, T.SUCCESS, proto.CommandSuccess(request_id=99))


def test_every_frame_of_a_world_is_judged_at_both_ends() -> None:
    world = World(3)
    world.run()
    assert world.rules.frames > 300
