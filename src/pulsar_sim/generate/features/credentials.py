"""Worlds in which brokers authenticate their clients, and some in which clients connect by TLS."""

from ...engine.clock import MILLISECOND, SECOND
from ...engine.profile import CredentialsPlan, Profile
from ...engine.randomness import Stream
from ...faults.catalogue import CREDENTIAL_FAULTS, MISLEADING_FAULTS

CREDENTIALS_PERMILLE = 60
"""Worlds with credentials, per thousand."""

CHALLENGE_VERSION = 15
"""The lowest protocol version of brokers in these worlds: all of them know AUTH_CHALLENGE."""


def draw_credentials(draw: Stream, profile: Profile, faults: bool) -> None:
    """Make the brokers of some worlds ask for credentials."""
    if not draw.chance(CREDENTIALS_PERMILLE):
        return
    plan = profile.credentials = CredentialsPlan()
    plan.challenges = draw.weighted([(0, 4), (1, 1), (3, 1)])
    shortest = 300 * MILLISECOND * (plan.challenges + 1)  # a client ends a link with too many challenges
    plan.lifetime = draw.choice([0, draw.spread(shortest, 30 * SECOND)])
    plan.refresh_interval = draw.choice([1.0, 5.0, 60.0])
    plan.delay = draw.choice([0, draw.spread(MILLISECOND, 300 * MILLISECOND)])
    plan.tls = draw.chance(300)
    plan.sni_proxy = plan.tls and draw.chance(500)
    for broker in profile.brokers:
        broker.protocol_version = max(broker.protocol_version, CHALLENGE_VERSION)
    if not faults or not profile.fault_gap:
        return
    plan.slow_permille = draw.choice([0, 100, 400])
    plan.failing_permille = draw.choice([0, 0, 100, 300])
    plan.forged_permille = draw.choice([0, 0, 100, 300])
    plan.expired_permille = draw.choice([0, 0, 100, 300])
    if plan.tls:
        plan.bad_certificates_permille = draw.choice([0, 100, 300])
    kinds = [kind for kind in CREDENTIAL_FAULTS if kind not in MISLEADING_FAULTS or may_be_misled(profile)]
    profile.faults = sorted([*profile.faults, *kinds])


def may_be_misled(profile: Profile) -> bool:
    """True when every application begins again after its producer or consumer has failed for good."""
    return not (profile.groups or profile.multi_topics_seekers or profile.tables or profile.partitioned)
