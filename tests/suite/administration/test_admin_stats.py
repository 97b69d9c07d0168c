"""`stats` and `internalStats` over HTTP: the names a real Pulsar has, and the values that can be compared.

What our broker does not measure is listed as such (`LEFT_OUT`) and nothing else may be missing.
"""

from typing import Any

import pytest

from pulsar_trio import Client
from tests.real_pulsar.admin import topic_path
from tests.suite.brokers import BrokerUnderTest
from tests.suite.helpers import payloads, receive, until

TOPIC = {
    *("msgRateIn", "msgThroughputIn", "msgRateOut", "msgThroughputOut", "bytesInCounter", "msgInCounter"),
    *("systemTopicBytesInCounter", "bytesOutCounter", "msgOutCounter", "bytesOutInternalCounter"),
    *("averageMsgSize", "msgChunkPublished", "storageSize", "backlogSize", "backlogQuotaLimitSize"),
    *("backlogQuotaLimitTime", "oldestBacklogMessageAgeSeconds", "publishRateLimitedTimes"),
    *("earliestMsgPublishTimeInBacklogs", "offloadedStorageSize", "lastOffloadLedgerId"),
    *("lastOffloadSuccessTimeStamp", "lastOffloadFailureTimeStamp", "ongoingTxnCount", "abortedTxnCount"),
    *("committedTxnCount", "publishers", "waitingPublishers", "subscriptions", "replication"),
    *("deduplicationStatus", "nonContiguousDeletedMessagesRanges", "delayedMessageIndexSizeInBytes"),
    *("nonContiguousDeletedMessagesRangesSerializedSize", "compaction", "ownerBroker"),
}

PUBLISHER = {
    *("accessMode", "msgRateIn", "msgThroughputIn", "averageMsgSize", "chunkedMessageRate", "producerId"),
    *("supportsPartialProducer", "producerName", "address", "connectedSince", "clientVersion", "metadata"),
}

SUBSCRIPTION = {
    *("msgRateOut", "msgThroughputOut", "bytesOutCounter", "msgOutCounter", "msgRateRedeliver"),
    *("messageAckRate", "chunkedMessageRate", "msgBacklog", "backlogSize", "earliestMsgPublishTimeInBacklog"),
    *("msgBacklogNoDelayed", "blockedSubscriptionOnUnackedMsgs", "msgDelayed", "msgInReplay"),
    *("unackedMessages", "type", "msgRateExpired", "totalMsgExpired", "lastExpireTimestamp"),
    *("lastConsumedFlowTimestamp", "lastConsumedTimestamp", "lastAckedTimestamp"),
    *("lastMarkDeleteAdvancedTimestamp", "consumers", "isDurable", "isReplicated", "allowOutOfOrderDelivery"),
    *("consumersAfterMarkDeletePosition", "drainingHashesCount", "drainingHashesClearedTotal"),
    *("drainingHashesUnackedMessages", "nonContiguousDeletedMessagesRanges", "durable", "replicated"),
    *("nonContiguousDeletedMessagesRangesSerializedSize", "delayedMessageIndexSizeInBytes"),
    *("subscriptionProperties", "filterProcessedMsgCount", "filterAcceptedMsgCount"),
    *("filterRejectedMsgCount", "filterRescheduledMsgCount"),
    *(
        f"dispatchThrottled{what}EventsBy{whose}Limit"
        for what in ("Msg", "Bytes")
        for whose in ("Subscription", "Topic", "Broker")
    ),
}

CONSUMER = {
    *("msgRateOut", "msgThroughputOut", "bytesOutCounter", "msgOutCounter", "msgRateRedeliver"),
    *("messageAckRate", "chunkedMessageRate", "consumerName", "availablePermits", "unackedMessages"),
    *("avgMessagesPerEntry", "blockedConsumerOnUnackedMsgs", "drainingHashesCount", "metadata"),
    *("drainingHashesClearedTotal", "drainingHashesUnackedMessages", "address", "connectedSince"),
    *("clientVersion", "lastAckedTimestamp", "lastConsumedTimestamp", "lastConsumedFlowTimestamp"),
    *("lastAckedTime", "lastConsumedTime"),
}

