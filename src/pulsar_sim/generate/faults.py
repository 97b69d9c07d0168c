"""What goes wrong in a world, and how often."""

from ..engine.clock import MILLISECOND, SECOND
from ..engine.profile import ProducerPlan, Profile
from ..engine.randomness import Streams
from ..faults.catalogue import FAULTS, GROUP_FAULTS, RARE_FAULTS

MOST_FAULTS = 12
"""Of one seed, about: a long storm shows no more than a short one, and costs as much as many other seeds."""

MOST_IN_A_SMALL_WORLD = 2
"""While something is sent there, about; they go on at that pace until everything is."""


def draw_faults(streams: Streams, profile: Profile, small: bool) -> None:
    """Which kinds may happen, how often, and what else the environment does; nothing in a few worlds."""
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
    # Each kind by its name: one more kind changes no other.
    share = draw.between(1, 1000)
    every = [kind for kind in FAULTS if kind not in RARE_FAULTS + GROUP_FAULTS]
    kinds = [kind for kind in every if streams.seed_of(f"fault {kind}") % 1000 < share]
    profile.faults = sorted(kinds or [draw.choice(every)])


def _sending(plan: ProducerPlan) -> int:
    """Nanoseconds in which a producer sends everything, about."""
    return (2 * plan.messages // (plan.burst + 1) + 1) * plan.pause // 2
