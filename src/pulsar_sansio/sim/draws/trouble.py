"""What goes wrong in a world, and how often."""

from ..clock import MILLISECOND, SECOND
from ..faults import FAULTS, GROUP_FAULTS, RARE_FAULTS
from ..profile import Profile
from ..streams import Streams

MOST_FAULTS = 12
"""Of one seed, about: a long storm shows no more than a short one, and costs as much as many other seeds."""


MOST_IN_A_SMALL_WORLD = 3


def draw_faults(streams: Streams, profile: Profile, small: bool) -> None:
    """Which kinds may happen, how often, and what else the environment does; nothing in a few worlds."""
    draw = streams.stream("fault kinds")
    if draw.chance(50):
        return
    often = draw.spread(20 * MILLISECOND, 5 * SECOND)
    most = MOST_IN_A_SMALL_WORLD if small else MOST_FAULTS
    profile.fault_gap = max(often, profile.run_time // most)
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
