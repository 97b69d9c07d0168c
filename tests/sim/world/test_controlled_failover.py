"""A client to which a web service names its cluster goes there, loses nothing, and takes no other name."""

from typing import Any

import pytest

from pulsar_sim.bug_bank import BANK
from pulsar_sim.engine.clock import MILLISECOND, SECOND
from pulsar_sim.engine.nodes.secondary_cluster import SECONDARY_BROKER
from pulsar_sim.engine.profile import ControlPlan, FailoverPlan, Profile
from pulsar_sim.runs.scenarios import quiet_profile
from pulsar_sim.world.world import World
from tests.sim.world.roaming_world import run_roaming


def controlled(*changes: int, **plan: Any) -> Profile:
    profile = quiet_profile(consumers=1, clients=1, messages=4)
    control = ControlPlan(list(changes), **plan)
    profile.failover = FailoverPlan(0.0, 0.0, 0.2, [], 50 * MILLISECOND, control)
    profile.run_time = profile.failover.over + SECOND
    profile.lingers = True
    return profile


def test_the_client_goes_where_the_service_says_and_comes_back() -> None:
    world, brokers = run_roaming(controlled(SECOND, 3 * SECOND))
    assert brokers == ["broker-0", SECONDARY_BROKER, "broker-0"]
    (app,) = world.apps.roaming
    logs = [
        {data[data.rindex(b"<") :] for _, data in cluster.durable(app.account.topic)}
        for cluster in world.clusters
    ]
    assert set().union(*logs) == set(app.account.sent)
    assert logs[1] - logs[0], "nothing was sent to the secondary cluster alone"


def test_answers_that_name_no_usable_cluster_change_nothing() -> None:
    world, brokers = run_roaming(controlled(SECOND, 6 * SECOND, wrong_permille=1000))
    assert brokers == ["broker-0"]
    fates = ("failing", "redirected", "garbled", "empty", "identity", "cut")
    assert all(world.faults[f"control_{fate}"] for fate in fates)


@pytest.mark.parametrize(("fate", "permille"), [("away", "away_permille"), ("slow", "slow_permille")])
def test_the_client_asks_again_when_the_service_does_not_answer(fate: str, permille: str) -> None:
    plan: dict[str, Any] = {permille: 600}
    world, brokers = run_roaming(controlled(SECOND, 9 * SECOND, **plan))
    assert world.faults[f"control_{fate}"]
    assert brokers == ["broker-0", SECONDARY_BROKER, "broker-0"]


@pytest.mark.parametrize(
    ("bug", "rule", "wrong_permille"),
    [
        ("an-answer-without-a-url-leads-home", "INV-F5", 500),
        ("another-identity-is-taken", "INV-F5", 1000),
        ("the-name-of-a-cluster-is-ignored", "INV-F5", 0),
        ("a-refused-answer-ends-the-questions", "INV-N5", 500),
    ],
)
def test_a_client_that_changes_wrongly_is_noticed(bug: str, rule: str, wrong_permille: int) -> None:
    with BANK[bug].planted():
        report = World(1, controlled(SECOND, 9 * SECOND, wrong_permille=wrong_permille)).run()
    assert report.rule == rule, report