INTERNAL = {
    *("entriesAddedCounter", "numberOfEntries", "totalSize", "currentLedgerEntries", "currentLedgerSize"),
    *("lastLedgerCreatedTimestamp", "waitingCursorsCount", "pendingAddEntriesCount", "lastConfirmedEntry"),
    *("state", "ledgers", "cursors", "schemaLedgers", "compactedLedger"),
}

LEDGER = {"ledgerId", "entries", "size", "offloaded", "underReplicated"}

CURSOR = {
    *("markDeletePosition", "readPosition", "waitingReadOp", "pendingReadOps", "messagesConsumedCounter"),
    *("cursorLedger", "cursorLedgerLastEntry", "individuallyDeletedMessages", "lastLedgerSwitchTimestamp"),
    *("state", "active", "numberOfEntriesSinceFirstNotAckedMessage", "properties"),
    *("totalNonContiguousDeletedMessagesRange", "subscriptionHavePendingRead"),
    *("subscriptionHavePendingReplayRead",),
}

LEFT_OUT = {
    *("chunkedMessageRate", "msgRateRedeliver", "messageAckRate", "msgRateExpired"),
    *("avgMessagesPerEntry", "nonContiguousDeletedMessagesRangesSerializedSize", "lastLedgerSwitchTimestamp"),
    *("drainingHashesCount", "drainingHashesClearedTotal", "drainingHashesUnackedMessages"),
}
"""Names of statistics that our broker does not measure."""

IN_OUR_WORDS = {"backlog", "available_permits", "unacked", "priorityLevel", "keyHashRanges"}
"""Names of statistics that only our broker has."""


def check_names(broker: BrokerUnderTest, found: dict[str, Any], expected: set[str]) -> None:
    if broker.name == "ours":
        assert set(found) - IN_OUR_WORDS == expected - LEFT_OUT
    else:
        assert set(found) == expected


async def test_stats_of_a_topic_in_use(broker: BrokerUnderTest, client: Client, topic: str) -> None:
    async with (
        client.subscribe(topic, "sub", "shared", consumer_name="c", properties={"x": "y"}) as consumer,
        client.create_producer(topic, name="p", batching=None, properties={"a": "b"}) as producer,
    ):
        await producer.send_many(payloads(5))
        messages = await receive(consumer, 5)
        consumer.acknowledge([messages[0], messages[2]])
        await consumer.flush()
        stats: dict[str, Any] = {}

        async def counted() -> bool:
            stats.update((await broker.request("GET", f"{topic_path(topic)}/stats"))[1])
            return bool(stats["msgOutCounter"] == 5 and stats["subscriptions"]["sub"]["unackedMessages"] == 3)

        await until(counted)
    check_names(broker, stats, TOPIC)
    assert (stats["msgInCounter"], stats["msgOutCounter"]) == (5, 5)
    assert stats["bytesInCounter"] == stats["bytesOutCounter"] == stats["storageSize"] > 0
    assert stats["deduplicationStatus"] == "Disabled"
    assert stats["waitingPublishers"] == 0
    assert stats["ownerBroker"].endswith(broker.admin.url.rpartition(":")[2])

    (publisher,) = stats["publishers"]
    check_names(broker, publisher, PUBLISHER)
    assert (publisher["producerName"], publisher["accessMode"]) == ("p", "Shared")
    assert publisher["metadata"] == {"a": "b"}
    assert publisher["address"].startswith("/127.0.0.1:")
    assert publisher["connectedSince"].endswith("Z")

    subscription = stats["subscriptions"]["sub"]
    check_names(broker, subscription, SUBSCRIPTION)
    assert (subscription["type"], subscription["msgBacklog"]) == ("Shared", 3)
    assert (subscription["unackedMessages"], subscription["msgOutCounter"]) == (3, 5)
    assert subscription["isDurable"] is subscription["durable"] is True
    assert subscription["nonContiguousDeletedMessagesRanges"] == 1
    assert subscription["lastAckedTimestamp"] >= subscription["lastConsumedTimestamp"] > 1_700_000_000_000

    (attached,) = subscription["consumers"]
    check_names(broker, attached, CONSUMER)
    assert (attached["consumerName"], attached["unackedMessages"]) == ("c", 3)
    assert attached["metadata"] == {"x": "y"}
    assert attached["availablePermits"] == 995
    assert attached["clientVersion"] == publisher["clientVersion"]


