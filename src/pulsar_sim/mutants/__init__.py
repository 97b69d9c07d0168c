"""Mutants: the source of the machines with one small thing changed, made mechanically.

The bank (`..bug_bank`) holds bugs that people chose. Mutants are bugs that no person chose: each comparison,
bound, condition, constant and statement of a function can be changed, dropped or turned round. This room
makes them, draws some of them by a seed, puts one into a running module, and knows in which worlds
each statement runs. It refuses to know processes, time limits and tests: those are the command's.
"""

from .drawing import drawn
from .equivalents import parse_equivalents
from .judged import FATES, FateTable, Judged
from .planting import Probes, plant
from .reach import Reach, bits_of
from .source import ModuleSource, Mutant
from .worlds import broken_by, worlds

__all__ = [
    "FATES",
    "Judged",
    "Mutant",
    "Probes",
    "Reach",
    "ModuleSource",
    "FateTable",
    "bits_of",
    "broken_by",
    "drawn",
    "parse_equivalents",
    "plant",
    "worlds",
]
