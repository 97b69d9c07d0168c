"""Workloads of the official Java client, whose broker is disturbed in the middle: ours and a real one."""

import pytest

from tests.real_pulsar.admin import topic_path
from tests.suite.brokers import BrokerUnderTest
from tests.suite.line import Line

from .program import run_workload

pytestmark = [
    pytest.mark.real,
    pytest.mark.slow,
    pytest.mark.unwatched(why="the checker cannot tell which connections are of one Java client"),
]

SCENARIOS = (
    "shared",
    "key-shared",
    "sticky",
    "failover",
    "pattern",
    "cumulative",
    "chunks",
    "deduplication",
    "seeks",
    "table",
    "partitioned-reader",
    "delayed",
    "letters",
    "non-persistent",
    "access",
)
"""All scenarios of Workload.java."""


async def test_the_java_client_loses_nothing_while_topics_move_and_connections_end(
    broker: BrokerUnderTest, line: Line, local_name: str
) -> None:
    namespace = f"public/{local_name}".replace("[", "").replace("]", "")
    moved: set[str] = set()

    async def disturb(number: int) -> None:
        """Unload every topic that is not calm, and cut the connections in every other round."""
        for topic in await _topics(broker, namespace):
            if "calm" not in topic and await _unloaded(broker, topic):
                moved.add(topic)
        if number % 2 == 1:
            line.cut()

    outcome = await run_workload([line.url, broker.url, broker.admin.url, namespace, *SCENARIOS], disturb)
    assert outcome.scenarios == dict.fromkeys(SCENARIOS, "ok"), outcome.failures
    if broker.name == "ours":  # a real one that unloads a topic may forget what it confirmed just before
        assert ", 0 confirmed and again" in outcome.reports["cumulative"]
    assert len(moved) > len(SCENARIOS), moved


async def _topics(broker: BrokerUnderTest, namespace: str) -> list[str]:
    """Return the topics of the namespace, and of the one that drops repeats."""
    found: list[str] = []
    for name in (namespace, f"{namespace}-deduplication"):
        status, topics = await broker.request("GET", f"/admin/v2/persistent/{name}")
        assert status == 200, topics
        found += topics
    return sorted(found)


async def _unloaded(broker: BrokerUnderTest, topic: str) -> bool:
    """Unload a topic over HTTP; tell whether it was still there.

    A real broker confirms an acknowledgement before the cursor's first ledger is there, and an unload just
    then would lose it.
    """
    state = "SwitchingLedger"
    while state == "SwitchingLedger":
        status, answer = await broker.request("GET", f"{topic_path(topic)}/internalStats")
        if status == 404:
            return False
        assert status == 200, answer
        state = next((each["state"] for each in answer["cursors"].values() if each["state"] == state), "")
    status, answer = await broker.request("PUT", f"{topic_path(topic)}/unload")
    assert status in (204, 404), answer
    return bool(status == 204)
