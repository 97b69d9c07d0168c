"""Preconditions on the client that changes between two clusters."""

from ...engine.profile import PRIMARY, SECONDARY, Profile


def changes(profile: Profile) -> bool:
    """The primary cluster is away for so long that the client leaves it."""
    plan = profile.failover
    if plan is None:
        return False
    longest_stay = plan.longest_stay(profile.named_hosts)
    return any(
        outage.cluster == PRIMARY and outage.length >= longest_stay and plan.is_alone(outage, longest_stay)
        for outage in plan.outages
    )


def silence(profile: Profile) -> bool:
    """The client leaves the primary cluster when nothing has reset its links there."""
    plan = profile.failover
    return changes(profile) and plan is not None and all(each.silent for each in plan.outages)


def secondary_away(profile: Profile) -> bool:
    """The client leaves the primary cluster, and the secondary one is away, too."""
    plan = profile.failover
    return changes(profile) and plan is not None and any(each.cluster == SECONDARY for each in plan.outages)


def returns_to_what_it_left(profile: Profile) -> bool:
    """The client leaves the primary cluster, and visits the secondary one until it has read all of it."""
    return changes(profile) and profile.failover is not None and profile.failover.last_visit


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
