"""Clusters and brokers: there is one of each, and tools ask for its health before anything else."""

from typing import Any

from .messages import NO_CONTENT, Answer, Refused, Request, json_answer
from .routes import AdministeredBroker, Route


def _broker_id(broker: AdministeredBroker) -> str:
    """`host:port` of the HTTP side, as Pulsar names its brokers."""
    return str(broker.machine.config.web_service_url).split("://", 1)[1]


def health(broker: AdministeredBroker, request: Request) -> Answer:
    """Answer 200: a broker that failed would answer nothing. The version of Pulsar's topic makes no
    difference."""
    if request.query.get("topicVersion", "V2") not in ("V1", "V2"):
        raise Refused(404, "Not Found")
    return Answer(200, b"ok")


def version(broker: AdministeredBroker, request: Request) -> Answer:
    return Answer(200, broker.machine.config.server_version.encode())


def list_brokers(broker: AdministeredBroker, request: Request) -> Answer:
    return json_answer([_broker_id(broker)])


def leader(broker: AdministeredBroker, request: Request) -> Answer:
    return json_answer({"serviceUrl": broker.machine.config.web_service_url, "brokerId": _broker_id(broker)})


def list_clusters(broker: AdministeredBroker, request: Request) -> Answer:
    return json_answer([broker.machine.config.cluster])


def read_cluster(broker: AdministeredBroker, request: Request) -> Answer:
    _check_cluster(broker, request)
    config = broker.machine.config
    data: dict[str, Any] = {
        "serviceUrl": config.web_service_url,
        "brokerServiceUrl": config.service_url,
        "brokerClientTlsEnabled": False,
        "tlsAllowInsecureConnection": False,
        "brokerClientTlsEnabledWithKeyStore": False,
    }
    if config.service_url_tls is not None:
        data["brokerServiceUrlTls"] = config.service_url_tls
    return json_answer(data)


def create_cluster(broker: AdministeredBroker, request: Request) -> Answer:
    """Test set-ups ask for the one there is, and take 409 for success."""
    if request.text("cluster") == broker.machine.config.cluster:
        raise Refused(409, "Cluster already exists")
    raise Refused(501, "a second cluster is not implemented by this broker")


def change_cluster(broker: AdministeredBroker, request: Request) -> Answer:
    """Refuse: the addresses of the one cluster are settings of its broker."""
    _check_cluster(broker, request)
    for name in ("serviceUrl", "serviceUrlTls", "brokerServiceUrl", "brokerServiceUrlTls"):
        url = request.json_object().get(name)
        if url is not None and (not isinstance(url, str) or (url and "://" not in url)):
            raise Refused(400, f"Illegal service url, example: {_EXAMPLES['broker' not in name]}")
    raise Refused(501, "other addresses of the cluster are not implemented by this broker")


_EXAMPLES = ("pulsar://pulsar.example.com:6650", "http://pulsar.example.com:8080")


def delete_cluster(broker: AdministeredBroker, request: Request) -> Answer:
    _check_cluster(broker, request)
    raise Refused(501, "a broker without its cluster is not implemented by this broker")


def no_peers(broker: AdministeredBroker, request: Request) -> Answer:
    """Answer that the one cluster has no peers, or take an empty list of them."""
    _check_cluster(broker, request)
    if request.method in ("GET", "HEAD"):
        return Answer(200)
    peers = request.json()
    if not isinstance(peers, list):
        raise Refused(400, f"peers have to be a list of clusters, not {peers!r:.200}")
    if peers:
        raise Refused(412, f"Peer cluster {peers[0]!s:.100} does not exist")
    return NO_CONTENT


def no_failure_domains(broker: AdministeredBroker, request: Request) -> Answer:
    return json_answer({})


def no_failure_domain(broker: AdministeredBroker, request: Request) -> Answer:
    domain, cluster = request.text("failure_domain"), request.text("cluster")
    raise Refused(404, f"Domain {domain:.200} for cluster {cluster:.200} does not exist")


def no_isolation_policies(broker: AdministeredBroker, request: Request) -> Answer:
    cluster = request.text("cluster")
    if cluster != broker.machine.config.cluster:
        raise Refused(404, f"Cluster {cluster:.200} does not exist.")
    raise Refused(404, f"NamespaceIsolationPolicies for cluster {cluster} does not exist")


def check_backlog_quotas(broker: AdministeredBroker, request: Request) -> Answer:
    """Check all backlog quotas now, and not only at the next housekeeping."""
    broker.command(broker.machine.topic_administration.enforce_backlog_quotas)
    return NO_CONTENT


# --- dynamic configuration: no setting can be changed while the broker runs ---------------------------


def dynamic_names(broker: AdministeredBroker, request: Request) -> Answer:
    return json_answer([])


def dynamic_values(broker: AdministeredBroker, request: Request) -> Answer:
    return json_answer({})


def update_dynamic(broker: AdministeredBroker, request: Request) -> Answer:
    raise Refused(412, "Can't update non-dynamic configuration")


def delete_dynamic(broker: AdministeredBroker, request: Request) -> Answer:
    raise Refused(412, "Can't delete non-dynamic configuration")


def _check_cluster(broker: AdministeredBroker, request: Request) -> None:
    if request.text("cluster") != broker.machine.config.cluster:
        raise Refused(404, "Cluster does not exist")


_CLUSTER = "/admin/v2/clusters/{cluster}"

ROUTES: list[Route] = [
    ("GET", "/admin/v2/brokers/health", health),
    ("GET", "/admin/v2/brokers/ready", health),
    ("GET", "/admin/v2/brokers/version", version),
    ("GET", "/admin/v2/brokers/leaderBroker", leader),
    ("GET", "/admin/v2/brokers/configuration", dynamic_names),
    ("GET", "/admin/v2/brokers/configuration/values", dynamic_values),
    ("POST", "/admin/v2/brokers/configuration/{name}/{value}", update_dynamic),
    ("DELETE", "/admin/v2/brokers/configuration/{name}", delete_dynamic),
    ("GET", "/admin/v2/brokers", list_brokers),
    ("GET", "/admin/v2/brokers/{cluster}", list_brokers),
    ("GET", "/admin/v2/clusters", list_clusters),
    ("GET", _CLUSTER, read_cluster),
    ("PUT", _CLUSTER, create_cluster),
    ("POST", _CLUSTER, change_cluster),
    ("DELETE", _CLUSTER, delete_cluster),
    ("GET", f"{_CLUSTER}/peers", no_peers),
    ("POST", f"{_CLUSTER}/peers", no_peers),
    ("GET", f"{_CLUSTER}/failureDomains", no_failure_domains),
    ("GET", f"{_CLUSTER}/failureDomains/{{failure_domain}}", no_failure_domain),
    ("GET", f"{_CLUSTER}/namespaceIsolationPolicies", no_isolation_policies),
    ("GET", f"{_CLUSTER}/namespaceIsolationPolicies/{{policy}}", no_isolation_policies),
    ("GET", "/admin/v2/brokers/backlog-quota-check", check_backlog_quotas),
]
