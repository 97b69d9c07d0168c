"""Lists of topics, requested and watched."""

from typing import Any

import pytest

from pulsar_sansio.broker import BrokerConfig
from pulsar_sansio.broker.serving.topic_list_watch import MAX_WATCHERS_PER_CONNECTION
from pulsar_sansio.wire import proto, topics_hash
from tests.broker.peer import Peer, Type, World

Mode = proto.CommandGetTopicsOfNamespace
BASE = "persistent://public/default/"


def listed(peer: Peer, **fields: Any) -> Any:
    command = proto.CommandGetTopicsOfNamespace(request_id=7, namespace="public/default", **fields)
    peer.send(Type.GET_TOPICS_OF_NAMESPACE, command)
    return peer.expect(Type.GET_TOPICS_OF_NAMESPACE_RESPONSE)


def with_topics() -> Peer:
    world = World()
    world.broker.topic_administration.create_partitioned_topic(0, "parted", 2)
    for name in ("one", "two", "__change_events", "non-persistent://public/default/volatile"):
        world.broker.topic_administration.create_topic(0, name)
    return world.connect()


def test_topics_of_a_namespace() -> None:
    """Rule PATTERN-01."""
    base = "persistent://public/default/"
    persistent = [f"{base}one", f"{base}parted-partition-0", f"{base}parted-partition-1", f"{base}two"]
    volatile = ["non-persistent://public/default/volatile"]
    peer = with_topics()
    answer = listed(peer)
    assert list(answer.topics) == persistent
    assert not answer.filtered
    assert answer.changed
    assert answer.topics_hash == topics_hash(persistent)
    assert list(listed(peer, mode=Mode.NON_PERSISTENT).topics) == volatile
    assert list(listed(peer, mode=Mode.ALL).topics) == volatile + persistent


def test_an_unchanged_list_is_not_sent_again() -> None:
    """Rule WIRE-04."""
    peer = with_topics()
    answer = listed(peer, topics_hash=listed(peer).topics_hash)
    assert not answer.changed
    assert not answer.topics


def test_a_pattern_is_applied_to_the_whole_name() -> None:
    peer = with_topics()
    answer = listed(peer, topics_pattern="persistent://public/default/par.*d")
    assert answer.filtered
    assert [name.rsplit("/", 1)[1] for name in answer.topics] == ["parted-partition-0", "parted-partition-1"]
    assert not listed(peer, topics_pattern="persistent://public/default/par" + "." * 80).filtered, "too long"


@pytest.mark.parametrize("pattern", ["(a+)+", "(a|aa)+b", ".*.*.*x", "a{1,9}b*c*", "(.*)*(.*)*(.*)*!"])
def test_a_pattern_that_would_take_python_for_ever_is_applied(pattern: str) -> None:
    """RE2 takes time proportional to the name."""
    world = World()
    world.broker.topic_administration.create_topic(0, "a" * 4000)
    answer = listed(world.connect(), topics_pattern=f"public/default/{pattern}")
    assert answer.filtered
    assert len(answer.topics) == (pattern == "(a+)+")


@pytest.mark.parametrize("pattern", [r"(.)\1", "(?!x).*", "(?<=x).*"])
def test_a_pattern_that_only_others_know_is_left_to_the_client(pattern: str) -> None:
    answer = listed(with_topics(), topics_pattern=pattern)
    assert not answer.filtered
    assert len(answer.topics) == 4


def test_what_is_no_pattern() -> None:
    peer = with_topics()
    command = proto.CommandGetTopicsOfNamespace(request_id=7, namespace="public/default", topics_pattern="(")
    peer.send(Type.GET_TOPICS_OF_NAMESPACE, command)
    peer.expect_error("MetadataError")


# --- watching --------------------------------------------------------------------------------------


def watch(peer: Peer, pattern: str = f"{BASE}w-.*", watcher: int = 3, **fields: Any) -> Any:
    command = proto.CommandWatchTopicList(
        request_id=8, watcher_id=watcher, namespace="public/default", topics_pattern=pattern, **fields
    )
    peer.send(Type.WATCH_TOPIC_LIST, command)
    return peer.expect(Type.WATCH_TOPIC_LIST_SUCCESS)


def updated(peer: Peer) -> Any:
    peer.world.advance(0.0)
    return peer.expect(Type.WATCH_TOPIC_UPDATE)


def test_a_watcher_is_notified_of_topics_created_and_deleted() -> None:
    """Seen: java-pattern. The hash is that of the list after the change."""
    world = World()
    world.broker.topic_administration.create_topic(0, "w-old")
    peer = world.connect()
    answer = watch(peer)
    assert (answer.request_id, answer.watcher_id, list(answer.topic)) == (8, 3, [f"{BASE}w-old"])
    assert answer.topics_hash == topics_hash([f"{BASE}w-old"])
    for name in ("w-new", "other", "non-persistent://public/default/w-volatile", "__w-system", "w-a"):
        world.broker.topic_administration.create_topic(world.now, name)
    update = updated(peer)
    assert update.watcher_id == 3
    assert list(update.new_topics) == [f"{BASE}w-a", f"{BASE}w-new"]
    assert list(update.deleted_topics) == []
    assert update.topics_hash == topics_hash([f"{BASE}w-a", f"{BASE}w-new", f"{BASE}w-old"])
    world.broker.topic_administration.delete_topic(world.now, "w-old")
    update = updated(peer)
    assert (list(update.new_topics), list(update.deleted_topics)) == ([], [f"{BASE}w-old"])
    assert update.topics_hash == topics_hash([f"{BASE}w-a", f"{BASE}w-new"])


