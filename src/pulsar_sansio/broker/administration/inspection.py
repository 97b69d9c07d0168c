"""Stats of a topic, in the shape of the Java broker's REST answers. Nothing here changes a topic.

Values that this broker does not measure are left out: rates of redelivery, acknowledgement and expiry, and
sizes that only other kinds of brokers write. Features that this broker does not have, such as offloading,
show as zeros.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from ..dispatching.consumer import Consumer, SubType
from ..dispatching.key_shared import KeyShared
from ..dispatching.shared import Shared
from ..rates import Counted, Rate, Rates
from ..services import BrokerServices, wall_text
from ..topics.nonpersistent import NonPersistentSubscription, NonPersistentTopic
from ..topics.producing.producer import MODE_NAMES, Producer
from ..topics.registry import AnyTopic
from ..topics.subscription import Subscription
from ..topics.topic import Topic

AnySubscription = Subscription | NonPersistentSubscription


@dataclass(frozen=True, slots=True)
class StatsOptions:
    """Parts of the stats. `earliest_time`: the publish time of the oldest message of each backlog."""

    publishers: bool = True
    consumers: bool = True
    earliest_time: bool = False


def counted(topics: Iterable[AnyTopic]) -> Iterable[Counted]:
    """Yield topics and their producers, subscriptions and consumers: each has a rate."""
    for topic in topics:
        yield topic
        yield from topic.producers.by_name.values()
        for subscription in topic.subscriptions.values():
            yield subscription
            yield from subscription.consumers


# --- topics -------------------------------------------------------------------------------------------


class TopicOverview(NamedTuple):
    """A few numbers of a topic, which cost little to read."""

    name: str
    subscriptions: int
    producers: int
    consumers: int
    backlog: int
    """Entries that are not acknowledged, over all subscriptions."""
    storage: int
    """Bytes of all entries."""
    messages_in: int
    bytes_in: int
    messages_out: int
    bytes_out: int
    rates: Rate


def topic_overview(topic: AnyTopic, rates: Rates) -> TopicOverview:
    return TopicOverview(
        topic.name,
        len(topic.subscriptions),
        len(topic.producers.by_name),
        topic.consumer_count,
        sum(subscription.backlog for subscription in topic.subscriptions.values()),
        topic.log.size if isinstance(topic, Topic) else 0,
        *topic.counters(),
        rates.of(topic),
    )


def topic_stats(topic: AnyTopic, rates: Rates, options: StatsOptions) -> dict[str, Any]:
    persistent = isinstance(topic, Topic)
    services = topic.services
    unlimited = -1 if persistent else 0
    of_size, of_time = topic.policies.backlog_quota_size, topic.policies.backlog_quota_time
    rate = rates.of(topic)
    messages_in, bytes_in, messages_out, bytes_out = topic.counters()
    subscriptions = {
        name: _subscription_stats(subscription, rates, options)
        for name, subscription in topic.subscriptions.items()
    }
    stats: dict[str, Any] = {
        "msgRateIn": rate.messages_in,
        "msgThroughputIn": rate.bytes_in,
        "msgRateOut": rate.messages_out,
        "msgThroughputOut": rate.bytes_out,
        "msgChunkPublished": isinstance(topic, Topic) and topic.chunk_published,
        "bytesInCounter": bytes_in,
        "msgInCounter": messages_in,
        "systemTopicBytesInCounter": 0,
        "bytesOutCounter": bytes_out,
        "msgOutCounter": messages_out,
        "bytesOutInternalCounter": 0,
        "averageMsgSize": rate.bytes_in / rate.messages_in if rate.messages_in else 0.0,
        "storageSize": topic.log.size if isinstance(topic, Topic) else 0,
        "backlogSize": max((each["backlogSize"] for each in subscriptions.values()), default=0),
        "backlogQuotaLimitSize": of_size.limit_size if of_size is not None else unlimited,
        "backlogQuotaLimitTime": of_time.limit_time if of_time is not None else unlimited,
        "oldestBacklogMessageAgeSeconds": -1 if persistent else 0,
        "publishRateLimitedTimes": topic.rates.times_limited,
        "earliestMsgPublishTimeInBacklogs": _earliest(subscriptions.values()),
        **_NEVER_OF_A_TOPIC,
        "ongoingTxnCount": topic.transactions.ongoing if isinstance(topic, Topic) else 0,
        "abortedTxnCount": topic.transactions.aborted if isinstance(topic, Topic) else 0,
        "committedTxnCount": topic.transactions.committed if isinstance(topic, Topic) else 0,
        "publishers": (
            [_publisher_stats(services, producer, rates) for producer in topic.producers.by_name.values()]
            if options.publishers
            else []
        ),
        "waitingPublishers": len(topic.producers.waiting),
        "subscriptions": subscriptions,
        "replication": {},
        "nonContiguousDeletedMessagesRanges": sum(
            each["nonContiguousDeletedMessagesRanges"] for each in subscriptions.values()
        ),
        "delayedMessageIndexSizeInBytes": 0,
        "compaction": topic.compaction.stats() if isinstance(topic, Topic) else dict(_NEVER_COMPACTED),
    }
    if persistent:
        stats["deduplicationStatus"] = "Disabled" if topic.deduplication is None else "Enabled"
    if topic.producers.topic_epoch is not None:
        stats["topicEpoch"] = topic.producers.topic_epoch
    if services.config.web_service_url is not None:
        stats["ownerBroker"] = services.config.web_service_url.split("://", 1)[1]
    return stats


_NEVER_OF_A_TOPIC = {
    "offloadedStorageSize": 0,
    "lastOffloadLedgerId": 0,
    "lastOffloadSuccessTimeStamp": 0,
    "lastOffloadFailureTimeStamp": 0,
}

_NEVER_COMPACTED = {
    "lastCompactionRemovedEventCount": 0,
    "lastCompactionSucceedTimestamp": 0,
    "lastCompactionFailedTimestamp": 0,
    "lastCompactionDurationTimeInMills": 0,
}

_NEVER_OF_A_SUBSCRIPTION = {
    "filterProcessedMsgCount": 0,
    "filterAcceptedMsgCount": 0,
    "filterRejectedMsgCount": 0,
    "filterRescheduledMsgCount": 0,
    "dispatchThrottledMsgEventsBySubscriptionLimit": 0,
    "dispatchThrottledBytesEventsBySubscriptionLimit": 0,
    "dispatchThrottledMsgEventsByTopicLimit": 0,
    "dispatchThrottledBytesEventsByTopicLimit": 0,
    "dispatchThrottledMsgEventsByBrokerLimit": 0,
    "dispatchThrottledBytesEventsByBrokerLimit": 0,
}


def _earliest(subscriptions: Iterable[dict[str, Any]]) -> int:
    times = [each["earliestMsgPublishTimeInBacklog"] for each in subscriptions]
    return min((time for time in times if time), default=0)


def _publisher_stats(services: BrokerServices, producer: Producer, rates: Rates) -> dict[str, Any]:
    rate = rates.of(producer)
    return {
        "accessMode": MODE_NAMES[producer.mode],
        "msgRateIn": rate.messages_in,
        "msgThroughputIn": rate.bytes_in,
        "averageMsgSize": rate.bytes_in / rate.messages_in if rate.messages_in else 0.0,
        "producerId": producer.id,
        "supportsPartialProducer": False,
        "producerName": producer.name,
        "address": f"/{producer.connection.peer}",
        "connectedSince": _date(services, producer.connected_at),
        "clientVersion": producer.connection.client_version,
        "metadata": dict(producer.metadata),
    }


# --- subscriptions ------------------------------------------------------------------------------------


def _subscription_stats(subscription: AnySubscription, rates: Rates, options: StatsOptions) -> dict[str, Any]:
    services = subscription.topic.services
    dispatcher = subscription.dispatcher
    consumers = subscription.consumers
    rate = rates.of(subscription)
    _, _, messages_out, bytes_out = subscription.counters()
    shared = dispatcher if isinstance(dispatcher, Shared) else None
    unacked = sum(dispatcher.unacked(each) for each in consumers) if dispatcher is not None else 0
    backlog = subscription.backlog
    earliest = backlog_size = ranges = 0
    if isinstance(subscription, Subscription):
        backlog_size = _backlog_size(subscription)
        ranges = len(subscription.cursor.ranges)
        if options.earliest_time and backlog:
            earliest = subscription.topic.log.peek(_first_unacknowledged(subscription)).publish_time
    delayed = len(shared.delays) if shared is not None else 0
    stats: dict[str, Any] = {
        "msgRateOut": rate.messages_out,
        "msgThroughputOut": rate.bytes_out,
        "bytesOutCounter": bytes_out,
        "msgOutCounter": messages_out,
        "msgBacklog": backlog,
        "backlog": backlog,
        "backlogSize": backlog_size,
        "earliestMsgPublishTimeInBacklog": earliest,
        "msgBacklogNoDelayed": backlog - delayed,
        "blockedSubscriptionOnUnackedMsgs": shared is not None and shared.blocked,
        "msgDelayed": delayed,
        "msgInReplay": shared.replaying if shared is not None else 0,
        "unackedMessages": unacked if shared is not None else 0,
        "type": "None" if subscription.kind is None else SubType.Name(subscription.kind),
        "totalMsgExpired": subscription.expired,
        "lastExpireTimestamp": _moment(services, subscription.expired_at),
        "lastConsumedFlowTimestamp": _moment(services, subscription.flowed_at),
        "lastConsumedTimestamp": max((_moment(services, each.delivered_at) for each in consumers), default=0),
        "lastAckedTimestamp": max((_moment(services, each.acknowledged_at) for each in consumers), default=0),
        "lastMarkDeleteAdvancedTimestamp": _moment(services, subscription.advanced_at),
        "consumers": [_consumer_stats(subscription, each, rates) for each in consumers]
        if options.consumers
        else [],
        "isDurable": subscription.durable,
        "isReplicated": False,
        "allowOutOfOrderDelivery": isinstance(dispatcher, KeyShared) and dispatcher.allow_out_of_order,
        "consumersAfterMarkDeletePosition": {},
        "nonContiguousDeletedMessagesRanges": ranges,
        "delayedMessageIndexSizeInBytes": 0,
        "subscriptionProperties": dict(subscription.properties),
        **_NEVER_OF_A_SUBSCRIPTION,
        "durable": subscription.durable,
        "replicated": False,
    }
    if isinstance(subscription, NonPersistentSubscription):
        stats["dropped"] = subscription.dropped
    if isinstance(dispatcher, KeyShared):
        stats["keySharedMode"] = "STICKY" if dispatcher.sticky else "AUTO_SPLIT"
    active = getattr(dispatcher, "active", None)
    if isinstance(active, Consumer):
        stats["activeConsumerName"] = active.name
    return stats


def _first_unacknowledged(subscription: Subscription) -> int:
    return max(
        subscription.cursor.next_unacknowledged(subscription.cursor.mark_delete + 1),
        subscription.topic.log.first,
    )


def _backlog_size(subscription: Subscription) -> int:
    """Bytes from the mark-delete position to the end. As in Pulsar, acknowledged entries above it count."""
    log = subscription.topic.log
    return log.size_from(max(subscription.cursor.mark_delete + 1, log.first))


def _consumer_stats(subscription: AnySubscription, consumer: Consumer, rates: Rates) -> dict[str, Any]:
    services = subscription.topic.services
    dispatcher = subscription.dispatcher
    rate = rates.of(consumer)
    unacked = 0 if dispatcher is None else dispatcher.unacked(consumer)
    delivered = _moment(services, consumer.delivered_at)
    acknowledged = _moment(services, consumer.acknowledged_at)
    stats: dict[str, Any] = {
        "msgRateOut": rate.messages_out,
        "msgThroughputOut": rate.bytes_out,
        "bytesOutCounter": consumer.bytes_out,
        "msgOutCounter": consumer.messages_out,
        "consumerName": consumer.name,
        "availablePermits": consumer.permits,
        "available_permits": consumer.permits,
        "unackedMessages": unacked if isinstance(dispatcher, Shared) else 0,
        "unacked": unacked,
        "blockedConsumerOnUnackedMsgs": consumer.blocked,
        "priorityLevel": consumer.priority,
        "address": f"/{consumer.connection.peer}",
        "connectedSince": _date(services, consumer.connected_at),
        "clientVersion": consumer.connection.client_version,
        "lastAckedTimestamp": acknowledged,
        "lastConsumedTimestamp": delivered,
        "lastConsumedFlowTimestamp": _moment(services, consumer.flowed_at),
        "metadata": dict(consumer.metadata),
        "lastAckedTime": _date(services, acknowledged),
        "lastConsumedTime": _date(services, delivered),
    }
    if isinstance(dispatcher, KeyShared):
        ranges = dispatcher.selector.ranges(consumer)
        stats["keyHashRangeArrays"] = [list(each) for each in ranges]
        stats["keyHashRanges"] = [str(list(each)) for each in ranges]
    return stats


# --- sums ---------------------------------------------------------------------------------------------

_BY_NAME = {"publishers": "producerName", "consumers": "consumerName"}


def sum_of_stats(each: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Add the numbers of all partitions. Producers, consumers and subscriptions are matched by name."""
    summed: dict[str, Any] = {}
    for stats in each:
        for name, value in stats.items():
            if name not in _NOT_SUMMED:
                summed[name] = _sum(name, summed[name], value) if name in summed else value
    if summed.get("msgRateIn") and "msgThroughputIn" in summed:
        summed["averageMsgSize"] = summed["msgThroughputIn"] / summed["msgRateIn"]
    return summed


