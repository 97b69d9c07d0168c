"""Worlds in which one more client changes between two clusters."""

from ...engine.clock import MILLISECOND, SECOND
from ...engine.profile import SECONDARY, ControlPlan, FailoverPlan, OutagePlan, Profile
from ...engine.randomness import Stream

FAILOVER_PERMILLE = 50
"""Worlds with a roaming client, per thousand."""

CONTROL_PERMILLE = 40
"""Worlds whose roaming client asks a web service, per thousand."""

CALM_PERMILLE = 300
"""Worlds of these without another fault, per thousand: there a client that stays is noticed (INV-F2)."""

LONG_PERMILLE = 900
"""Worlds of these with an outage of the primary cluster for which the client leaves it, per thousand."""

SECONDARY_PERMILLE = 500
"""Worlds of these in which the secondary cluster is away, too, per thousand."""

MESSAGES = 250
"""Messages that the application sends, about: spread over the time until the outages are over."""


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
    calm = draw.chance(CALM_PERMILLE)
    stay = plan.longest_stay(profile.named_hosts)
    if draw.chance(LONG_PERMILLE) and all(outage.length < stay for outage in plan.outages):
        plan.outages[-1].length = stay + draw.spread(MILLISECOND, 5 * SECOND)
    if draw.chance(SECONDARY_PERMILLE):
        _draw_secondary_outages(draw, plan, stay)
    profile.failover = plan
    if calm:
        profile.faults, profile.fault_gap = [], 0
    _spread(plan, profile)


def _draw_secondary_outages(draw: Stream, plan: FailoverPlan, stay: int) -> None:
    """Take the secondary cluster away: before it is needed, when it is used, or at the way back."""
    for outage in list(plan.outages):
        if draw.chance(300):
            continue
        before = outage.after - draw.spread(MILLISECOND, SECOND)
        within = outage.after + draw.below(outage.length)
        back = outage.after + outage.length - draw.spread(MILLISECOND, SECOND)
        after = max(0, draw.choice([before, within, back]))
        length = draw.choice([draw.spread(50 * MILLISECOND, 5 * SECOND), stay])
        plan.outages.append(OutagePlan(after, length, draw.chance(400), SECONDARY))


def _spread(plan: FailoverPlan, profile: Profile) -> None:
    """Spread the messages of the application over the time until the changes are over."""
    plan.send_gap = plan.over // MESSAGES
    plan.last_visit = True
    profile.run_time = max(profile.run_time, plan.over + SECOND)


def draw_control(draw: Stream, profile: Profile) -> None:
    """Add a client to some worlds to which a web service names one of two clusters."""
    other = profile.credentials is not None or profile.failover is not None
    if not draw.chance(CONTROL_PERMILLE) or other:
        return
    interval = draw.choice([0.1, 0.5, 1.0])
    changes = [draw.spread(100 * MILLISECOND, 5 * SECOND)]
    for _ in range(draw.below(4)):
        gap = draw.spread(50 * MILLISECOND, 5 * SECOND)
        if draw.chance(800):  # the client asks at least once
            gap += round(2 * interval * SECOND)
        changes.append(changes[-1] + gap)
    control = ControlPlan(
        changes,
        away_permille=draw.choice([0, 0, 200]),
        slow_permille=draw.choice([0, 0, 200]),
        wrong_permille=draw.choice([0, 200, 500]),
    )
    profile.failover = FailoverPlan(
        failover_delay=0.0,
        switch_back_delay=0.0,
        check_interval=interval,
        outages=[],
        pause=draw.spread(MILLISECOND, 300 * MILLISECOND),
        control=control,
    )
    _spread(profile.failover, profile)
