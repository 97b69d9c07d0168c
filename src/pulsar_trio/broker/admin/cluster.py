"""Clusters and brokers: there is one of each, and tools ask for its health before anything else."""

from typing import Any

from .messages import Answer, Refused, Request, json_answer
from .routes import AdministeredBroker, Route


def _broker_id(broker: AdministeredBroker) -> str:
    """`host:port` of the HTTP side, as Pulsar names its brokers."""
    return str(broker.machine.config.web_service_url).split("://", 1)[1]


def health(broker: AdministeredBroker, request: Request) -> Answer:
    """Answer 200: a broker that failed would answer nothing."""
    return Answer(200, b"ok")


def version(broker: AdministeredBroker, request: Request) -> Answer:
    return Answer(200, broker.machine.config.server_version.encode())


def list_brokers(broker: AdministeredBroker, request: Request) -> Answer:
    return json_answer([_broker_id(broker)])


def list_brokers_of_cluster(broker: AdministeredBroker, request: Request) -> Answer:
    _check_cluster(broker, request)
    return list_brokers(broker, request)


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


# --- dynamic configuration: no setting can be changed while the broker runs ---------------------------


def dynamic_names(broker: AdministeredBroker, request: Request) -> Answer:
    return json_answer([])


def dynamic_values(broker: AdministeredBroker, request: Request) -> Answer:
    return json_answer({})


def update_dynamic(broker: AdministeredBroker, request: Request) -> Answer:
    raise Refused(412, f"Can't update non-dynamic configuration {request.text('name'):.100}")


def delete_dynamic(broker: AdministeredBroker, request: Request) -> Answer:
    raise Refused(412, f"Can't delete non-dynamic configuration {request.text('name'):.100}")


def _check_cluster(broker: AdministeredBroker, request: Request) -> None:
    if request.text("cluster") != broker.machine.config.cluster:
        raise Refused(404, "Cluster does not exist")


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
    ("GET", "/admin/v2/brokers/{cluster}", list_brokers_of_cluster),
    ("GET", "/admin/v2/clusters", list_clusters),
    ("GET", "/admin/v2/clusters/{cluster}", read_cluster),
    ("PUT", "/admin/v2/clusters/{cluster}", create_cluster),
]
