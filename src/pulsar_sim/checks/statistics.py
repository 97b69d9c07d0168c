"""The counters of client and broker at rest: they agree with what applications were told, and with each other
(STATS-02, STATS-03, STATS-04, STATS-05).

Owns the comparison. It reads public statistics of both, and the records of the model.
"""

from dataclasses import astuple
from typing import TYPE_CHECKING, Any

from ..engine.failures import ViolationError
from ..model.records.consumer_record import ConsumerRecord

if TYPE_CHECKING:
    from ..engine.surroundings import Surroundings


def check_tallies(world: "Surroundings") -> None:
    """INV-L2: every message has an outcome and nothing is in flight."""
    for producer in world.apps.producers:
        if producer.state == "open" and producer.record is not None and not producer.record.closed:
            client = producer.host.node.client
            last = client.last_sequence_id(producer.handle)()
            found = client.producer_statistics(producer.handle)
            _check_producer(producer.record.tag, found, producer.record, last)
            said = client.explain(world.clock.now, producer.handle)
            _hold(producer.record.tag, "explanation", "no message is pending" in said)
    for consumer in world.apps.consumers:
        if consumer.state == "open" and consumer.record is not None:
            client = consumer.host.node.client
            name, statistics = consumer.record.name, client.consumer_statistics(consumer.handle)
            _agree(name, "messages received", statistics.messages_received, consumer.taken)
            _agree(name, "messages available", statistics.available, client.available(consumer.handle))
            _hold(name, "bytes received", statistics.bytes_received >= 0)
            _hold(name, "acknowledgements", statistics.acknowledgements_failed >= 0)
            arrived = astuple(client.arrival_counters(consumer.handle))
            _hold(name, "arrivals", all(each >= 0 for each in arrived if type(each) is int))
            if isinstance(consumer.record, ConsumerRecord):
                written = consumer.record.ids_acknowledged
                _agree(name, "acknowledgements sent", statistics.acknowledgements_sent, written)
    for topic, record in world.model.topics.items():
        if record.persistent:
            for broker in world.holding(topic):
                _check_topic(
                    topic,
                    broker.topic_administration.stats(topic),
                    broker.topic_administration.internal_stats(topic),
                )


def _check_producer(name: str, found: Any, record: Any, last: int) -> None:
    outcomes = [sent.outcome for sent in record.sent if sent.ticket >= 0]
    confirmed = outcomes.count("confirmed")
    _agree(name, "messages confirmed", found.confirmed, confirmed)
    _agree(name, "messages failed", found.failed, len(outcomes) - confirmed)
    _agree(name, "messages pending", (found.pending, found.pending_bytes), (0, 0))
    _hold(name, "messages sent", found.messages_sent >= confirmed)
    _agree(name, "messages sent", found.messages_sent, sum(sent.wires for sent in record.sent))
    size = sum(len(sent.payload or b"") * sent.wires for sent in record.sent)
    _agree(name, "bytes sent", found.bytes_sent, size)
    _hold(name, "batches", found.batched_messages >= 2 * found.batches >= 0)
    if record.spec.batching is None:
        _agree(name, "batches", found.batches, 0)
    _hold(name, "last sequence id", last >= (0 if confirmed else -1))
    if found.latency is not None:
        latency = found.latency
        _hold(name, "latencies", 0 <= latency.p50 <= latency.p75 <= latency.p999 <= latency.maximum < 1e5)


def _check_topic(name: str, stats: dict[str, Any], inside: dict[str, Any]) -> None:
    ledgers = inside["ledgers"]
    _agree(name, "entries", inside["numberOfEntries"], sum(each["entries"] for each in ledgers))
    _agree(name, "bytes", inside["totalSize"], sum(each["size"] for each in ledgers))
    _agree(name, "storage size", stats["storageSize"], inside["totalSize"])
    _agree(name, "pending entries", inside["pendingAddEntriesCount"], 0)
    _hold(name, "entries added", inside["entriesAddedCounter"] >= 0 <= stats["bytesInCounter"])
    _hold(name, "messages in", (stats["msgInCounter"] > 0) == (stats["bytesInCounter"] > 0))
    subscriptions = stats["subscriptions"]
    for counter in ("msgOutCounter", "bytesOutCounter"):
        each = sum(subscription[counter] for subscription in subscriptions.values())
        _hold(name, counter, stats[counter] >= each)
        for subscription in subscriptions.values():
            each = sum(consumer[counter] for consumer in subscription["consumers"])
            _hold(name, counter, subscription[counter] >= each >= 0)
    for subscription, found in subscriptions.items():
        _check_subscription(f"{name}/{subscription}", found, inside["cursors"][subscription])


def _check_subscription(name: str, found: dict[str, Any], cursor: dict[str, Any]) -> None:
    _agree(name, "backlog", found["backlog"], found["msgBacklogNoDelayed"] + found["msgDelayed"])
    _hold(name, "backlog size", found["backlogSize"] >= 0)
    ranges = cursor["totalNonContiguousDeletedMessagesRange"]
    _agree(name, "ranges", found["nonContiguousDeletedMessagesRanges"], ranges)
    consumers = found["consumers"]
    _hold(name, "unacknowledged", all(each["unacked"] >= 0 for each in consumers))
    if found["type"] in ("Shared", "Key_Shared"):
        _agree(name, "unacknowledged", found["unackedMessages"], sum(each["unacked"] for each in consumers))
    for each in consumers:
        consumer = f"{name}/{each['consumerName']}"
        received, moment = each["msgOutCounter"] > 0, each["lastConsumedTimestamp"] > 0
        _agree(consumer, "last delivery", moment, received)
        _hold(consumer, "last flow", not received or each["lastConsumedFlowTimestamp"] > 0)
        _hold(consumer, "last delivery", found["lastConsumedTimestamp"] >= each["lastConsumedTimestamp"])
        _hold(consumer, "last acknowledgement", found["lastAckedTimestamp"] >= each["lastAckedTimestamp"])
        _hold(consumer, "last flow", found["lastConsumedFlowTimestamp"] >= each["lastConsumedFlowTimestamp"])


def _agree(name: str, what: str, found: object, expected: object) -> None:
    if found != expected:
        raise ViolationError("INV-L2", f"{name}: {what}: {found} counted, {expected} expected")


def _hold(name: str, what: str, holds: bool) -> None:
    if not holds:
        raise ViolationError("INV-L2", f"{name}: {what} cannot be so")
