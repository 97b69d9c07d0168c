"""Topics over HTTP: what is refused has changed nothing."""

from pulsar_trio.broker.admin.listener import perform
from pulsar_trio.broker.admin.messages import Request
from tests.trio.broker.admin.asking import Administrator

TOPIC = "/admin/v2/persistent/public/default/p"


def status(administrator: Administrator, method: str, path: str, body: bytes = b"") -> int:
    request = Request.parse(method, path, "application/json")
    request.body = body
    return perform(administrator, request).status


def state(administrator: Administrator) -> object:
    """Return the state of the first partition."""
    return administrator.machine.topic_administration.internal_stats(
        "persistent://public/default/p-partition-0"
    )["state"]


def test_partitions_are_terminated_together_or_not_at_all() -> None:
    administrator = Administrator()
    assert status(administrator, "PUT", f"{TOPIC}/partitions", b"2") == 204
    assert status(administrator, "DELETE", f"{TOPIC}-partition-1") == 204
    assert status(administrator, "POST", f"{TOPIC}/terminate/partitions") == 404
    assert state(administrator) == "LedgerOpened"
    assert status(administrator, "POST", f"{TOPIC}-partition-0/terminate") == 200
    assert state(administrator) == "Terminated"
