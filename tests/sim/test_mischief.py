"""What is done to frames on their way must be what a real broker could do."""

from types import SimpleNamespace
from typing import Any

from pulsar_sansio.sim.mischief import Mischief
from pulsar_sansio.sim.streams import Stream
from pulsar_sansio.wire import Send, proto

T = proto.BaseCommand


def test_a_refused_producer_that_is_opened_anew_is_heard_again() -> None:
    """The refusal may cross the broker's CLOSE_PRODUCER: the client comes back on the same wire, by the
    same id."""
    said: list[Any] = []
    world: Any = SimpleNamespace(
        clock=SimpleNamespace(now=0),
        count_fault=lambda name: None,
        trace=SimpleNamespace(add=lambda *_: None),
    )
    to_client = SimpleNamespace(inject=lambda data, kind, command: said.append(kind))
    wire: Any = SimpleNamespace(number=3, to_client=to_client)
    mischief = Mischief(world, Stream(1))
    mischief.arm("send_refused", 1)
    assert mischief.to_broker(wire, T.SEND, Send(0, 5)) == b""
    assert said == [T.SEND_ERROR]
    assert mischief.to_broker(wire, T.SEND, Send(0, 6)) == b""
    assert mischief.to_broker(wire, T.SEND, Send(1, 6)) is None
    again = proto.CommandProducer(topic="t", producer_id=0, request_id=1)
    assert mischief.to_broker(wire, T.PRODUCER, again) is None
    assert mischief.to_broker(wire, T.SEND, Send(0, 5)) is None
