"""The parts of Pulsar's REST API that this broker lacks. It answers them with 501 and their name."""

from .messages import Refused, Request
from .routes import Route, not_implemented

_MISSING = {
    "/admin/v2/namespaces/{tenant}/{namespace}/migration": "POST",
    "/admin/v2/namespaces/{tenant}/{namespace}/scanOffloadedLedgers": "GET",
    "/admin/v2/clusters/{cluster}/failureDomains/{failure_domain}": "POST DELETE",
    "/admin/v2/clusters/{cluster}/namespaceIsolationPolicies/{policy}": "POST DELETE",
    "/admin/v2/non-persistent/{tenant}/{namespace}/{topic}/entryFilters": "GET POST DELETE",
    "/admin/v2/brokers/configuration/runtime": "GET",
    "/admin/v2/brokers/internal-configuration": "GET",
    "/admin/v2/broker-stats/metrics": "GET",
    "/admin/v2/broker-stats/load-report": "GET",
    "/admin/v2/broker-stats/mbeans": "GET",
    "/admin/v3/transactions/coordinatorInternalStats/{coordinator}": "GET",
    "/admin/v3/transactions/pendingAckInternalStats/{tenant}/{namespace}/{topic}/{subscription}": "GET",
    "/admin/v3/transactions/transactionBufferInternalStats/{tenant}/{namespace}/{topic}": "GET",
}
"""Path -> its methods."""

ROUTES: list[Route] = [
    (method, path, not_implemented(path)) for path, methods in _MISSING.items() for method in methods.split()
]

_NO_WORKER = "there is no worker for {} in this broker"

WORKERS = {
    ("v3", "functions"): (409, "functions"),
    ("v3", "sources"): (409, "connectors (sources)"),
    ("v3", "sinks"): (409, "connectors (sinks)"),
    ("v3", "packages"): (503, "packages"),
    ("v2", "functions"): (409, "functions"),
    ("v2", "worker"): (409, "functions"),
    ("v2", "worker-stats"): (409, "functions"),
}
"""These parts of Pulsar's API belong to workers. A Pulsar without workers answers with the status given."""


def no_such_path(request: Request) -> Refused:
    """Answer a path that is in no table."""
    if len(request.path) >= 3 and request.path[0] == "admin":
        worker = WORKERS.get((request.path[1], request.path[2]))
        if worker is not None:
            status, what = worker
            return Refused(status, _NO_WORKER.format(what))
    return Refused(404, "Not Found")
