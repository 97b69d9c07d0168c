"""Preconditions on the credentials and the TLS of a world."""

from ...engine.profile import Profile
from .general import fault


def credentials(profile: Profile) -> bool:
    """Brokers authenticate their clients."""
    return profile.credentials is not None


def challenges(profile: Profile) -> bool:
    """Brokers send AUTH_CHALLENGE: the method has several steps, or credentials expire."""
    plan = profile.credentials
    if plan is None:
        return False
    return bool(plan.challenges or plan.lifetime) or fault("credentials_expire")(profile)


def tls_to_several_brokers(profile: Profile) -> bool:
    return profile.credentials is not None and profile.credentials.tls and len(profile.brokers) > 1


def sni_proxy(profile: Profile) -> bool:
    """Clients connect through a proxy that routes by the server name."""
    return profile.credentials is not None and profile.credentials.sni_proxy


def misleading(profile: Profile) -> bool:
    """Brokers may name hosts to which clients with credentials may not connect."""
    return credentials(profile) and fault("lookup_to_a_stranger")(profile)


def renewals(profile: Profile) -> bool:
    """Credentials expire while connections use them."""
    return credentials(profile) and (
        bool(profile.credentials and profile.credentials.lifetime) or fault("credentials_expire")(profile)
    )


def slow_provider(profile: Profile) -> bool:
    return profile.credentials is not None and bool(profile.credentials.slow_permille)


def failing_provider(profile: Profile) -> bool:
    return profile.credentials is not None and bool(profile.credentials.failing_permille)
