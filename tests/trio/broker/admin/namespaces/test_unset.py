"""Policies that the broker has not: reading says that they are not set, setting is refused by name."""

from collections.abc import AsyncIterator

import pytest

from pulsar_trio import EmbeddedBroker, open_broker
from pulsar_trio.broker.admin.namespaces.unset import OF_NAMESPACES, OF_TOPICS, Unset
from tests.trio.broker.admin.namespaces.test_policies import TOPIC, ask

NAMESPACE = "/admin/v2/namespaces/public/default"
EACH = [
    (f"{prefix}/{name}", policy)
    for prefix, policies in ((NAMESPACE, OF_NAMESPACES), (TOPIC, OF_TOPICS))
    for name, policy in policies.items()
]


@pytest.fixture
async def broker() -> AsyncIterator[EmbeddedBroker]:
    async with open_broker(http_port=0) as running:
        running.create_topic("t")
        yield running


@pytest.mark.parametrize(("path", "policy"), EACH, ids=[path for path, _ in EACH])
async def test_a_policy_that_is_not_there(broker: EmbeddedBroker, path: str, policy: Unset) -> None:
    name = path.removeprefix(NAMESPACE).removeprefix(TOPIC).strip("/")
    before = ask(broker, "GET", path)
    assert before[0] in (200, 204)
    status, reason = ask(broker, policy.set_by, path, {"some": "value"})
    assert status == 501
    assert name in reason
    if before[1] is not None:
        assert ask(broker, policy.set_by, path, before[1]) == (204, None), "what holds anyway can be said"
    assert ask(broker, "DELETE", path)[0] == (204 if policy.removable else 405)
    assert ask(broker, "GET", path) == before
    for method in ("GET", policy.set_by):
        absent = path.replace("default", "nowhere")
        assert ask(broker, method, absent, {})[0] == 404


async def test_replication_is_to_the_one_cluster(broker: EmbeddedBroker) -> None:
    assert ask(broker, "GET", f"{NAMESPACE}/replication") == (200, ["standalone"])
    assert ask(broker, "GET", f"{TOPIC}/replication") == (200, None)
    assert ask(broker, "GET", f"{TOPIC}/replication?applied=true") == (200, ["standalone"])
    for path, status in ((NAMESPACE, 200), (TOPIC, 204)):
        assert ask(broker, "POST", f"{path}/replication", ["standalone"]) == (status, None)
        assert ask(broker, "POST", f"{path}/replication", "standalone")[0] == 400
        assert ask(broker, "POST", f"{path}/replication", ["standalone", "b"]) == (
            403,
            "Invalid cluster id: b",
        )
        assert ask(broker, "POST", f"{path}/replication", [])[0] == 412
