"""The simulator: one thread, one heap, one clock, one seed.

Client and broker machines run against each other over byte streams that are cut, merged, delayed, reset and
left half-open, while brokers are killed and applications act at bad moments. A reference model that shares
no code with either machine checks every step. The same seed gives the same trace in every process.
"""

from .campaign import Campaign, observe_seed, run_seed, run_seeds
from .case import Case
from .coverage import Coverage, Recorder
from .draws import draw
from .faults import FAULTS
from .profile import Profile
from .scenarios import SCENARIOS
from .shrink import Shrunk, shrink
from .streams import Streams
from .sweep import KINDS, SweepReport, find, run_point, sweep
from .violations import LivenessError, Outcome, ViolationError
from .world import SeedReport, World

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
