"""Ledgers, cursors and backlogs of topics over HTTP, and their end: truncating and trimming."""

from typing import Any

import pytest

from pulsar_trio import Client
from tests.real_pulsar.admin import topic_path
from tests.suite.brokers import BrokerUnderTest

BEFORE_ALL = {"ledgerId": -1, "entryId": -1, "partitionIndex": -1}


@pytest.fixture
async def path(broker: BrokerUnderTest, topic: str) -> str:
    """The path of a topic with the subscription `sub`."""
    await broker.create_topic(topic)
    path = topic_path(topic)
    assert await broker.request("PUT", f"{path}/subscription/sub") == (204, None)
    return path


async def _send(client: Client, topic: str, count: int) -> None:
    async with client.create_producer(topic, batching=None) as producer:
        for number in range(count):
            await producer.send(b"%d" % number)


async def test_internal_info_of_a_topic(
    broker: BrokerUnderTest, client: Client, topic: str, path: str
) -> None:
    await _send(client, topic, 3)
    _, last = await broker.request("GET", f"{path}/lastMessageId")
    assert await broker.request("POST", f"{path}/subscription/sub/skip/2") == (204, None)
    status, info = await broker.request("GET", f"{path}/internal-info")
    assert status == 200
    (ledger,) = info["ledgers"]
    assert set(ledger) == {"ledgerId", "timestamp", "isOffloaded"}
    assert (ledger["ledgerId"], ledger["isOffloaded"]) == (last["ledgerId"], False)
    assert list(info["cursors"]) == ["sub"]
    assert set(info["cursors"]["sub"]["markDelete"]) == {"ledgerId", "entryId"}
    assert await broker.request("POST", f"{path}/terminate") == (200, last)
    _, info = await broker.request("GET", f"{path}/internal-info")
    assert info["terminatedPosition"] == {"ledgerId": last["ledgerId"], "entryId": last["entryId"]}


async def test_internal_info_of_a_partitioned_topic(broker: BrokerUnderTest, topic: str) -> None:
    await broker.create_partitioned_topic(topic, 2)
    status, info = await broker.request("GET", f"{topic_path(topic)}/internal-info")
    assert status == 200
    assert set(info["partitions"]) == {f"{topic}-partition-0", f"{topic}-partition-1"}
    assert all({"ledgers", "cursors"} <= set(each) for each in info["partitions"].values())


async def test_bytes_after_a_position(broker: BrokerUnderTest, client: Client, topic: str, path: str) -> None:
    """All entries are alike, so a Java broker, which counts with their average, gives the exact number."""
    await _send(client, topic, 4)
    _, stats = await broker.request("GET", f"{path}/internalStats")
    size: int = stats["totalSize"]
    _, last = await broker.request("GET", f"{path}/lastMessageId")
    ledger = last["ledgerId"]

    async def size_after(ledger_id: int, entry_id: int) -> int:
        body = {"ledgerId": ledger_id, "entryId": entry_id, "partitionIndex": -1}
        status, found = await broker.request("PUT", f"{path}/backlogSize", body)
        assert status == 200
        return int(found)

    assert await size_after(-1, -1) == size
    assert await size_after(ledger, 0) == size * 3 // 4
    assert await size_after(ledger, 2) == size // 4
    assert await size_after(ledger, 3) == 0
    assert await size_after(ledger, 100) == 0
    assert (await broker.request("PUT", f"{path}/backlogSize", 3))[0] == 400


async def test_a_topic_is_truncated(broker: BrokerUnderTest, client: Client, topic: str, path: str) -> None:
    await _send(client, topic, 3)
    _, stats = await broker.request("GET", f"{path}/stats")
    assert stats["subscriptions"]["sub"]["msgBacklog"] == 3
    assert await broker.request("DELETE", f"{path}/truncate") == (204, None)
    _, stats = await broker.request("GET", f"{path}/stats")
    assert stats["subscriptions"]["sub"]["msgBacklog"] == 0


async def test_a_topic_is_trimmed(broker: BrokerUnderTest, client: Client, topic: str, path: str) -> None:
    """Only ledgers that every subscription has acknowledged are removed: the backlog stays."""
    await _send(client, topic, 3)
    assert await broker.request("POST", f"{path}/trim") == (200, None)
    _, stats = await broker.request("GET", f"{path}/stats")
    assert stats["subscriptions"]["sub"]["msgBacklog"] == 3


