"""`/metrics` without a socket: the text, read back by Prometheus's own parser."""

import pytest
from prometheus_client.parser import text_string_to_metric_families

from pulsar_sansio import BrokerConfig
from pulsar_trio.broker.admin.metrics import metrics
from pulsar_trio.broker.admin.metrics.exposition import CONTENT_TYPE, Exposition, label_text
from tests.trio.broker.admin.asking import Administrator

STRANGE = 'quotes " and \\ and\nlines'


def test_labels_are_escaped() -> None:
    found = Exposition()
    found.add("m", label_text({"a": STRANGE, "b": ""}), 1)
    (family,) = text_string_to_metric_families(found.text().decode())
    (sample,) = family.samples
    assert (sample.labels, sample.value) == ({"a": STRANGE, "b": ""}, 1)


def test_the_samples_of_a_metric_follow_each_other() -> None:
    found = Exposition()
    for topic in ("t", "u"):
        for metric in ("m", "n"):
            found.add(metric, label_text({"topic": topic}), 2**53)
    lines = found.text().decode().splitlines()
    assert [line.partition("{")[0] for line in lines] == [
        "# TYPE m gauge",
        "m",
        "m",
        "# TYPE n gauge",
        "n",
        "n",
    ]
    assert {line.rpartition(" ")[2] for line in lines if line[0] != "#"} == {"9007199254740992"}


def test_a_cluster_and_a_topic_with_strange_names() -> None:
    administrator = Administrator(BrokerConfig(cluster=STRANGE, web_service_url="http://127.0.0.1:8080"))
    topic = 'persistent://public/default/a "quoted" name'
    administrator.command(administrator.machine.topic_administration.create_topic, topic)
    answer = administrator.answer("GET", "/metrics")
    assert (answer.status, answer.content_type) == (200, CONTENT_TYPE)
    topics = {
        sample.labels["topic"]
        for family in text_string_to_metric_families(answer.body.decode())
        for sample in family.samples
        if "topic" in sample.labels
    }
    assert topics == {topic}


def test_with_many_topics_the_answer_has_namespaces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every client may ask, so the answer has a bound."""
    monkeypatch.setattr(metrics, "MOST_TOPICS", 2)
    administrator = Administrator()
    peer = administrator.world.connect()
    for number in range(3):
        peer.producer(f"persistent://public/default/t{number}", number, f"p{number}")
        peer.publish(b"x", 0, number)
        peer.inbox.clear()
    found = {
        (sample.name, tuple(sorted(sample.labels))): sample.value
        for family in text_string_to_metric_families(administrator.answer("GET", "/metrics").body.decode())
        for sample in family.samples
    }
    of_namespace = ("cluster", "namespace")
    assert found["pulsar_topics_count", of_namespace] == found["pulsar_producers_count", of_namespace] == 3
    assert (
        found["pulsar_in_bytes_total", of_namespace]
        == found["pulsar_broker_in_bytes_total", ("cluster",)]
        > 0
    )
    assert not [labels for _, labels in found if "topic" in labels]


def test_a_broker_without_topics() -> None:
    answer = Administrator().answer("GET", "/metrics")
    samples = {
        sample.name: sample.value
        for family in text_string_to_metric_families(answer.body.decode())
        for sample in family.samples
    }
    assert samples["pulsar_broker_topics_count"] == samples["pulsar_active_connections"] == 0
    assert "pulsar_rate_in" not in samples
