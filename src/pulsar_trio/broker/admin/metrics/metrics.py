"""GET /metrics: the values of topics, their subscriptions, namespaces and the broker.

Names, labels and meanings are those of Apache Pulsar 4.0. What this broker does not measure is left out:
latencies, sizes of entries, caches, filters, and all that concerns bookies, metadata stores and a JVM.
"""

from collections import Counter
from typing import Any

from pulsar_sansio import TopicName

from ..messages import Answer, Request
from ..routes import AdministeredBroker, Route
from .exposition import CONTENT_TYPE, Exposition, label_text

OF_TOPICS = {
    "pulsar_rate_in": "msgRateIn",
    "pulsar_rate_out": "msgRateOut",
    "pulsar_throughput_in": "msgThroughputIn",
    "pulsar_throughput_out": "msgThroughputOut",
    "pulsar_average_msg_size": "averageMsgSize",
    "pulsar_in_bytes_total": "bytesInCounter",
    "pulsar_in_messages_total": "msgInCounter",
    "pulsar_storage_size": "storageSize",
    "pulsar_storage_logical_size": "storageSize",
    "pulsar_storage_backlog_size": "backlogSize",
    "pulsar_storage_backlog_quota_limit": "backlogQuotaLimitSize",
    "pulsar_storage_backlog_quota_limit_time": "backlogQuotaLimitTime",
    "pulsar_publish_rate_limit_times": "publishRateLimitedTimes",
    "pulsar_txn_tb_active_total": "ongoingTxnCount",
    "pulsar_txn_tb_aborted_total": "abortedTxnCount",
    "pulsar_txn_tb_committed_total": "committedTxnCount",
}
"""Metric of a topic -> its name in the stats of the topic."""

OF_SUBSCRIPTIONS = {
    "pulsar_subscription_back_log": "msgBacklog",
    "pulsar_subscription_back_log_no_delayed": "msgBacklogNoDelayed",
    "pulsar_subscription_delayed": "msgDelayed",
    "pulsar_subscription_in_replay": "msgInReplay",
    "pulsar_subscription_unacked_messages": "unackedMessages",
    "pulsar_subscription_blocked_on_unacked_messages": "blockedSubscriptionOnUnackedMsgs",
    "pulsar_subscription_msg_rate_out": "msgRateOut",
    "pulsar_subscription_msg_throughput_out": "msgThroughputOut",
    "pulsar_subscription_total_msg_expired": "totalMsgExpired",
    "pulsar_subscription_last_expire_timestamp": "lastExpireTimestamp",
    "pulsar_subscription_last_acked_timestamp": "lastAckedTimestamp",
    "pulsar_subscription_last_consumed_flow_timestamp": "lastConsumedFlowTimestamp",
    "pulsar_subscription_last_consumed_timestamp": "lastConsumedTimestamp",
    "pulsar_subscription_last_mark_delete_advanced_timestamp": "lastMarkDeleteAdvancedTimestamp",
    "pulsar_out_bytes_total": "bytesOutCounter",
    "pulsar_out_messages_total": "msgOutCounter",
}
"""Metric of a subscription -> its name in the stats of the subscription."""

OF_THE_BROKER = {
    "pulsar_broker_rate_in": "msgRateIn",
    "pulsar_broker_rate_out": "msgRateOut",
    "pulsar_broker_throughput_in": "msgThroughputIn",
    "pulsar_broker_throughput_out": "msgThroughputOut",
    "pulsar_broker_storage_size": "storageSize",
    "pulsar_broker_storage_logical_size": "storageSize",
    "pulsar_broker_in_bytes_total": "bytesInCounter",
    "pulsar_broker_out_bytes_total": "bytesOutCounter",
}
"""Metric of the broker -> the values of topics that it adds up."""


def read_metrics(broker: AdministeredBroker, request: Request) -> Answer:
    """Answer with all metrics of this moment."""
    machine = broker.machine
    cluster = {"cluster": machine.config.cluster}
    found = Exposition()
    found.add(
        "pulsar_version_info",
        label_text({**cluster, "version": machine.config.server_version, "commit": ""}),
        1,
    )
    sums: dict[str, float] = dict.fromkeys(OF_THE_BROKER.values(), 0)
    counts = Counter(topics=0, subscriptions=0, producers=0, consumers=0, backlog=0)
    namespaces: Counter[str] = Counter()
    for topic in machine.topic_administration.served():
        namespace = TopicName.parse(topic).namespace_name
        labels = {**cluster, "namespace": namespace, "topic": topic}
        stats = machine.topic_administration.stats(topic)
        counted = _add_topic(found, labels, stats)
        counts.update(counted)
        namespaces[namespace] += 1
        for name in sums:
            sums[name] += stats[name]
    for namespace, topics in namespaces.items():
        found.add("pulsar_topics_count", label_text({**cluster, "namespace": namespace}), topics)
    of_broker = label_text(cluster)
    for metric, name in OF_THE_BROKER.items():
        found.add(metric, of_broker, sums[name])
    for name in ("topics", "subscriptions", "producers", "consumers"):
        found.add(f"pulsar_broker_{name}_count", of_broker, counts[name])
    found.add("pulsar_broker_msg_backlog", of_broker, counts["backlog"])
    _add_connections(found, broker, cluster)
    return Answer(200, found.text(), CONTENT_TYPE)


def _add_topic(found: Exposition, labels: dict[str, str], stats: dict[str, Any]) -> Counter[str]:
    """Add the samples of a topic and its subscriptions. Return what they count for the broker."""
    subscriptions: dict[str, dict[str, Any]] = stats["subscriptions"]
    counted = Counter(
        topics=1,
        subscriptions=len(subscriptions),
        producers=len(stats["publishers"]),
        consumers=sum(len(each["consumers"]) for each in subscriptions.values()),
        backlog=sum(each["msgBacklog"] for each in subscriptions.values()),
    )
    of_topic = label_text(labels)
    for name in ("subscriptions", "producers", "consumers"):
        found.add(f"pulsar_{name}_count", of_topic, counted[name])
    found.add("pulsar_msg_backlog", of_topic, counted["backlog"])
    for metric, name in OF_TOPICS.items():
        found.add(metric, of_topic, stats[name])
    for subscription, values in subscriptions.items():
        of_subscription = label_text({**labels, "subscription": subscription})
        found.add("pulsar_subscription_consumers_count", of_subscription, len(values["consumers"]))
        for metric, name in OF_SUBSCRIPTIONS.items():
            found.add(metric, of_subscription, values[name])
    return counted


def _add_connections(found: Exposition, broker: AdministeredBroker, cluster: dict[str, str]) -> None:
    """Add the connections of clients, which are named by the broker's host."""
    machine = broker.machine
    host = machine.config.service_url.partition("://")[2].rpartition(":")[0]
    labels = label_text({**cluster, "broker": host, "metric": "broker_connection"})
    present, accepted = len(machine.links), machine.accepted_connections
    found.add("pulsar_active_connections", labels, present)
    found.add("pulsar_connection_created_total_count", labels, accepted)
    found.add("pulsar_connection_closed_total_count", labels, accepted - present)


ROUTES: list[Route] = [("GET", "/metrics", read_metrics)]
