"""LOOKUP, partitions, lists of topics, and commands that this broker refuses."""

from typing import Any

import pytest

from pulsar_sansio.broker import BrokerConfig
from pulsar_sansio.wire import proto
from tests.broker.peer import TOPIC, Peer, Type, World

Lookup = proto.CommandLookupTopicResponse
Metadata = proto.CommandPartitionedTopicMetadataResponse


def lookup(peer: Peer, topic: str) -> Any:
    peer.send(Type.LOOKUP, proto.CommandLookupTopic(topic=topic, request_id=5))
    answer = peer.expect(Type.LOOKUP_RESPONSE)
    assert answer.request_id == 5
    return answer


def partitions(peer: Peer, topic: str, **fields: Any) -> Any:
    peer.send(
        Type.PARTITIONED_METADATA, proto.CommandPartitionedTopicMetadata(topic=topic, request_id=6, **fields)
    )
    answer = peer.expect(Type.PARTITIONED_METADATA_RESPONSE)
    assert answer.request_id == 6
    assert answer.HasField("response")
    return answer


def test_a_lookup_leads_here() -> None:
    """Rule WIRE-02."""
    answer = lookup(World(BrokerConfig(service_url="pulsar://h:1")).connect(), TOPIC)
    assert answer.response == Lookup.Connect
    assert answer.authoritative
    assert answer.brokerServiceUrl == "pulsar://h:1"
    assert not answer.HasField("brokerServiceUrlTls")
    assert not answer.proxy_through_service_url


def test_a_broker_behind_a_port_forward_says_so() -> None:
    config = BrokerConfig(proxy_through_service_url=True, service_url_tls="pulsar+ssl://h:2")
    answer = lookup(World(config).connect(), TOPIC)
    assert answer.proxy_through_service_url
    assert answer.brokerServiceUrlTls == "pulsar+ssl://h:2"


def test_a_lookup_of_a_pattern_is_answered() -> None:
    """Seen: java-pattern."""
    assert lookup(World().connect(), "persistent://public/default/a.*").response == Lookup.Connect


@pytest.mark.parametrize(
    ("topic", "code"),
    [
        ("a/b", "InvalidTopicName"),
        ("mail://a/b/c", "InvalidTopicName"),
        ("persistent://no/such/t", "TopicNotFound"),
    ],
)
def test_a_lookup_fails(topic: str, code: str) -> None:
    peer = World().connect()
    for answer in (lookup(peer, topic), partitions(peer, topic)):
        assert answer.response in (Lookup.Failed, Metadata.Failed)
        assert proto.ServerError.Name(answer.error) == code
        assert answer.message


def test_partitions() -> None:
    world = World()
    world.broker.topic_administration.create_partitioned_topic(0, "parted", 3)
    peer = world.connect()
    assert partitions(peer, "persistent://public/default/parted").partitions == 3
    assert partitions(peer, "persistent://public/default/parted-partition-1").partitions == 0
    answer = partitions(peer, TOPIC)
    assert (answer.response, answer.partitions) == (Metadata.Success, 0), "asking alone creates nothing"
    assert world.broker.topic_administration.topics("public/default") == [
        f"persistent://public/default/parted-partition-{index}" for index in range(3)
    ]


def test_partitions_without_creation() -> None:
    """Feature flag 5: metadata_auto_creation_enabled=false is honoured."""
    peer = World().connect()
    answer = partitions(peer, TOPIC, metadata_auto_creation_enabled=False)
    assert proto.ServerError.Name(answer.error) == "TopicNotFound"
    peer.producer()
    assert partitions(peer, TOPIC, metadata_auto_creation_enabled=False).response == Metadata.Success


def test_asking_creates_partitions_where_that_is_the_policy() -> None:
    world = World(BrokerConfig(auto_topic_partitions=2))
    assert partitions(world.connect(), TOPIC).partitions == 2
    world.start()
    assert partitions(world.connect(), TOPIC).partitions == 2, "and they stay"
