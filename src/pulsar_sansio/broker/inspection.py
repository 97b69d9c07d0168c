"""Stats of a topic, in the shape of the Java broker's REST answers; it only looks.

What this broker does not measure (rates) is left out, not made up.
"""

from typing import Any

from .consumer import Consumer, SubType
from .dispatch_shared import KeyShared, Shared
from .nonpersistent import VolatileSubscription, VolatileTopic
from .producers import MODE_NAMES
from .subscription import Subscription
from .topic import Topic


def topic_stats(topic: Topic | VolatileTopic) -> dict[str, Any]:
    stats: dict[str, Any] = {
        "msgInCounter": topic.messages_in,
        "bytesInCounter": topic.bytes_in,
        "publishers": [
            {
                "accessMode": MODE_NAMES[producer.mode],
                "producerId": producer.id,
                "producerName": producer.name,
                "address": producer.connection.peer,
                "clientVersion": producer.connection.client_version,
                "metadata": dict(producer.metadata),
                "pending": producer.pending,
            }
            for producer in topic.producers.by_name.values()
        ],
        "waitingPublishers": len(topic.producers.waiting),
        "topicEpoch": topic.producers.topic_epoch,
        "deduplicationStatus": "Disabled" if topic.deduplication is None else "Enabled",
        "subscriptions": {
            name: _subscription_stats(subscription) for name, subscription in topic.subscriptions.items()
        },
    }
    if isinstance(topic, Topic):
        stats["storageSize"] = topic.log.size
    return stats


def _subscription_stats(subscription: Subscription | VolatileSubscription) -> dict[str, Any]:
    dispatcher = subscription.dispatcher
    unacked = 0 if dispatcher is None else sum(dispatcher.unacked(each) for each in subscription.consumers)
    kind = "None" if subscription.kind is None else SubType.Name(subscription.kind)
    stats: dict[str, Any] = {
        "type": kind,
        "msgBacklog": subscription.backlog,
        "backlog": subscription.backlog,
        "unackedMessages": unacked,
        "durable": subscription.durable,
        "isDurable": subscription.durable,
        "consumers": [_consumer_stats(subscription, each) for each in subscription.consumers],
    }
    if isinstance(subscription, VolatileSubscription):
        stats["dropped"] = subscription.dropped
        return stats
    stats["subscriptionProperties"] = dict(subscription.properties)
    if isinstance(dispatcher, Shared):
        stats["blockedSubscriptionOnUnackedMsgs"] = dispatcher.blocked
        stats["msgInReplay"] = dispatcher.replaying
    elif dispatcher is not None:
        active = getattr(dispatcher, "active", None)
        stats["activeConsumerName"] = active.name if isinstance(active, Consumer) else ""
    return stats


def _consumer_stats(subscription: Subscription | VolatileSubscription, consumer: Consumer) -> dict[str, Any]:
    dispatcher = subscription.dispatcher
    unacked = 0 if dispatcher is None else dispatcher.unacked(consumer)
    stats: dict[str, Any] = {
        "consumerName": consumer.name,
        "availablePermits": consumer.permits,
        "available_permits": consumer.permits,
        "unackedMessages": unacked,
        "unacked": unacked,
        "blockedConsumerOnUnackedMsgs": consumer.blocked,
        "priorityLevel": consumer.priority,
        "address": consumer.connection.peer,
        "clientVersion": consumer.connection.client_version,
        "msgOutCounter": consumer.messages_out,
        "bytesOutCounter": consumer.bytes_out,
        "metadata": dict(consumer.metadata),
    }
    if isinstance(dispatcher, KeyShared):
        stats["keyHashRangeArrays"] = [list(each) for each in dispatcher.selector.ranges(consumer)]
    return stats


def internal_stats(topic: Topic) -> dict[str, Any]:
    log = topic.log
    last = log.ledgers[-1]

    def text(offset: int) -> str:
        ledger_id, entry_id = log.position(offset)
        return f"{ledger_id}:{entry_id}"

    return {
        "entriesAddedCounter": log.entries_added,
        "numberOfEntries": log.durable_end - log.first,
        "totalSize": log.size,
        "currentLedgerEntries": len(last.entries),
        "currentLedgerSize": last.size,
        "lastConfirmedEntry": text(log.durable_end - 1),
        "state": "Terminated" if topic.terminated_at is not None else "LedgerOpened",
        "ledgers": [
            {"ledgerId": ledger.id, "entries": len(ledger.entries), "size": ledger.size}
            for ledger in log.ledgers
        ],
        "cursors": {
            name: {
                "markDeletePosition": text(subscription.cursor.mark_delete),
                "readPosition": text(
                    getattr(subscription.dispatcher, "read", subscription.cursor.mark_delete + 1)
                ),
                "individuallyDeletedMessages": [
                    f"({text(first - 1)}..{text(last_of_range)}]"
                    for first, last_of_range in subscription.cursor.ranges
                ],
                "batchDeletedIndexes": len(subscription.cursor.partly),
                "numberOfEntriesSinceFirstNotAckedMessage": log.durable_end
                - subscription.cursor.mark_delete
                - 1,
            }
            for name, subscription in topic.subscriptions.items()
        },
    }
