"""The parts of Pulsar's REST API that this broker lacks: its answer names them."""

import pytest

from pulsar_trio.broker.admin import missing
from pulsar_trio.broker.admin.listener import perform
from pulsar_trio.broker.admin.messages import Refused, Request
from pulsar_trio.broker.admin.routes import Table
from tests.trio.broker.admin.asking import Administrator


def request(method: str, target: str) -> Request:
    return Request.parse(method, target, "application/json")


@pytest.mark.parametrize(("method", "path"), sorted({(method, path) for method, path, _ in missing.ROUTES}))
def test_what_is_missing_says_its_name(method: str, path: str) -> None:
    target = "/".join("x" if part.startswith("{") else part for part in path.split("/"))
    answer = perform(Administrator(), request(method, target))
    assert answer.status == 501
    assert b"is not implemented by this broker" in answer.body
    assert method.encode() in answer.body
    assert path.rpartition("/")[2].encode() in answer.body


@pytest.mark.parametrize(
    ("method", "target", "template"),
    [
        (
            "POST",
            "/admin/v2/namespaces/public/default/migration",
            "/admin/v2/namespaces/{tenant}/{namespace}/migration",
        ),
        ("GET", "/admin/v2/broker-stats/mbeans", "/admin/v2/broker-stats/mbeans"),
    ],
)
def test_the_answer_shows_the_path_as_a_template(method: str, target: str, template: str) -> None:
    answer = perform(Administrator(), request(method, target))
    assert answer.status == 501
    assert f"{method} {template} is not implemented by this broker".encode() in answer.body


@pytest.mark.parametrize(
    ("path", "status", "what"),
    [
        ("/admin/v3/functions/public/default/f", 409, "functions"),
        ("/admin/v3/sinks/builtinsinks", 409, "sinks"),
        ("/admin/v3/sources/public/default", 409, "sources"),
        ("/admin/v3/packages/function/public/default", 503, "packages"),
        ("/admin/v2/worker/cluster", 409, "functions"),
        ("/admin/v2/worker-stats/metrics", 409, "functions"),
        ("/admin/v2/functions/connectors", 409, "functions"),
        ("/admin/v3/functions", 409, "functions"),
        ("/admin/v3/nothing/here", 404, "Not Found"),
        ("/v3/v3/functions", 404, "Not Found"),
        ("/admin/v3", 404, "Not Found"),
        ("/admin", 404, "Not Found"),
    ],
)
def test_what_needs_a_worker_says_so(path: str, status: int, what: str) -> None:
    """With the statuses of a Pulsar that has no workers."""
    with pytest.raises(Refused, match=what) as refused:
        Table([], missing.no_such_path).find(request("GET", path))
    assert refused.value.status == status
