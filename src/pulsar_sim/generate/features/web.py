"""Worlds in which clients look up topics over HTTP."""

from ...engine.clock import SECOND
from ...engine.profile import Profile, WebPlan
from ...engine.randomness import Stream
from .credentials import may_be_misled

WEB_PERMILLE = 50
"""Worlds with lookups over HTTP, per thousand."""


def draw_web(draw: Stream, profile: Profile, faults: bool) -> None:
    """Let the clients of some worlds ask web servers, which answer badly in most of these."""
    if not draw.chance(WEB_PERMILLE) or profile.credentials is not None or profile.failover is not None:
        return
    plan = profile.web = WebPlan()
    if not faults or not profile.fault_gap:
        return
    plan.slow_permille = draw.choice([0, 0, 100, 300])
    plan.redirect_permille = draw.choice([0, 100, 400])
    plan.failing_permille = draw.choice([0, 100, 400])
    plan.garbage_permille = draw.choice([0, 0, 100, 300])
    plan.cut_permille = draw.choice([0, 0, 100, 300])
    if may_be_misled(profile):
        plan.missing_permille = draw.choice([0, 0, 100, 300])
    profile.run_time = max(profile.run_time, 2 * SECOND)