async def test_partitions_that_are_missing_are_created(broker: BrokerUnderTest, topic: str) -> None:
    path = topic_path(topic)
    await broker.create_partitioned_topic(topic, 2)
    assert await broker.request("DELETE", f"{path}-partition-1") == (204, None)
    assert await broker.request("POST", f"{path}/createMissedPartitions") == (204, None)
    assert (await broker.request("GET", f"{path}-partition-1/stats"))[0] == 200


async def test_subscriptions_are_not_replicated(broker: BrokerUnderTest, topic: str, path: str) -> None:
    status = f"{path}/subscription/sub/replicatedSubscriptionStatus"
    assert await broker.request("GET", status) == (200, {topic: False})
    assert await broker.request("POST", status, False) == (204, None)
    assert await broker.request("GET", status) == (200, {topic: False})
    absent = (404, f"Subscription none not found for topic {topic}")
    assert await broker.request("GET", status.replace("/sub/", "/none/")) == absent
    assert await broker.request("POST", status.replace("/sub/", "/none/"), False) == absent
    assert await broker.request("POST", status) == (400, "The request entity cannot be empty.")


async def test_nothing_is_offloaded_and_there_are_no_shadows(broker: BrokerUnderTest, path: str) -> None:
    _, status = await broker.request("GET", f"{path}/offload")
    assert status == {
        "status": "NOT_RUN",
        "lastError": "",
        "firstUnoffloadedMessage": BEFORE_ALL | {"batchSize": 0, "batchIndex": -1},
    }
    assert await broker.request("PUT", f"{path}/offload") == (400, "messageId is null")
    assert await broker.request("GET", f"{path}/shadowTopics") == (200, None)
    assert await broker.request("DELETE", f"{path}/shadowTopics") == (204, None)


CALLS: list[tuple[str, str, Any]] = [
    ("PUT", "backlogSize", BEFORE_ALL),
    ("DELETE", "truncate", None),
    ("POST", "trim", None),
    ("GET", "subscription/sub/replicatedSubscriptionStatus", None),
    ("POST", "subscription/sub/replicatedSubscriptionStatus", True),
    ("GET", "offload", None),
]


@pytest.mark.parametrize(("method", "call", "body"), CALLS, ids=[call for _, call, _ in CALLS])
async def test_a_topic_that_is_not_there(
    broker: BrokerUnderTest, topic: str, method: str, call: str, body: Any
) -> None:
    refused = await broker.request(method, f"{topic_path(topic)}/{call}", body)
    assert refused == (404, f"Topic {topic} not found")


@pytest.mark.parametrize(
    ("method", "call", "body", "status", "reason"),
    [
        ("DELETE", "truncate", None, 412, "unsupport truncate"),
        ("POST", "trim", None, 405, "Trim on a non-persistent topic is not allowed"),
        (
            "GET",
            "subscription/sub/replicatedSubscriptionStatus",
            None,
            405,
            "Cannot get replicated subscriptions on non-persistent topics",
        ),
        (
            "POST",
            "subscription/sub/replicatedSubscriptionStatus",
            True,
            405,
            "Cannot enable/disable replicated subscriptions on non-persistent topics",
        ),
    ],
)
async def test_non_persistent_topics_store_nothing(
    broker: BrokerUnderTest, topic: str, method: str, call: str, body: Any, status: int, reason: str
) -> None:
    path = topic_path(topic.replace("persistent://", "non-persistent://"))
    assert await broker.request(method, f"{path}/{call}", body) == (status, reason)


async def test_topics_without_a_backlog_or_partitions(broker: BrokerUnderTest, topic: str) -> None:
    """A topic that does not exist has an empty backlog, and no partitions that could be missing."""
    path = topic_path(topic)
    status, backlog = await broker.request("GET", f"{path}/backlog")
    assert status == 200
    assert (backlog["storageSize"], backlog["totalMessages"], backlog["messageBacklog"]) == (0, 0, 0)
    assert backlog["topicName"] == topic.replace("persistent://public/default/", "public/default/persistent/")
    nowhere = path.replace("default", "nowhere")
    assert await broker.request("GET", f"{nowhere}/backlog") == (404, "Namespace not found")
    missing = (404, f"Topic {topic} does not exist")
    assert await broker.request("POST", f"{path}/createMissedPartitions") == missing
    await broker.create_partitioned_topic(topic, 1)
    partitioned = (405, "calculate backlog size is not allowed for partitioned-topic")
    assert await broker.request("PUT", f"{path}/backlogSize", BEFORE_ALL) == partitioned
