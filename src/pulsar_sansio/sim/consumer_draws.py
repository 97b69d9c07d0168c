"""What some consumers do beyond the plain ones: let time run out.

Each function draws one of them, perhaps, from a stream of its own, and leaves everything else as it was.
"""

from typing import TYPE_CHECKING

from .streams import Stream

if TYPE_CHECKING:
    from .profile import Profile


def draw_timeouts(draw: Stream, profile: "Profile") -> None:
    """Consumers with an acknowledgement timeout, and delays that grow."""
    if not draw.chance(150):
        return
    for plan in profile.consumers:
        if draw.chance(700):
            plan.tick = draw.choice([0.05, 0.2, 1.0])
            plan.timeout = plan.tick * draw.choice([1, 1, 3, 10])
            plan.forget_permille = draw.choice([0, 20, 100, 300])
            if plan.forget_permille == 0:
                plan.keep_permille = max(plan.keep_permille, 100)
        plan.growing = draw.chance(400)
