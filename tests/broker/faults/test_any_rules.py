"""Any rules and any commands: no combination ends the broker or leaves anything behind."""

from random import Random
from typing import Any

import pytest

from pulsar_sansio import InvalidConfiguration, ServerError
from pulsar_sansio.broker.faults.commands import FROM_BROKER, FROM_CLIENT
from pulsar_sansio.broker.faults.fault_rule import KINDS
from pulsar_sansio.wire import INDIVIDUAL, encode_ack, encode_flow, proto
from tests.broker.faults.test_client_commands import REQUESTS
from tests.broker.peer import Peer, SubType, Type, World

NAMES = ["*", *FROM_CLIENT, *FROM_BROKER]


def add_rules(world: World, draw: Random) -> int:
    """Add the rules that can be, among twelve that are drawn; return their number."""
    added = 0
    for _ in range(12):
        fault = draw.choice(KINDS)
        options: dict[str, Any] = {
            "sent_by": draw.choice([None, "client", "broker"]),
            "after": draw.choice([0, 0, 3]),
            "times": draw.choice([None, 1, 5]),
            "probability": draw.choice([1.0, 0.3]),
            "topic": draw.choice(["*", "*", "t", "t*"]),
        }
        if fault == "error":
            options["code"] = draw.choice(list(ServerError))
        if fault == "delay":
            options["seconds"] = draw.choice([0.001, 1.0, 100.0])
        try:
            world.broker.faults.add(world.now, draw.choice(NAMES), fault, **options)
        except InvalidConfiguration:
            continue
        added += 1
    world.pump()
    return added


def act(world: World, peer: Peer, draw: Random, number: int) -> None:
    """Let a client do one thing, whether it makes sense or not."""
    owner = draw.randrange(2)
    match draw.randrange(10):
        case 0:
            peer.ask_producer(producer_id=owner)
        case 1 | 2:
            peer.publish(b"x", number, producer_id=owner)
        case 3:
            peer.ask_subscribe(SubType.Shared, owner)
        case 4:
            peer.feed(encode_flow(owner, 10))
        case 5:
            peer.feed(encode_ack(owner, INDIVIDUAL, [(0, draw.randrange(5), None)], request_id=number))
        case 6:
            peer.redeliver(consumer_id=owner)
        case 7:
            world.advance(draw.choice([0.0, 0.5, 40.0]))
        case 8:
            peer.send(Type.PING, proto.CommandPing())
        case _:
            name = draw.choice([each for each in REQUESTS if each != "CONNECT"])
            peer.send(Type.Value(name), REQUESTS[name])


@pytest.mark.unwatched(why="rules of faults break the rules of the protocol")
def test_any_rules_and_any_commands() -> None:
    rules = 0
    for seed in range(300):
        draw = Random(seed)
        world = World()
        rules += add_rules(world, draw)
        for number in range(40):
            peer = next(iter(world.peers.values()), None)
            if peer is None:
                peer = world.raw()
                peer.send(Type.CONNECT, REQUESTS["CONNECT"])
                peer.take = lambda data: None  # type: ignore[method-assign]  # half a frame cannot be read
            else:
                act(world, peer, draw, number)
        world.broker.faults.clear(world.now)
        world.pump()
        assert all(each.interposed is None for each in world.broker.links.values())
        for each in list(world.peers.values()):
            each.drop()
        fine = world.connect()
        fine.producer(topic="new")
        fine.subscribe(topic="new", consumer_id=5)
        fine.publish(b"fine")
        fine.expect(Type.SEND_RECEIPT)
        assert fine.payloads() == [b"fine"]
    assert rules > 1000
