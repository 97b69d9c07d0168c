"""Resource groups over HTTP. This broker has none: reading says so, and making one is 501 with its name."""

from pulsar_sansio import NotFound

from ..messages import NO_CONTENT, NOTHING_SET, Answer, Refused, Request, answering, json_answer
from ..routes import AdministeredBroker, Route
from .policies import NAMESPACE

_GROUP = "/admin/v2/resourcegroups/{resourcegroup}"


def _check_namespace(broker: AdministeredBroker, request: Request) -> None:
    with answering((NotFound, 404, "Namespace does not exist")):
        broker.machine.administration.policies_of(request.namespace)


def list_groups(broker: AdministeredBroker, request: Request) -> Answer:
    return json_answer([])


def absent(broker: AdministeredBroker, request: Request) -> Answer:
    raise Refused(404, "ResourceGroup does not exist")


def create(broker: AdministeredBroker, request: Request) -> Answer:
    raise Refused(501, f"PUT {_GROUP} is not implemented by this broker")


def of_namespace(broker: AdministeredBroker, request: Request) -> Answer:
    _check_namespace(broker, request)
    return NOTHING_SET


def assign(broker: AdministeredBroker, request: Request) -> Answer:
    _check_namespace(broker, request)
    raise Refused(412, "ResourceGroup does not exist")


def remove(broker: AdministeredBroker, request: Request) -> Answer:
    _check_namespace(broker, request)
    return NO_CONTENT


ROUTES: list[Route] = [
    ("GET", "/admin/v2/resourcegroups", list_groups),
    ("GET", _GROUP, absent),
    ("PUT", _GROUP, create),
    ("DELETE", _GROUP, absent),
    ("GET", f"{NAMESPACE}/resourcegroup", of_namespace),
    ("POST", f"{NAMESPACE}/resourcegroup/{{resourcegroup}}", assign),
    ("DELETE", f"{NAMESPACE}/resourcegroup", remove),
]
