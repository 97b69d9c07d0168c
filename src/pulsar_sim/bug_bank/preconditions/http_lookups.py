"""Preconditions on the lookups over HTTP of a world."""

from ...engine.profile import Profile


def web(profile: Profile) -> bool:
    """Clients ask over HTTP."""
    return profile.web is not None


def crowd(profile: Profile) -> bool:
    """An application asks more at once than a client may."""
    return profile.web is not None and bool(profile.web.crowd)


def refusals(profile: Profile) -> bool:
    """Web servers refuse requests for now."""
    return profile.web is not None and bool(profile.web.failing_permille)


def garbage(profile: Profile) -> bool:
    """Web servers give answers without use."""
    return profile.web is not None and bool(profile.web.garbage_permille)


def redirects(profile: Profile) -> bool:
    """Lookups of moved topics are redirected."""
    return profile.web is not None and len(profile.brokers) > 1 and bool(profile.redirect_permille)
