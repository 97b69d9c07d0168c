"""The one cluster over HTTP: what cannot be changed is refused by name, and quotas are checked at once."""

from pulsar_sansio import BrokerConfig
from tests.trio.broker.admin.asking import Administrator

CLUSTER = "/clusters/standalone"


def test_the_cluster_cannot_be_changed_nor_deleted() -> None:
    broker = Administrator()
    status, reason = broker.ask("POST", CLUSTER, {"serviceUrl": "http://other:8080"})
    assert (status, "cluster" in reason) == (501, True)
    status, reason = broker.ask("DELETE", CLUSTER)
    assert (status, "cluster" in reason) == (501, True)
    wrong = broker.ask("POST", CLUSTER, {"brokerServiceUrl": "x"})
    assert wrong == (400, "Illegal service url, example: pulsar://pulsar.example.com:6650")
    assert broker.ask("POST", f"{CLUSTER}/peers", {})[0] == 400
    absent = broker.ask("GET", "/clusters/none/namespaceIsolationPolicies")
    assert absent == (404, "Cluster none does not exist.")


def test_quotas_are_checked_when_an_administrator_says_so() -> None:
    """Housekeeping would evict the backlog, too, but its time has not come."""
    broker = Administrator(BrokerConfig(web_service_url="http://127.0.0.1:8080", housekeeping_interval=9999))
    quota = {"limitSize": 0, "policy": "consumer_backlog_eviction"}
    assert broker.ask("PUT", "/persistent/public/default/t/subscription/s") == (204, None)
    assert broker.ask("POST", "/persistent/public/default/t/backlogQuota", quota) == (204, None)
    peer = broker.world.connect()
    peer.producer()
    peer.publish(b"x", 0)
    assert _backlog(broker) == 1
    assert broker.ask("GET", "/brokers/backlog-quota-check") == (204, None)
    assert _backlog(broker) == 0


def _backlog(broker: Administrator) -> int:
    _, stats = broker.ask("GET", "/persistent/public/default/t/stats")
    return int(stats["subscriptions"]["s"]["msgBacklog"])