async def test_stats_leave_out_what_is_not_asked_for(
    broker: BrokerUnderTest, client: Client, topic: str
) -> None:
    async with client.subscribe(topic, "sub") as consumer, client.create_producer(topic) as producer:
        await producer.send(b"0")
        await receive(consumer, 1)
        path = f"{topic_path(topic)}/stats?excludePublishers=true&excludeConsumers=true"
        _, stats = await broker.request("GET", f"{path}&getEarliestTimeInBacklog=true&getPreciseBacklog=true")
    assert stats["publishers"] == []
    assert stats["subscriptions"]["sub"]["consumers"] == []
    assert stats["earliestMsgPublishTimeInBacklogs"] > 1_700_000_000_000
    assert stats["subscriptions"]["sub"]["earliestMsgPublishTimeInBacklog"] > 1_700_000_000_000


@pytest.mark.parametrize(
    ("kind", "more"),
    [
        ("exclusive", {"activeConsumerName"}),
        ("failover", {"activeConsumerName"}),
        ("key_shared", {"keySharedMode"}),
    ],
)
async def test_stats_of_each_kind_of_subscription(
    broker: BrokerUnderTest, client: Client, topic: str, kind: Any, more: set[str]
) -> None:
    async with client.subscribe(topic, "sub", kind, consumer_name="c") as consumer:
        async with client.create_producer(topic, batching=None) as producer:
            await producer.send(b"0")
        await receive(consumer, 1)
        _, stats = await broker.request("GET", f"{topic_path(topic)}/stats")
    subscription = stats["subscriptions"]["sub"]
    check_names(broker, subscription, SUBSCRIPTION | more)
    assert subscription["type"].lower() == kind
    assert subscription.get("activeConsumerName", "c") == "c"
    assert subscription.get("keySharedMode", "AUTO_SPLIT") == "AUTO_SPLIT"
    (attached,) = subscription["consumers"]
    if kind == "key_shared":
        assert attached["keyHashRangeArrays"][-1][-1] == 65535
    else:
        check_names(broker, attached, CONSUMER)
        assert attached["unackedMessages"] == 0, "is counted for the other kinds only"


async def test_internal_stats(broker: BrokerUnderTest, client: Client, topic: str) -> None:
    async with client.subscribe(topic, "sub", "shared") as consumer:
        async with client.create_producer(topic, batching=None) as producer:
            await producer.send_many(payloads(5))
            messages = await receive(consumer, 5)
            consumer.acknowledge([messages[0], messages[2]])
            await consumer.flush()
            inside: dict[str, Any] = {}

            async def written() -> bool:
                inside.update((await broker.request("GET", f"{topic_path(topic)}/internalStats"))[1])
                return bool(inside["cursors"]["sub"]["individuallyDeletedMessages"] != "[]")

            await until(written)
    check_names(broker, inside, INTERNAL)
    assert (inside["entriesAddedCounter"], inside["numberOfEntries"]) == (5, 5)
    assert (inside["currentLedgerEntries"], inside["state"]) == (5, "LedgerOpened")
    (ledger,) = inside["ledgers"]
    assert set(ledger) == set(inside["compactedLedger"]) == LEDGER
    number = ledger["ledgerId"]
    assert inside["lastConfirmedEntry"] == f"{number}:4"
    cursor = inside["cursors"]["sub"]
    check_names(broker, cursor, CURSOR)
    assert cursor["markDeletePosition"] == f"{number}:0"
    assert cursor["readPosition"] == f"{number}:5"
    assert cursor["individuallyDeletedMessages"] == f"[({number}:1..{number}:2]]"
    assert cursor["messagesConsumedCounter"] == 2
    assert cursor["numberOfEntriesSinceFirstNotAckedMessage"] == 5
    assert (cursor["active"], cursor["waitingReadOp"]) == (True, True)


