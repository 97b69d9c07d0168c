"""A client that changes between two clusters: it goes when the primary is away, comes back, and loses
nothing; a planted bug of each kind is noticed."""

import pytest

from pulsar_sim.bug_bank import BANK
from pulsar_sim.engine.clock import MILLISECOND, SECOND
from pulsar_sim.engine.nodes.secondary_cluster import SECONDARY_BROKER
from pulsar_sim.engine.profile import (
    FAR_LEDGERS,
    PRIMARY,
    SECONDARY,
    BrokerPlan,
    FailoverPlan,
    OutagePlan,
    Profile,
)
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


def away(*outages: OutagePlan) -> Profile:
    """A client that probes every half a second, leaves after 1 s and comes back after 2 s."""
    profile = roaming(0)
    profile.failover = FailoverPlan(1.0, 2.0, 0.5, list(outages), 100 * MILLISECOND)
    profile.run_time = profile.failover.over + 6 * SECOND
    return profile


def test_a_client_stays_while_both_clusters_are_away_and_goes_to_the_first_that_is_back() -> None:
    both = OutagePlan(SECOND, 12 * SECOND), OutagePlan(SECOND, 6 * SECOND, cluster=SECONDARY)
    world, brokers = run_roaming(away(*both))
    assert brokers == ["broker-0", SECONDARY_BROKER, "broker-0"]
    assert world.faults["secondary_away"] == 1


def test_a_client_comes_back_at_once_from_a_cluster_that_is_lost() -> None:
    """The switch-back delay of the primary is not over when the secondary is lost for the failover delay."""
    profile = away(OutagePlan(SECOND, 6 * SECOND), OutagePlan(5 * SECOND, 20 * SECOND, cluster=SECONDARY))
    assert profile.failover is not None
    profile.failover.switch_back_delay = 15.0
    _, brokers = run_roaming(profile)
    assert brokers == ["broker-0", SECONDARY_BROKER, "broker-0"]


def test_what_is_left_in_the_secondary_cluster_is_received_at_the_last_visit() -> None:
    """The client comes back as soon as it may, and has not received all messages that it has sent there."""
    profile = away(OutagePlan(6 * SECOND, 8 * SECOND))
    assert profile.failover is not None
    profile.failover.pause = 3 * SECOND
    profile.failover.last_visit = True
    world, brokers = run_roaming(profile)
    assert brokers == ["broker-0", SECONDARY_BROKER, "broker-0", SECONDARY_BROKER, "broker-0"]
    (app,) = world.apps.roaming
    left = [position for position, _ in world.clusters[-1].durable(app.account.topic)]
    assert [position for position in app.account.received if position[0] >= FAR_LEDGERS] == left


def test_messages_are_sent_in_every_part_of_the_time() -> None:
    profile = away(OutagePlan(30 * SECOND, 8 * SECOND))
    assert profile.failover is not None
    profile.failover.pause = 10 * MILLISECOND
    profile.failover.send_gap = SECOND
    world, _ = run_roaming(profile)
    (app,) = world.apps.roaming
    confirmed = [position[0] >= FAR_LEDGERS for position in app.account.confirmed]
    assert confirmed.index(True) in range(25, 40)
    assert not confirmed[-1]


@pytest.mark.parametrize(
    ("after", "length", "alone"),
    [(0, 10, True), (0, 11, False), (19, 5, False), (20, 5, True), (12, 1, False)],
)
def test_an_outage_is_alone_when_the_other_cluster_is_there(after: int, length: int, alone: bool) -> None:
    outage = OutagePlan(10, 100)
    plan = FailoverPlan(1.0, 1.0, 1.0, [outage, OutagePlan(after, length, cluster=SECONDARY)], 1)
    assert plan.is_alone(outage, 10) is alone
    plan.outages[1].cluster = PRIMARY
    assert plan.is_alone(outage, 10)


def test_the_client_stays_in_a_cluster_that_is_away_for_less_than_the_delay() -> None:
    _, brokers = run_roaming(roaming(900 * MILLISECOND))
    assert set(brokers) == {"broker-0"}


def noticed(bug: str, *outages: OutagePlan) -> str:
    """The rule by which a planted bug is noticed; lookups have a link of their own."""
    profile = away(*outages)
    profile.brokers = [BrokerPlan(), BrokerPlan(), BrokerPlan()]
    assert profile.failover is not None
    profile.failover.last_visit = True
    with BANK[bug].planted():
        return World(1, profile).run().rule


@pytest.mark.parametrize(
    ("bug", "rule"),
    [
        ("a-cluster-is-left-at-the-second-failed-probe", "INV-F1"),
        ("the-primary-is-used-at-its-second-answer", "INV-F1"),
        ("the-primary-is-never-used-again", "INV-N5"),
        ("links-survive-a-change", "INV-F3"),
        ("a-change-fails-what-is-pending", "INV-F4"),
        ("another-cluster-is-used-without-a-probe", "INV-F6"),
        ("a-failed-probe-of-another-cluster-leads-there", "INV-F6"),
        ("messages-of-another-cluster-are-dropped", "INV-N5"),
    ],
)
def test_a_client_that_changes_wrongly_is_noticed(bug: str, rule: str) -> None:
    """The secondary cluster is away at first."""
    assert noticed(bug, OutagePlan(SECOND, 12 * SECOND), OutagePlan(0, 4 * SECOND, cluster=SECONDARY)) == rule


def test_a_client_that_stays_in_a_cluster_that_is_away_is_noticed() -> None:
    """The secondary cluster is there."""
    assert noticed("a-cluster-that-is-away-is-never-left", OutagePlan(SECOND, 12 * SECOND)) == "INV-F2"


def test_a_link_to_the_former_cluster_is_noticed() -> None:
    """The links outlive a silent outage until the change."""
    outage = OutagePlan(SECOND, 12 * SECOND, silent=True)
    assert noticed("links-without-a-handle-survive-a-change", outage) == "INV-F3"