def test_partitions_are_told_of_one_by_one_and_together() -> None:
    world = World()
    peer = world.connect()
    watch(peer)
    world.broker.topic_administration.create_partitioned_topic(world.now, "w-p", 2)
    assert list(updated(peer).new_topics) == [f"{BASE}w-p-partition-0", f"{BASE}w-p-partition-1"]


def test_a_client_that_has_the_list_already_is_not_sent_it() -> None:
    world = World()
    world.broker.topic_administration.create_topic(0, "w-a")
    peer = world.connect()
    answer = watch(peer, topics_hash=topics_hash([f"{BASE}w-a"]))
    assert list(answer.topic) == []
    assert answer.topics_hash == topics_hash([f"{BASE}w-a"])


def test_of_what_comes_and_goes_at_once_the_last_is_told() -> None:
    """A client that noticed the first topic's deletion waits to be told of the second one."""
    world = World()
    peer = world.connect()
    watch(peer)
    world.broker.topic_administration.create_topic(world.now, "w-a")
    world.broker.topic_administration.delete_topic(world.now, "w-a")
    update = updated(peer)
    assert (list(update.new_topics), list(update.deleted_topics)) == ([], [f"{BASE}w-a"])
    world.broker.topic_administration.create_topic(world.now, "w-a")
    updated(peer)
    world.broker.topic_administration.delete_topic(world.now, "w-a")
    world.broker.topic_administration.create_topic(world.now, "w-a")
    update = updated(peer)
    assert (list(update.new_topics), list(update.deleted_topics)) == ([f"{BASE}w-a"], [])


def test_a_topic_that_a_producer_makes_is_told_of_too() -> None:
    world = World()
    watcher, other = world.connect(), world.connect()
    watch(watcher)
    other.producer(f"{BASE}w-a")
    assert list(updated(watcher).new_topics) == [f"{BASE}w-a"]


def test_a_watcher_that_is_closed_or_gone_is_told_nothing() -> None:
    world = World()
    peer, gone = world.connect(), world.connect()
    watch(peer)
    watch(gone)
    gone.drop()
    peer.send(Type.WATCH_TOPIC_LIST_CLOSE, proto.CommandWatchTopicListClose(request_id=9, watcher_id=3))
    assert peer.expect(Type.SUCCESS).request_id == 9
    world.broker.topic_administration.create_topic(world.now, "w-a")
    world.advance(0.0)
    assert not peer.inbox


def test_a_watcher_that_is_closed_while_the_store_is_at_work_is_told_nothing() -> None:
    """The update waits until the topic is durable; no frame follows the answer to the close."""
    world = World()
    peer = world.connect()
    watch(peer)
    world.hold_writes = True
    world.broker.topic_administration.create_topic(world.now, "w-a")
    world.advance(0.0)
    peer.send(Type.WATCH_TOPIC_LIST_CLOSE, proto.CommandWatchTopicListClose(request_id=9, watcher_id=3))
    assert peer.expect(Type.SUCCESS).request_id == 9
    world.sync()
    assert not peer.inbox


def test_closing_a_watcher_that_is_not_there() -> None:
    peer = World().connect()
    peer.send(Type.WATCH_TOPIC_LIST_CLOSE, proto.CommandWatchTopicListClose(request_id=9, watcher_id=0))
    assert peer.expect(Type.SUCCESS).request_id == 9


def test_the_same_watcher_again_is_told_once() -> None:
    world = World()
    peer = world.connect()
    watch(peer)
    watch(peer, f"{BASE}v-.*")
    world.broker.topic_administration.create_topic(world.now, "w-a")
    world.broker.topic_administration.create_topic(world.now, "v-a")
    assert list(updated(peer).new_topics) == [f"{BASE}v-a"]
    assert not peer.inbox


@pytest.mark.parametrize(
    ("fields", "config", "error"),
    [
        ({"topics_pattern": "("}, {}, "InvalidTopicName"),
        ({"topics_pattern": "x" * 51}, {}, "NotAllowedError"),
        ({"topics_pattern": "x"}, {"topic_list_watcher": False}, "NotAllowedError"),
        ({"topics_pattern": "x", "namespace": "no/where"}, {}, "TopicNotFound"),
    ],
)
def test_what_cannot_be_watched(fields: dict[str, str], config: dict[str, Any], error: str) -> None:
    peer = World(BrokerConfig(**config)).connect()
    fields = {"namespace": "public/default", **fields}
    peer.send(Type.WATCH_TOPIC_LIST, proto.CommandWatchTopicList(request_id=8, watcher_id=3, **fields))
    peer.expect_error(error)


def test_watchers_have_a_limit() -> None:
    peer = World().connect()
    for number in range(MAX_WATCHERS_PER_CONNECTION):
        watch(peer, watcher=number)
    watch(peer, watcher=0)
    peer.send(
        Type.WATCH_TOPIC_LIST,
        proto.CommandWatchTopicList(
            request_id=8, watcher_id=2**40, namespace="public/default", topics_pattern="x"
        ),
    )
    peer.expect_error("MetadataError")


@pytest.mark.parametrize("announced", [True, False])
def test_brokers_say_whether_they_can_be_watched(announced: bool) -> None:
    peer = World(BrokerConfig(topic_list_watcher=announced)).raw()
    peer.send(Type.CONNECT, proto.CommandConnect(client_version="test", protocol_version=21))
    connected = peer.expect(Type.CONNECTED)
    assert connected.feature_flags.supports_topic_watchers is announced
