"""`/metrics` over HTTP: the names, labels and values of a real Pulsar, as Prometheus's own parser reads them.

What our broker does not measure is listed as such (`LEFT_OUT`), and nothing else may be missing.
"""

from prometheus_client.parser import text_string_to_metric_families

from pulsar_trio import Client
from tests.suite.brokers import BrokerUnderTest
from tests.suite.helpers import payloads, receive, until

Samples = dict[tuple[str, str], tuple[float, set[str]]]
"""(metric, subscription or nothing) -> value and the names of the labels."""

LEFT_OUT = (
    "pulsar_storage_write_latency_",
    "pulsar_storage_ledger_write_latency_",
    "pulsar_entry_size_",
    "pulsar_storage_write_rate",
    "pulsar_storage_read_",
    "pulsar_storage_offloaded_size",
    "pulsar_storage_backlog_age_seconds",
    "pulsar_storage_backlog_quota_exceeded_evictions_total",
    "pulsar_delayed_message_index_size_bytes",
    "pulsar_compaction_",
    "pulsar_subscription_delayed_message_index_size_bytes",
    "pulsar_subscription_dispatch_throttled_",
    "pulsar_subscription_filter_",
    "pulsar_subscription_msg_ack_rate",
    "pulsar_subscription_msg_drop_rate",
    "pulsar_subscription_msg_rate_expired",
    "pulsar_subscription_msg_rate_redeliver",
    "pulsar_txn_tb_client_pending_requests",
)
"""Beginnings of the names of what our broker does not measure."""


async def read(broker: BrokerUnderTest, topic: str) -> Samples:
    """Return the samples of a topic and of its subscriptions."""
    status, text = await broker.request("GET", "/metrics/")
    assert status == 200
    return {
        (sample.name, sample.labels.get("subscription", "")): (sample.value, set(sample.labels))
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.labels.get("topic") == topic
    }


async def test_a_topic_in_use(broker: BrokerUnderTest, client: Client, topic: str) -> None:
    found: Samples = {}
    async with (
        client.subscribe(topic, "sub", "shared") as consumer,
        client.subscribe(topic, "idle", "shared", receiver_queue_size=1),
        client.create_producer(topic, batching=None) as producer,
    ):
        await producer.send_many(payloads(5))
        messages = await receive(consumer, 5)
        consumer.acknowledge([messages[0], messages[1]])
        await consumer.flush()

        async def counted() -> bool:
            found.update(await read(broker, topic))
            return found.get(("pulsar_subscription_back_log", "sub"), (5,))[0] == 3

        await until(counted)
    of_topic, of_subscription = (
        {"cluster", "namespace", "topic"},
        {"cluster", "namespace", "topic", "subscription"},
    )
    expected = {
        "pulsar_subscriptions_count": 2,
        "pulsar_producers_count": 1,
        "pulsar_consumers_count": 2,
        "pulsar_in_messages_total": 5,
        "pulsar_msg_backlog": 8,
        "pulsar_storage_backlog_quota_limit_time": -1,
        "pulsar_publish_rate_limit_times": 0,
        "pulsar_txn_tb_active_total": 0,
    }
    assert {name: found[name, ""] for name in expected} == {
        name: (value, of_topic) for name, value in expected.items()
    }
    assert found["pulsar_storage_size", ""][0] == found["pulsar_in_bytes_total", ""][0] > 0
    expected = {
        "pulsar_subscription_back_log": 3,
        "pulsar_subscription_unacked_messages": 3,
        "pulsar_subscription_consumers_count": 1,
        "pulsar_subscription_blocked_on_unacked_messages": 0,
        "pulsar_subscription_delayed": 0,
        "pulsar_out_messages_total": 5,
    }
    assert {name: found[name, "sub"] for name in expected} == {
        name: (value, of_subscription) for name, value in expected.items()
    }
    names = {name for name, _ in found if not name.startswith(LEFT_OUT)}
    assert names == NAMES


async def test_the_broker_and_its_namespaces(broker: BrokerUnderTest, client: Client, topic: str) -> None:
    async with client.create_producer(topic) as producer:
        await producer.send(b"x")
        _, text = await broker.request("GET", "/metrics/")
    families = {family.name: family.samples for family in text_string_to_metric_families(text)}
    for name in BROKER_NAMES:
        assert {"cluster"} <= set(families[name][0].labels), name
    (producers,) = families["pulsar_broker_producers_count"]
    assert producers.value >= 1
    of_namespace = {sample.labels["namespace"]: sample.value for sample in families["pulsar_topics_count"]}
    assert of_namespace["public/default"] >= 1
    assert sum(of_namespace.values()) == families["pulsar_broker_topics_count"][0].value
    (active,) = families["pulsar_active_connections"]
    assert set(active.labels) == {"cluster", "broker", "metric"}
    assert active.value >= 1
    (created,) = families["pulsar_connection_created_total_count"]
    (closed,) = families["pulsar_connection_closed_total_count"]
    assert created.value - closed.value == active.value


NAMES = {
    *("pulsar_subscriptions_count", "pulsar_producers_count", "pulsar_consumers_count", "pulsar_rate_in"),
    *("pulsar_rate_out", "pulsar_throughput_in", "pulsar_throughput_out", "pulsar_average_msg_size"),
    *("pulsar_in_bytes_total", "pulsar_in_messages_total", "pulsar_storage_size", "pulsar_msg_backlog"),
    *("pulsar_storage_logical_size", "pulsar_storage_backlog_size", "pulsar_storage_backlog_quota_limit"),
    *("pulsar_storage_backlog_quota_limit_time", "pulsar_publish_rate_limit_times"),
    *("pulsar_txn_tb_active_total", "pulsar_txn_tb_aborted_total", "pulsar_txn_tb_committed_total"),
    *("pulsar_subscription_back_log", "pulsar_subscription_back_log_no_delayed"),
    *("pulsar_subscription_delayed", "pulsar_subscription_in_replay", "pulsar_subscription_msg_rate_out"),
    *("pulsar_subscription_unacked_messages", "pulsar_subscription_blocked_on_unacked_messages"),
    *("pulsar_subscription_msg_throughput_out", "pulsar_subscription_total_msg_expired"),
    *("pulsar_subscription_consumers_count", "pulsar_subscription_last_expire_timestamp"),
    *("pulsar_subscription_last_acked_timestamp", "pulsar_subscription_last_consumed_timestamp"),
    *("pulsar_subscription_last_consumed_flow_timestamp", "pulsar_out_bytes_total"),
    *("pulsar_subscription_last_mark_delete_advanced_timestamp", "pulsar_out_messages_total"),
}
"""All that both brokers tell of a topic and its subscriptions."""

BROKER_NAMES = (
    *("pulsar_version_info", "pulsar_broker_topics_count", "pulsar_broker_subscriptions_count"),
    *("pulsar_broker_producers_count", "pulsar_broker_consumers_count", "pulsar_broker_msg_backlog"),
    *("pulsar_broker_rate_in", "pulsar_broker_rate_out", "pulsar_broker_throughput_in"),
    *("pulsar_broker_throughput_out", "pulsar_broker_storage_size", "pulsar_broker_storage_logical_size"),
    *("pulsar_broker_in_bytes_total", "pulsar_broker_out_bytes_total"),
)