def _sum(name: str, one: Any, other: Any) -> Any:
    if name in _BY_NAME:
        return _joined(_BY_NAME[name], one, other)
    if name == "subscriptions":
        both = {**one, **other}
        return {key: sum_of_stats([part[key] for part in (one, other) if key in part]) for key in both}
    if isinstance(one, dict):
        return sum_of_stats([one, other])
    if name in _ONE_FOR_ALL:
        return max(one, other)
    if isinstance(one, bool) or not isinstance(one, (int, float)):
        return one
    return one + other


_NOT_SUMMED = frozenset(("deduplicationStatus", "ownerBroker", "topicEpoch"))

_ONE_FOR_ALL = frozenset(
    (
        "backlogQuotaLimitSize",
        "backlogQuotaLimitTime",
        "oldestBacklogMessageAgeSeconds",
        "earliestMsgPublishTimeInBacklogs",
        "earliestMsgPublishTimeInBacklog",
        "lastConsumedFlowTimestamp",
        "lastConsumedTimestamp",
        "lastAckedTimestamp",
        "lastMarkDeleteAdvancedTimestamp",
        "lastConsumedTime",
        "lastAckedTime",
        "producerId",
        "priorityLevel",
    )
)
"""Values that are not added: the sum shows the greatest."""


def _joined(key: str, present: list[dict[str, Any]], more: list[dict[str, Any]]) -> list[dict[str, Any]]:
    by_name = {each[key]: each for each in present}
    for each in more:
        found = by_name.get(each[key])
        by_name[each[key]] = each if found is None else sum_of_stats([found, each])
    return list(by_name.values())


