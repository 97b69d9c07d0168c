"""Worlds in which clients look up topics over HTTP."""

from ...engine.clock import SECOND
from ...engine.profile import Profile, WebPlan
from ...engine.randomness import Stream
from .credentials import may_be_misled

WEB_PERMILLE = 50
"""Worlds with lookups over HTTP, per thousand."""


CROWD_PERMILLE = 300
"""Worlds of these in which one application asks more at once than a client may, per thousand."""


def draw_crowd(draw: Stream, profile: Profile) -> None:
    """Let an application of some worlds ask so much at once that most of it waits."""
    if profile.web is not None and draw.chance(CROWD_PERMILLE):
        profile.web.crowd = draw.between(17, 40)


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
