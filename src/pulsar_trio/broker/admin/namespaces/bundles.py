"""Bundles of a namespace over HTTP. One broker has no need to divide a namespace: there is one bundle."""

from zlib import crc32

from pulsar_sansio import NotFound

from ..messages import Answer, Refused, Request, answering, json_answer
from ..routes import AdministeredBroker, Route
from ..topics import WHOLE_BUNDLE
from .namespaces import NO_NAMESPACE, bundles, check_bundle
from .policies import NAMESPACE

_BUNDLE = f"{NAMESPACE}/{{bundle}}"


def _topics(broker: AdministeredBroker, request: Request, domain: str = "") -> list[str]:
    """Return the topics of the bundle. Raises `Refused`."""
    with answering((NotFound, 404, "Namespace not found")):
        names = broker.machine.topic_administration.topics(request.namespace)
    check_bundle(request)
    return [name for name in names if name.startswith(domain)]


def delete(broker: AdministeredBroker, request: Request) -> Answer:
    if _topics(broker, request):
        raise Refused(409, "Cannot delete non empty bundle")
    raise Refused(501, f"{WHOLE_BUNDLE}: a namespace without a bundle is not implemented by this broker")


def split(broker: AdministeredBroker, request: Request) -> Answer:
    _topics(broker, request)
    raise Refused(501, "split: a namespace of several bundles is not implemented by this broker")


def hash_positions(broker: AdministeredBroker, request: Request) -> Answer:
    """Answer with the hash of each topic, CRC-32 of its name; `topics` in the query chooses some."""
    with answering(NO_NAMESPACE):
        broker.machine.topic_administration.topics(request.namespace)
    names = _topics(broker, request, "persistent://")
    chosen = request.query.get("topics")
    if chosen is not None:
        wanted = {name.strip() for name in chosen.split(",")}
        names = [name for name in names if name in wanted]
    positions = {name: crc32(name.encode(errors="surrogatepass")) for name in names}
    return json_answer(
        {"namespace": request.namespace, "bundle": request.text("bundle"), "topicHashPositions": positions}
    )


def list_non_persistent(broker: AdministeredBroker, request: Request) -> Answer:
    return json_answer(_topics(broker, request, "non-persistent://"))


def owned(broker: AdministeredBroker, request: Request) -> Answer:
    """Answer with the bundles that the broker serves: that of each namespace with topics."""
    config = broker.machine.config
    name = str(config.web_service_url).partition("://")[2]
    if request.text("broker") != name:
        raise Refused(404, f"Broker id '{request.text('broker'):.200}' not found in available brokers.")
    served = broker.machine.topic_administration.served_namespaces()
    state = {"broker_assignment": "shared", "is_controlled": False, "is_active": True}
    return json_answer({f"{namespace}/{WHOLE_BUNDLE}": state for namespace in served})


def anti_affinity(broker: AdministeredBroker, request: Request) -> Answer:
    """Answer that no namespace has an anti-affinity group: there is one broker."""
    if request.text("cluster") != broker.machine.config.cluster:
        raise Refused(412, f"Cluster {request.text('cluster'):.200} does not exist.")
    if "tenant" not in request.query:
        raise Refused(400, "Tenant should not be null")
    return json_answer([])


ROUTES: list[Route] = [
    ("GET", f"{NAMESPACE}/bundles", bundles),
    ("DELETE", f"{NAMESPACE}/{WHOLE_BUNDLE}", delete),
    ("PUT", f"{_BUNDLE}/split", split),
    ("GET", f"{_BUNDLE}/topicHashPositions", hash_positions),
    ("GET", "/admin/v2/non-persistent/{tenant}/{namespace}/{bundle}", list_non_persistent),
    ("GET", "/admin/v2/brokers/{cluster}/{broker}/ownedNamespaces", owned),
    ("GET", "/admin/v2/namespaces/{cluster}/antiAffinity/{group}", anti_affinity),
]