# --- internal stats -----------------------------------------------------------------------------------


def internal_stats(topic: AnyTopic) -> dict[str, Any]:
    if isinstance(topic, NonPersistentTopic):
        return _nothing_inside(topic)
    log = topic.log
    view = topic.compaction.view
    last = log.ledgers[-1]
    cursors = {name: _cursor_stats(topic, subscription) for name, subscription in topic.subscriptions.items()}
    return {
        "entriesAddedCounter": log.entries_added,
        "numberOfEntries": log.durable_end - log.first,
        "totalSize": log.size,
        "currentLedgerEntries": last.count,
        "currentLedgerSize": last.size,
        "lastLedgerCreatedTimestamp": _date(topic.services, last.opened_at),
        "waitingCursorsCount": sum(cursor["waitingReadOp"] for cursor in cursors.values()),
        "pendingAddEntriesCount": log.end - log.durable_end,
        "lastConfirmedEntry": position_text(topic, log.durable_end - 1),
        "state": "Terminated" if topic.terminated_at is not None else "LedgerOpened",
        "ledgers": [
            {
                "ledgerId": ledger.id,
                "entries": ledger.count,
                "size": ledger.size,
                "offloaded": False,
                "underReplicated": False,
            }
            for ledger in log.ledgers
        ],
        "cursors": cursors,
        "schemaLedgers": [],
        "compactedLedger": {
            "ledgerId": -1 if view is None else view.ledger_id,
            "entries": -1 if view is None else len(view.entries),
            "size": -1 if view is None else view.size,
            "offloaded": False,
            "underReplicated": False,
        },
    }


