"""Preconditions on the application with transactions of a world."""

from pulsar_sansio.model.config import SubscriptionType

from ...engine.profile import Profile
from .general import Need, fault


def transactions(profile: Profile) -> bool:
    """An application sends and acknowledges in transactions."""
    return profile.transactions is not None


def aborts(profile: Profile) -> bool:
    """The application aborts some of them."""
    return profile.transactions is not None and bool(profile.transactions.abort_permille)


def batches(profile: Profile) -> bool:
    """The application sends batches."""
    return profile.transactions is not None and profile.transactions.batching is not None


def single_entries(profile: Profile) -> bool:
    """A subscription of it redelivers single entries."""
    plan = profile.transactions
    return plan is not None and not all(kind.cumulative for kind in plan.kinds)


def in_order(profile: Profile) -> bool:
    """A subscription of it is Exclusive or Failover."""
    plan = profile.transactions
    return plan is not None and any(kind.cumulative for kind in plan.kinds)


def shared_by_two(profile: Profile) -> bool:
    """Two consumers share one of its subscriptions."""
    plan = profile.transactions
    shared = (SubscriptionType.SHARED, SubscriptionType.KEY_SHARED)
    return plan is not None and plan.consumers > 1 and any(kind in shared for kind in plan.kinds)


def several_topics(profile: Profile) -> bool:
    return profile.transactions is not None and profile.transactions.topics > 1


def several_at_once(profile: Profile) -> bool:
    """Several of its transactions are open at a time."""
    return profile.transactions is not None and profile.transactions.at_once > 1


def plain_acks(profile: Profile) -> bool:
    """The application acknowledges outside of transactions, too."""
    return profile.transactions is not None and bool(profile.transactions.plain_permille)


def short_timeouts(profile: Profile) -> bool:
    """Some of its transactions are over before the application ends them."""
    plan = profile.transactions
    return plan is not None and bool(plan.short_permille + plan.linger_permille)


def exactly_once(profile: Profile) -> bool:
    """Some of its transactions are opened with `exactly_once`."""
    return profile.transactions is not None and bool(profile.transactions.exactly_once_permille)


def chunks(profile: Profile) -> bool:
    """The application sends messages in chunks."""
    return profile.transactions is not None and bool(profile.transactions.chunk_size)


def partitions(profile: Profile) -> bool:
    """The topics of the application have partitions."""
    return profile.transactions is not None and bool(profile.transactions.partitions)


def flushes(profile: Profile) -> bool:
    """The application asks whether all of a transaction is confirmed."""
    return profile.transactions is not None and bool(profile.transactions.flush_permille)


def _disturbed(*faults: str) -> Need:
    strikes = fault(*faults)
    return lambda profile: profile.transactions is not None and strikes(profile)


restarts = _disturbed("broker_killed", "broker_machine_lost", "broker_killed_while_writing")
"""The broker with its coordinators dies."""

losses = _disturbed("transacting_links_reset", "transacting_client_lost")
"""Its links or its process are lost."""

unanswered = _disturbed("coordinator_unanswered", "broker_killed", "broker_machine_lost")
"""Questions to coordinators are left without an answer."""
