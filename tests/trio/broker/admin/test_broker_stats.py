"""The stats of all topics without a socket: both kinds of topics, and too many of them."""

import pytest

from pulsar_trio.broker.admin.metrics import broker_stats
from tests.trio.broker.admin.asking import Administrator

BUNDLE = "0x00000000_0xffffffff"


def test_topics_of_both_kinds_by_their_namespace() -> None:
    broker = Administrator()
    assert broker.ask("GET", "/broker-stats/topics") == (200, {})
    assert broker.ask("PUT", "/persistent/public/default/t/subscription/s") == (204, None)
    assert broker.ask("PUT", "/non-persistent/public/default/v") == (204, None)
    peer = broker.world.connect()
    peer.producer()
    peer.publish(b"x", 0)
    status, found = broker.ask("GET", "/broker-stats/topics")
    assert status == 200
    assert set(found) == {"public/default"}
    bundle = found["public/default"][BUNDLE]
    assert list(bundle["non-persistent"]) == ["non-persistent://public/default/v"]
    topic = bundle["persistent"]["persistent://public/default/t"]
    assert (topic["producerCount"], topic["msgInCount"]) == (1, 1)
    assert topic["subscriptions"]["s"]["msgBacklog"] == 1
    assert topic["storageSize"] > 0


def test_too_many_topics(monkeypatch: pytest.MonkeyPatch) -> None:
    """The answer would keep the broker from its clients for too long."""
    broker = Administrator()
    monkeypatch.setattr(broker_stats, "MAX_TOPICS", 1)
    for name in "ab":
        assert broker.ask("PUT", f"/persistent/public/default/{name}") == (204, None)
    status, reason = broker.ask("GET", "/broker-stats/topics")
    assert (status, "2 topics" in reason) == (503, True)


def test_there_is_no_jvm() -> None:
    broker = Administrator()
    status, reason = broker.ask("GET", "/broker-stats/allocator-stats/default")
    assert (status, "allocator-stats/default" in reason) == (501, True)