async def test_stats_of_a_partitioned_topic_are_the_sum(
    broker: BrokerUnderTest, client: Client, topic: str
) -> None:
    path = topic_path(topic)
    assert await broker.request("PUT", f"{path}/partitions", 2) == (204, None)
    for partition in (0, 1):
        async with client.subscribe(f"{topic}-partition-{partition}", "sub"):
            async with client.create_producer(f"{topic}-partition-{partition}") as producer:
                for payload in payloads(2 + partition):
                    await producer.send(payload)
    _, stats = await broker.request("GET", f"{path}/partitioned-stats")
    assert stats["metadata"] == {"partitions": 2, "deleted": False}
    assert set(stats["partitions"]) == {f"{topic}-partition-0", f"{topic}-partition-1"}
    assert [each["msgInCounter"] for _, each in sorted(stats["partitions"].items())] == [2, 3]
    check_names(broker, stats, TOPIC - {"deduplicationStatus", "ownerBroker"} | {"metadata", "partitions"})
    assert (stats["msgInCounter"], stats["subscriptions"]["sub"]["msgBacklog"]) == (5, 5)
    _, summed = await broker.request("GET", f"{path}/partitioned-stats?perPartition=false")
    assert summed["partitions"] == {}
    _, inside = await broker.request("GET", f"{path}/partitioned-internalStats")
    assert inside["metadata"] == {"partitions": 2, "deleted": False}
    for each in inside["partitions"].values():
        check_names(broker, each, INTERNAL)


async def test_stats_of_the_wrong_kind(broker: BrokerUnderTest, topic: str) -> None:
    """A partitioned topic has no stats of its own, another none of its partitions."""
    path = topic_path(topic)
    missing = (404, f"Partitioned Topic {topic} not found")
    assert await broker.request("GET", f"{path}/partitioned-stats") == missing
    assert await broker.request("PUT", f"{path}/partitions", 2) == (204, None)
    not_found = (404, f"Topic {topic} not found")
    for what in ("stats", "internalStats", "lastMessageId"):
        assert await broker.request("GET", f"{path}/{what}") == not_found
    assert await broker.request("GET", f"{path}/subscriptions") == (200, [])


async def test_stats_of_a_non_persistent_topic(broker: BrokerUnderTest, client: Client, topic: str) -> None:
    volatile = topic.replace("persistent://", "non-persistent://")
    async with client.subscribe(volatile, "sub") as consumer, client.create_producer(volatile) as producer:
        await producer.send(b"0")
        await receive(consumer, 1)
        _, stats = await broker.request("GET", f"{topic_path(volatile)}/stats")
        _, inside = await broker.request("GET", f"{topic_path(volatile)}/internalStats")
    assert (stats["msgInCounter"], stats["msgOutCounter"], stats["storageSize"]) == (1, 1, 0)
    subscription = stats["subscriptions"]["sub"]
    assert (subscription["msgBacklog"], subscription["isDurable"]) == (0, False)
    assert len(stats["publishers"]) == len(subscription["consumers"]) == 1
    assert set(inside) == {
        *("entriesAddedCounter", "numberOfEntries", "totalSize", "currentLedgerEntries", "cursors"),
        *("currentLedgerSize", "waitingCursorsCount", "pendingAddEntriesCount"),
    }
    assert set(inside["cursors"]) == {"sub"}
