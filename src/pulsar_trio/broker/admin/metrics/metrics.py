"""GET /metrics: the values of topics, their subscriptions, namespaces and the broker.

Names, labels and meanings are those of Apache Pulsar 4.0. What this broker does not measure is left out:
latencies, sizes of entries, caches, filters, and all that concerns bookies, metadata stores and a JVM.
"""

from collections.abc import Callable, Sequence
from typing import Any

from pulsar_sansio import TopicName, TopicOverview

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

SUMS: dict[str, Callable[[TopicOverview], float]] = {
    "subscriptions_count": lambda each: each.subscriptions,
    "producers_count": lambda each: each.producers,
    "consumers_count": lambda each: each.consumers,
    "msg_backlog": lambda each: each.backlog,
    "storage_size": lambda each: each.storage,
    "storage_logical_size": lambda each: each.storage,
    "in_bytes_total": lambda each: each.bytes_in,
    "out_bytes_total": lambda each: each.bytes_out,
    "rate_in": lambda each: each.rates.messages_in,
    "rate_out": lambda each: each.rates.messages_out,
    "throughput_in": lambda each: each.rates.bytes_in,
    "throughput_out": lambda each: each.rates.bytes_out,
}
"""Metric of the broker, and of a namespace, without its prefix -> the value of a topic that it adds up."""

MOST_TOPICS = 1_000
"""Topics that are shown one by one. With more of them the answer has the sums of namespaces in their place,
as that of a Java broker with `exposeTopicLevelMetricsInPrometheus=false`. Every client may ask, and an answer
must not hold up the broker."""


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
    overviews = machine.topic_administration.overviews()
    by_namespace: dict[str, list[TopicOverview]] = {}
    for each in overviews:
        by_namespace.setdefault(TopicName.parse(each.name).namespace_name, []).append(each)
    for namespace, topics in by_namespace.items():
        labels = {**cluster, "namespace": namespace}
        found.add("pulsar_topics_count", label_text(labels), len(topics))
        if len(overviews) > MOST_TOPICS:
            _add_sums(found, "pulsar_", labels, topics)
            continue
        for each in topics:
            _add_topic(found, {**labels, "topic": each.name}, machine.topic_administration.stats(each.name))
    found.add("pulsar_broker_topics_count", label_text(cluster), len(overviews))
    _add_sums(found, "pulsar_broker_", cluster, overviews)
    _add_connections(found, broker, cluster)
    return Answer(200, found.text(), CONTENT_TYPE)


def _add_sums(
    found: Exposition, prefix: str, labels: dict[str, str], topics: Sequence[TopicOverview]
) -> None:
    text = label_text(labels)
    for metric, value_of in SUMS.items():
        found.add(prefix + metric, text, sum(map(value_of, topics)))


def _add_topic(found: Exposition, labels: dict[str, str], stats: dict[str, Any]) -> None:
    """Add the samples of a topic and its subscriptions."""
    subscriptions: dict[str, dict[str, Any]] = stats["subscriptions"]
    of_topic = label_text(labels)
    found.add("pulsar_subscriptions_count", of_topic, len(subscriptions))
    found.add("pulsar_producers_count", of_topic, len(stats["publishers"]))
    consumers = sum(len(each["consumers"]) for each in subscriptions.values())
    found.add("pulsar_consumers_count", of_topic, consumers)
    backlog = sum(each["msgBacklog"] for each in subscriptions.values())
    found.add("pulsar_msg_backlog", of_topic, backlog)
    for metric, name in OF_TOPICS.items():
        found.add(metric, of_topic, stats[name])
    for subscription, values in subscriptions.items():
        of_subscription = label_text({**labels, "subscription": subscription})
        found.add("pulsar_subscription_consumers_count", of_subscription, len(values["consumers"]))
        for metric, name in OF_SUBSCRIPTIONS.items():
            found.add(metric, of_subscription, values[name])


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
