"""The simulator: one thread, one heap, one clock, one seed.

Client and broker machines run against each other over byte streams that are cut, merged, delayed, reset and
left half-open, while brokers are killed and applications act at bad moments. A reference model that shares
no code with either machine checks every step. The same seed gives the same trace in every process.
"""

from .engine.failures import LivenessError, Outcome, ViolationError
from .engine.profile import Profile
from .engine.randomness import Streams
from .faults.catalogue import FAULTS
from .generate import draw
from .runs.campaign import Campaign, observe_seed, run_seed, run_seeds
from .runs.case import Case
from .runs.coverage import Coverage, Recorder
from .runs.scenarios import SCENARIOS
from .runs.shrink import Shrunk, shrink
from .runs.sweeps.sweep import KINDS, find, run_point, sweep
from .runs.sweeps.sweep_report import SweepReport
from .world.world import SeedReport, World

__all__ = [
    "FAULTS",
    "KINDS",
    "SCENARIOS",
    "Campaign",
    "Case",
    "Coverage",
    "LivenessError",
    "Outcome",
    "Profile",
    "Recorder",
    "SeedReport",
    "Shrunk",
    "Streams",
    "SweepReport",
    "ViolationError",
    "World",
    "draw",
    "find",
    "observe_seed",
    "run_point",
    "run_seed",
    "run_seeds",
    "shrink",
    "sweep",
]
