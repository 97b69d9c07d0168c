"""`python -m tests.store --rounds 200`: kill a broker with its data on disk, again and again."""

import argparse
import sys
from logging import ERROR, getLogger
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.store.killing import run_rounds


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.store", description=__doc__)
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    getLogger("pulsar_trio").setLevel(ERROR)  # every kill is a lost connection
    with TemporaryDirectory() as folder:
        confirmed = run_rounds(
            given.rounds, given.seed, Path(folder) / "data", lambda text: print(text, flush=True)
        )
    for fault in confirmed.faults[:20]:
        print(fault)
    print(f"{len(confirmed.faults)} faults")
    return 1 if confirmed.faults else 0


if __name__ == "__main__":
    sys.exit(main())
