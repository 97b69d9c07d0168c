"""Scenes for tests of consumers: a topic with entries, and the backlog of a subscription."""

from typing import Any

from pulsar_sansio.broker import BrokerConfig
from tests.broker.peer import TOPIC, Peer, World

EARLIEST = {"ledgerId": 2**64 - 1, "entryId": 2**64 - 1}
LATEST = {"ledgerId": 2**63 - 1, "entryId": 2**63 - 1}


def topic_with(*payloads: bytes, config: BrokerConfig | None = None) -> tuple[World, Peer]:
    """A topic with these entries, kept by a subscription named "keep"."""
    world = World(config)
    peer = world.connect()
    peer.producer(initial_subscription_name="keep")
    for number, payload in enumerate(payloads):
        peer.publish(payload, number)
    peer.inbox.clear()
    return world, world.connect()


def backlog(world: World, subscription: str = "s") -> Any:
    return world.broker.topic_administration.stats(TOPIC)["subscriptions"][subscription]["backlog"]


def batch_topic(config: BrokerConfig | None = None) -> tuple[World, Peer]:
    """A topic with one batch of four messages."""
    world, peer = topic_with(config=config)
    producing = world.connect()
    producing.producer()
    producing.publish_batch([b"0", b"1", b"2", b"3"])
    return world, peer
