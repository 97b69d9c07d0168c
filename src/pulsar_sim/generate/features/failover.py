"""Worlds in which one more client changes between two clusters."""

from ...engine.clock import MILLISECOND, SECOND
from ...engine.profile import ControlPlan, FailoverPlan, OutagePlan, Profile
from ...engine.randomness import Stream

FAILOVER_PERMILLE = 50
"""Worlds with a roaming client, per thousand."""

CONTROL_PERMILLE = 40
"""Worlds whose roaming client asks a web service, per thousand."""

CALM_PERMILLE = 300
"""Worlds of these without another fault, per thousand: there a client that stays is noticed (INV-F2)."""


def draw_failover(draw: Stream, profile: Profile) -> None:
    """Add a client with a failover, and outages of its primary cluster, to some worlds."""
    if not draw.chance(FAILOVER_PERMILLE) or profile.credentials is not None:
        return
    plan = FailoverPlan(
        failover_delay=draw.choice([0.3, 1.0, 3.0]),
        switch_back_delay=draw.choice([0.3, 1.0, 3.0]),
        check_interval=draw.choice([0.1, 0.5, 1.0]),
        outages=[],
        pause=draw.spread(MILLISECOND, 300 * MILLISECOND),
    )
    at = 0
    for _ in range(draw.between(1, 3)):
        at += draw.spread(100 * MILLISECOND, 8 * SECOND)
        long = plan.longest_stay(profile.named_hosts) + draw.spread(MILLISECOND, 5 * SECOND)
        length = draw.choice([draw.spread(50 * MILLISECOND, 5 * SECOND), long])
        plan.outages.append(OutagePlan(at, length, silent=draw.chance(400)))
        at += length
    profile.failover = plan
    if draw.chance(CALM_PERMILLE):
        profile.faults, profile.fault_gap = [], 0
    profile.run_time = max(profile.run_time, plan.over + SECOND)


def draw_control(draw: Stream, profile: Profile) -> None:
    """Add a client to some worlds to which a web service names one of two clusters."""
    other = profile.credentials is not None or profile.failover is not None
    if not draw.chance(CONTROL_PERMILLE) or other:
        return
    changes = [draw.spread(100 * MILLISECOND, 5 * SECOND)]
    for _ in range(draw.below(4)):
        changes.append(changes[-1] + draw.spread(50 * MILLISECOND, 5 * SECOND))
    control = ControlPlan(
        changes,
        away_permille=draw.choice([0, 0, 200]),
        slow_permille=draw.choice([0, 0, 200]),
        wrong_permille=draw.choice([0, 200, 500]),
    )
    profile.failover = FailoverPlan(
        failover_delay=0.0,
        switch_back_delay=0.0,
        check_interval=draw.choice([0.1, 0.5, 1.0]),
        outages=[],
        pause=draw.spread(MILLISECOND, 300 * MILLISECOND),
        control=control,
    )
    profile.run_time = max(profile.run_time, profile.failover.over + SECOND)
