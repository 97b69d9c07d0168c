"""`pulsar-trio simulate mutate` for this package: the first argument is a folder for what it keeps."""

import sys
from pathlib import Path

from pulsar_sim.command import mutate, mutate_judges
from pulsar_sim.command.mutate_judges import Target
from pulsar_trio_command.command import main

SAMPLE = "tests.sim.mutants.sample"

TARGET = Target(
    "sample",
    (SAMPLE,),
    (f"{SAMPLE}.judging", f"{SAMPLE}.test_counting", f"{SAMPLE}.__main__"),
    f"{SAMPLE}.judging",
    ("tests/sim/mutants/sample",),
    ("tests/sim/mutants/sample",),
)

EQUIVALENT = (
    f"{SAMPLE}.counting Sum.halve bound: while self.total > self.limit // 2: => "
    "while self.total > self.limit // 3:"
)
"""This mutant is marked, wrongly."""


def run(folder: Path, *arguments: str) -> int:
    equivalents = folder / "equivalents.txt"
    equivalents.write_text(f"{EQUIVALENT}\n    The simulator shows that this is wrong.\n")
    mutate.KEPT = folder / "kept"
    mutate_judges.HANG = 0.5
    mutate_judges.TARGETS["machines"] = TARGET
    return main(["simulate", "mutate", "--mutants", "1000", "--equivalents", str(equivalents), *arguments])


if __name__ == "__main__":
    sys.exit(run(Path(sys.argv[1]), *sys.argv[2:]))
