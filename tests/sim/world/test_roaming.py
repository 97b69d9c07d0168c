"""A client that changes between two clusters: it goes when the primary is away, comes back, and loses
nothing; a planted bug of each kind is noticed."""

import pytest

from pulsar_sim.bug_bank import BANK
from pulsar_sim.engine.clock import MILLISECOND, SECOND
from pulsar_sim.engine.nodes.secondary_cluster import SECONDARY_BROKER
from pulsar_sim.engine.profile import FailoverPlan, OutagePlan, Profile
from pulsar_sim.runs.scenarios import quiet_profile
from pulsar_sim.world.world import World
from tests.sim.world.roaming_world import run_roaming


def roaming(length: int, silent: bool = False) -> Profile:
    profile = quiet_profile(consumers=1, clients=1, messages=4)
    profile.failover = FailoverPlan(1.0, 2.0, 0.5, [OutagePlan(SECOND, length, silent)], 100 * MILLISECOND)
    profile.run_time = profile.failover.over + 6 * SECOND
    profile.lingers = True
    return profile


@pytest.mark.parametrize("silent", [False, True])
def test_the_client_leaves_a_cluster_that_is_away_and_comes_back(silent: bool) -> None:
    world, brokers = run_roaming(roaming(8 * SECOND, silent))
    assert brokers == ["broker-0", SECONDARY_BROKER, "broker-0"]
    (app,) = world.apps.roaming
    logs = [
        {data[data.rindex(b"<") :] for _, data in cluster.durable(app.account.topic)}
        for cluster in world.clusters
    ]
    assert set().union(*logs) == set(app.account.sent)
    assert logs[1] - logs[0], "nothing was sent to the secondary cluster alone"


def test_the_client_stays_in_a_cluster_that_is_away_for_less_than_the_delay() -> None:
    _, brokers = run_roaming(roaming(900 * MILLISECOND))
    assert set(brokers) == {"broker-0"}


@pytest.mark.parametrize(
    ("bug", "rule"),
    [
        ("a-cluster-is-left-at-the-second-failed-probe", "INV-F1"),
        ("the-primary-is-used-at-its-second-answer", "INV-F1"),
        ("a-cluster-that-is-away-is-never-left", "INV-F2"),
        ("the-primary-is-never-used-again", "INV-N5"),
        ("links-survive-a-change", "INV-F3"),
        ("a-change-fails-what-is-pending", "INV-F4"),
    ],
)
def test_a_client_that_changes_wrongly_is_noticed(bug: str, rule: str) -> None:
    with BANK[bug].planted():
        report = World(1, roaming(12 * SECOND, silent=False)).run()
    assert report.rule == rule, report
