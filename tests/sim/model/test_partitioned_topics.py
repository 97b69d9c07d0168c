"""Partitioned topics of the model, and its own hash functions against numbers of the Java client."""

import pytest

from pulsar_sansio.model.config import HashingScheme, OutgoingMessage
from pulsar_sim.model.partitioned_topics import PartitionedTopic, by_size, hash_of
from pulsar_sim.model.records.topic_record import TopicRecord
from tests.client.partitions.test_routing import MURMUR3_AND_JAVA


@pytest.mark.parametrize(("key", "murmur3", "java"), MURMUR3_AND_JAVA)
def test_hashes(key: str, murmur3: int, java: int) -> None:
    """Rules ROUTE-02 and ROUTE-08."""
    if key.isascii():
        assert hash_of(HashingScheme.MURMUR3_32, key) == murmur3
        assert hash_of(HashingScheme.JAVA_STRING, key) == java


def test_a_client_may_believe_each_number_that_a_broker_has_said() -> None:
    topic = PartitionedTopic("persistent://public/default/p", deduplication=False)
    topic.counts += [2, 4]
    topic.wrong_counts += [3, 2]
    assert topic.count == 4
    assert topic.believed == [2, 3, 4]


def test_partitions_by_their_index_and_the_end_of_one() -> None:
    topic = PartitionedTopic("persistent://public/default/p", deduplication=False)
    topic.partitions += [TopicRecord(f"{topic.name}-partition-{index}", False) for index in range(2)]
    first, second = topic.partitions
    assert (topic.index_of(first), topic.index_of(second)) == (0, 1)
    assert topic.index_of(TopicRecord(first.name, False)) == -1, "a topic is itself"
    assert not topic.ended
    second.ended = True
    assert topic.ended


def test_an_applications_own_routing() -> None:
    payloads = [b"", b"1", b"22", b"333", None]
    assert [by_size(OutgoingMessage(each), 3) for each in payloads] == [0, 1, 2, 0, 0]
