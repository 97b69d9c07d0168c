"""Scenes for tests of dispatchers: a topic with a producer and a consumer, and the consumer of each entry."""

from typing import Any

from pulsar_sansio.broker import BrokerConfig
from pulsar_sansio.wire import MessageCommand, unpack_payload
from tests.broker.peer import TOPIC, Peer, World

KEYS = "abcdefghij"


def world_with(config: BrokerConfig | None = None, **policies: Any) -> tuple[World, Peer, Peer]:
    world = World(config)
    producing, consuming = world.connect(), world.connect()
    producing.producer()
    for name, value in policies.items():
        world.broker.administration.set_policy(0, TOPIC, name, value)
    world.pump()
    return world, producing, consuming


def publish(peer: Peer, count: int, start: int = 0) -> None:
    for number in range(start, start + count):
        peer.publish(b"%d" % number, number)
    peer.inbox.clear()


def by_consumer(messages: list[MessageCommand]) -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    for message in messages:
        found.setdefault(message.consumer_id, []).append(message.entry_id)
    return found


def consumer_stats(world: World, place: int = 0) -> Any:
    return world.broker.topic_administration.stats(TOPIC)["subscriptions"]["s"]["consumers"][place]


def keyed(peer: Peer, keys: str, start: int = 0) -> None:
    for number, key in enumerate(keys, start):
        peer.publish(b"%d" % number, number, partition_key=key)
    peer.inbox.clear()


def key_of(message: MessageCommand) -> str:
    return unpack_payload(message.payload).metadata.partition_key or ""
