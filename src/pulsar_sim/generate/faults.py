"""The faults of a world, and their frequency."""

from ..engine.clock import MILLISECOND, SECOND
from ..engine.profile import ProducerPlan, Profile
from ..engine.randomness import Streams
from ..faults.catalogue import FAULTS, SPECIAL_FAULTS

MOST_FAULTS = 12
"""Faults of one seed, about: more of them show nothing new, and cost as much as many other seeds."""

MOST_IN_A_SMALL_WORLD = 2
"""Faults in a small world while messages are sent, about; they continue at that pace until all are sent."""


def draw_faults(streams: Streams, profile: Profile, small: bool) -> None:
    """Draw the kinds that may strike, their frequency, and the environment's behaviour; in a few worlds
    nothing."""
    draw = streams.stream("fault kinds")
    if draw.chance(50):
        return
    often = draw.spread(20 * MILLISECOND, 5 * SECOND)
    if small:
        span = min(profile.run_time, max(map(_sending, profile.producers)))
        profile.fault_gap = max(100 * MILLISECOND, span // MOST_IN_A_SMALL_WORLD)
    else:
        profile.fault_gap = max(often, profile.run_time // MOST_FAULTS)
    profile.timers_late_permille = draw.choice([0, 0, 20, 300])
    profile.timers_early_permille = draw.choice([0, 0, 20, 300])
    profile.stale_permille = draw.choice([0, 300])
    profile.last_reset = draw.choice(
        [0, 0, 0, draw.spread(MILLISECOND, 200 * MILLISECOND), draw.spread(MILLISECOND, SECOND)]
    )
    # Draw each kind by its name: a new kind changes no other.
    share = draw.between(1, 1000)
    every = [kind for kind in FAULTS if kind not in SPECIAL_FAULTS]
    kinds = [kind for kind in every if streams.seed_of(f"fault {kind}") % 1000 < share]
    profile.faults = sorted(kinds or [draw.choice(every)])


def _sending(plan: ProducerPlan) -> int:
    """Return the nanoseconds in which a producer sends all its messages, about."""
    return (2 * plan.messages // (plan.burst + 1) + 1) * plan.pause // 2
