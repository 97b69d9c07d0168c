"""Preconditions on the client that changes between two clusters."""

from ...engine.profile import Profile


def changes(profile: Profile) -> bool:
    """The primary cluster is away for so long that the client leaves it."""
    plan = profile.failover
    if plan is None:
        return False
    longest_stay = plan.longest_stay(profile.named_hosts)
    return any(outage.length >= longest_stay for outage in plan.outages)


def calm(profile: Profile) -> bool:
    """Nothing but the outages disturbs the world."""
    return not profile.faults


def names(profile: Profile) -> bool:
    """A web service names clusters."""
    return profile.failover is not None and profile.failover.control is not None


def wrong_names(profile: Profile) -> bool:
    """A web service names clusters, and some of its answers are of no use."""
    plan = profile.failover
    return plan is not None and plan.control is not None and bool(plan.control.wrong_permille)
