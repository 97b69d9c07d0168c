"""The adapter's own simulation as the judge of mutants, as `pulsar_sim.mutants.worlds` is the core's.

`pulsar-trio simulate mutate --of adapter` imports it by name.
"""

from collections.abc import Iterator

from tests.triosim.playing import ALL_SCENES, play
from tests.triosim.sweep import KINDS, run_at
from tests.triosim.world import run_seed

SEEDS = 100

EVERY = 5
"""Steps from one disturbed run to the next."""

STEPS = 300
"""More than the small run has; a step behind its end disturbs nothing."""


def worlds(drawn: int = SEEDS, points: int = STEPS // EVERY) -> Iterator[str]:
    """Names for `broken_by`: the scenes, the seeds from 0 on, then the small run disturbed at every `EVERY`th
    step."""
    for name in ALL_SCENES:
        yield f"scene {name}"
    for seed in range(drawn):
        yield f"seed {seed}"
    for number, kind in enumerate(KINDS):
        for step in range(points):
            yield f"{kind}: {1 + number % EVERY + step * EVERY}"


def broken_by(world: str) -> str:
    """The rule that the world breaks, with what was found; "" where it passes."""
    kind, _, step = world.partition(": ")
    if step:
        return run_at(0, kind, int(step))[0].failure
    if world.startswith("scene "):
        return play(world.removeprefix("scene ")).failure
    return run_seed(int(world.removeprefix("seed "))).failure