def _nothing_inside(topic: NonPersistentTopic) -> dict[str, Any]:
    """Internal stats of a non-persistent topic, which stores no entry and no position."""
    cursor = {
        "waitingReadOp": False,
        "pendingReadOps": 0,
        "messagesConsumedCounter": 0,
        "cursorLedger": 0,
        "cursorLedgerLastEntry": 0,
        "active": False,
        "numberOfEntriesSinceFirstNotAckedMessage": 0,
        "totalNonContiguousDeletedMessagesRange": 0,
        "subscriptionHavePendingRead": False,
        "subscriptionHavePendingReplayRead": False,
    }
    return {
        "entriesAddedCounter": 0,
        "numberOfEntries": 0,
        "totalSize": 0,
        "currentLedgerEntries": 0,
        "currentLedgerSize": 0,
        "waitingCursorsCount": 0,
        "pendingAddEntriesCount": 0,
        "cursors": {name: dict(cursor) for name in topic.subscriptions},
    }


def _cursor_stats(topic: Topic, subscription: Subscription) -> dict[str, Any]:
    """Internal stats of a cursor. Its state is "NoLedger": this broker stores cursors with the topic."""
    cursor = subscription.cursor
    read: int = getattr(subscription.dispatcher, "read", cursor.mark_delete + 1)
    waiting = read >= topic.log.durable_end and any(each.permits > 0 for each in subscription.consumers)
    ranges = [
        f"({position_text(topic, first - 1)}..{position_text(topic, last_of_range)}]"
        for first, last_of_range in cursor.ranges
    ]
    return {
        "markDeletePosition": position_text(topic, cursor.mark_delete),
        "readPosition": position_text(topic, read),
        "waitingReadOp": waiting,
        "pendingReadOps": 0,
        "messagesConsumedCounter": topic.log.entries_added - subscription.backlog,
        "cursorLedger": -1,
        "cursorLedgerLastEntry": -1,
        "individuallyDeletedMessages": f"[{','.join(ranges)}]",
        "state": "NoLedger",
        "active": bool(subscription.consumers),
        "numberOfEntriesSinceFirstNotAckedMessage": read - cursor.mark_delete,
        "totalNonContiguousDeletedMessagesRange": len(ranges),
        "subscriptionHavePendingRead": waiting,
        "subscriptionHavePendingReplayRead": False,
        "properties": {},
    }


def position_text(topic: Topic, offset: int) -> str:
    """Return the id of an offset as Pulsar writes it: ledger and entry with a colon between them."""
    ledger_id, entry_id = topic.log.position(offset)
    return f"{ledger_id}:{entry_id}"


def _moment(services: BrokerServices, at: int) -> int:
    """Convert a moment in ns to wall time in ms since 1970; a negative moment, which is never, gives 0."""
    return services.wall_time_of(at) if at >= 0 else 0


def _date(services: BrokerServices, wall_time: int) -> str:
    """Format a wall time as Java does, with the milliseconds that `wall_text` leaves out."""
    fraction = f".{wall_time % 1000:03}".rstrip("0").rstrip(".")
    return f"{wall_text(wall_time)[:-1]}{fraction}Z"
