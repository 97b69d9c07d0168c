"""Statuses and words of single answers, which a walk over all paths of the API found to differ once."""

from typing import Any

import pytest

from pulsar_trio import Client
from tests.real_pulsar.admin import topic_path
from tests.suite.brokers import BrokerUnderTest
from tests.suite.helpers import until

BUNDLE = "0x00000000_0xffffffff"

TOO_LARGE = (
    "topic-level maxMessageSize must be greater than or equal to 0 and must be smaller than that in the "
    "broker-level"
)
NO_RATE = {
    "dispatchThrottlingRateInMsg": 0,
    "dispatchThrottlingRateInByte": 0,
    "relativeToPublishRate": False,
    "ratePeriodInSecond": 1,
}

OF_TOPICS: list[tuple[str, str, Any, int, Any]] = [
    ("GET", "maxConsumersPerSubscription", None, 204, None),
    ("GET", "maxMessageSize", None, 204, None),
    ("POST", "maxMessageSize", -7, 412, TOO_LARGE),
    ("POST", "maxConsumersPerSubscription", -7, 412, "Invalid value for maxConsumersPerSubscription"),
    ("POST", "maxUnackedMessagesOnConsumer", -7, 412, "maxUnackedNum must be 0 or more"),
    ("POST", "maxUnackedMessagesOnSubscription", -7, 412, "maxUnackedNum must be 0 or more"),
    ("POST", "compactionThreshold", -7, 412, "Invalid value for compactionThreshold"),
    ("GET", "replicatorDispatchRate?applied=true", None, 200, NO_RATE),
    ("GET", "entryFilters?applied=true", None, 200, {"entryFilterNames": ""}),
    ("POST", "replication", ["standalone"], 204, None),
    (
        "POST",
        "terminate/partitions",
        None,
        405,
        "Termination of a non-partitioned topic is not allowed using partitioned-terminate, please use "
        "terminate commands",
    ),
]


@pytest.mark.parametrize(
    ("method", "call", "body", "status", "answer"),
    OF_TOPICS,
    ids=[f"{each[0]} {each[1]}" for each in OF_TOPICS],
)
async def test_an_answer_about_a_topic(
    broker: BrokerUnderTest, topic: str, method: str, call: str, body: Any, status: int, answer: Any
) -> None:
    await broker.create_topic(topic)
    assert await broker.request(method, f"{topic_path(topic)}/{call}", body) == (status, answer)


async def test_an_answer_about_a_partitioned_topic(broker: BrokerUnderTest, topic: str) -> None:
    path = topic_path(topic)
    await broker.create_partitioned_topic(topic, 1)
    assert await broker.request("PUT", f"{path}/subscription/sub") == (204, None)
    assert await broker.request("GET", f"{path}/compaction") == (404, f"Topic {topic} not found")
    assert await broker.request("POST", f"{path}/subscription/sub/analyzeBacklog") == (
        405,
        "Analyze backlog on a partitioned topic is not allowed, please try do it on specific topic partition",
    )


async def test_a_subscription_of_a_non_persistent_topic_is_not_created(
    broker: BrokerUnderTest, topic: str
) -> None:
    path = topic_path(topic.replace("persistent://", "non-persistent://"))
    assert await broker.request("PUT", f"{path}/subscription/sub", "latest") == (
        400,
        "Create subscription on non-persistent topic can only be done through client",
    )


async def test_answers_about_the_broker(broker: BrokerUnderTest) -> None:
    path = "/admin/v2/brokers"
    _, brokers = await broker.request("GET", path)
    assert await broker.request("GET", f"{path}/no-such-cluster") == (200, brokers)
    assert await broker.request("GET", f"{path}/health?topicVersion=V2") == (200, "ok")
    assert (await broker.request("GET", f"{path}/health?topicVersion=X"))[0] == 404
    allocator = await broker.request("GET", "/admin/v2/broker-stats/allocator-stats/x")
    assert allocator == (406, "Invalid allocator name : x")
    refused = (412, "Can't update non-dynamic configuration")
    assert await broker.request("POST", f"{path}/configuration/no-such-name/1") == refused
    refused = (412, "Can't delete non-dynamic configuration")
    assert await broker.request("DELETE", f"{path}/configuration/no-such-name") == refused


async def test_the_clusters_of_a_namespace(broker: BrokerUnderTest, local_name: str) -> None:
    path = f"/admin/v2/namespaces/public/{local_name}".lower()
    assert await broker.request("PUT", path) == (204, None)
    assert await broker.request("POST", f"{path}/replication", ["standalone"]) == (200, None)
    assert (await broker.request("POST", f"{path}/replication", "standalone"))[0] == 400
    assert await broker.request("POST", f"{path}/replication", []) == (
        412,
        "ClusterIds should not be null or empty",
    )


@pytest.mark.long
async def test_the_stats_of_all_topics(broker: BrokerUnderTest, client: Client, local_name: str) -> None:
    """A Java broker lists a topic up to a minute after its creation."""
    namespace = f"public/{local_name}".lower()
    body = {"bundles": {"numBundles": 1}}
    assert await broker.request("PUT", f"/admin/v2/namespaces/{namespace}", body) == (204, None)
    topic = f"persistent://{namespace}/t"
    async with client.create_producer(topic) as producer, client.subscribe(topic, "sub"):
        await producer.send(b"x")

        async def listed() -> bool:
            _, stats = await broker.request("GET", "/admin/v2/broker-stats/topics")
            return topic in stats.get(namespace, {}).get(BUNDLE, {}).get("persistent", {})

        await until(listed)
        _, stats = await broker.request("GET", "/admin/v2/broker-stats/topics")
    found = stats[namespace][BUNDLE]["persistent"][topic]
    assert set(found) == {
        *("publishers", "replication", "subscriptions", "producerCount", "averageMsgSize", "msgRateIn"),
        *("msgRateOut", "msgInCount", "bytesInCount", "msgOutCount", "bytesOutCount", "msgThroughputIn"),
        *("msgThroughputOut", "storageSize", "backlogSize", "pendingAddEntriesCount", "filteredEntriesCount"),
    }
    (publisher,), subscription = found["publishers"], found["subscriptions"]["sub"]
    assert {"address", "producerId", "producerName", "connectedSince", "metadata"} <= set(publisher)
    assert {"consumers", "msgBacklog", "msgRateOut", "type"} <= set(subscription)
    assert {"address", "consumerName", "availablePermits"} <= set(subscription["consumers"][0])
    assert (found["producerCount"], subscription["type"]) == (1, "Shared")
