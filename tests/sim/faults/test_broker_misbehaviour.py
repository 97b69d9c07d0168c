"""Misbehaviour does to frames only what a real broker could do."""

from types import SimpleNamespace
from typing import Any

from pulsar_sansio.wire import Send, proto
from pulsar_sim.engine.randomness import Stream
from pulsar_sim.faults.broker_misbehaviour import BrokerMisbehaviour

T = proto.BaseCommand


def standing_between() -> tuple[BrokerMisbehaviour, Any, list[Any]]:
    """Return the misbehaviour, a wire, and the kinds of frames that it sends to the client there."""
    said: list[Any] = []
    world: Any = SimpleNamespace(
        model=SimpleNamespace(refuses_sends=False),
        clock=SimpleNamespace(now=0),
        count_fault=lambda name: None,
        trace=SimpleNamespace(add=lambda *_: None),
    )
    to_client = SimpleNamespace(inject=lambda data, kind, command: said.append(kind))
    wire: Any = SimpleNamespace(number=3, to_client=to_client)
    return BrokerMisbehaviour(world, Stream(1)), wire, said


def test_a_refused_producer_that_is_opened_anew_is_heard_again() -> None:
    """The refusal may cross the broker's CLOSE_PRODUCER: the client opens the producer again on that wire, by
    its id."""
    misbehaviour, wire, said = standing_between()
    misbehaviour.arm("send_refused", 1)
    assert misbehaviour.to_broker(wire, T.SEND, Send(0, 5)) == b""
    assert said == [T.SEND_ERROR]
    assert misbehaviour.to_broker(wire, T.SEND, Send(0, 6)) == b""
    assert misbehaviour.to_broker(wire, T.SEND, Send(1, 6)) is None
    again = proto.CommandProducer(topic="t", producer_id=0, request_id=1)
    assert misbehaviour.to_broker(wire, T.PRODUCER, again) is None
    assert misbehaviour.to_broker(wire, T.SEND, Send(0, 5)) is None


def test_what_is_refused_for_what_it_is_is_refused_again() -> None:
    """The client may have missed the refusal. Among later stored messages the broker would take it for a
    duplicate and confirm a message that it does not have: a hole that TCP cannot make."""
    misbehaviour, wire, said = standing_between()
    misbehaviour.arm("message_not_allowed", 1)
    assert misbehaviour.to_broker(wire, T.SEND, Send(0, 5, payload=b"wrong")) == b""
    assert misbehaviour.to_broker(wire, T.SEND, Send(0, 6, payload=b"right")) is None
    misbehaviour.heal()
    assert misbehaviour.to_broker(wire, T.SEND, Send(0, 5, payload=b"wrong")) == b""
    assert misbehaviour.to_broker(wire, T.SEND, Send(0, 6, payload=b"right")) is None
    assert said == [T.SEND_ERROR, T.SEND_ERROR]
