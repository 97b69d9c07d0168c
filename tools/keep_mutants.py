"""Keeps the results of `simulate mutate`: the table and the survivors in docs/mutants.md.

    pulsar-trio simulate mutate --mutants 1000 --results build/machines.jsonl
    pulsar-trio simulate mutate --of adapter --mutants 200 --results build/adapter.jsonl
    python tools/keep_mutants.py build/machines.jsonl build/adapter.jsonl

The last line of a mutant counts. The page names apart the mutants that unit tests have not run against yet.
"""

import json
import sys
from collections.abc import Iterable
from pathlib import Path

from pulsar_sim.mutants import FateTable, Judged
from pulsar_sim.mutants.judged import SIMULATOR, SURVIVED, TESTS

PAGE = Path(__file__).resolve().parent.parent / "docs" / "mutants.md"

BEGIN = "<!-- mutants: begin -->\n"
END = "<!-- mutants: end -->\n"


def read(file: Path) -> list[Judged]:
    """The last result of each mutant, in the order of the names."""
    found = {}
    for line in file.read_text(encoding="utf-8").splitlines():
        judged = Judged(**json.loads(line))
        found[judged.name] = judged
    return [found[name] for name in sorted(found)]


def section(judged: list[Judged]) -> str:
    """The figures, the table and the survivors, as Markdown."""
    table = FateTable.of(judged)
    total = table.total
    survivors = [each for each in judged if each.fate == SURVIVED]
    untested = [each for each in survivors if not each.tested]
    lines = [
        f"{sum(total.values())} mutants, {total['equivalent']} of them equivalent. Of the others the "
        f"simulation notices {FateTable.percent(total, SIMULATOR):.1f} %, with unit tests "
        f"{FateTable.percent(total, SIMULATOR, TESTS):.1f} %; {len(survivors)} are not noticed, of which the "
        f"unit tests have not judged {len(untested)} yet.",
        "",
        table.as_markdown(),
        *_listed("Not noticed by the simulation, nor by a unit test:", set(survivors) - set(untested)),
        *_listed("Not noticed by the simulation, and not yet judged by unit tests:", untested),
    ]
    return "\n".join(lines)


def _listed(title: str, mutants: Iterable[Judged]) -> list[str]:
    names = sorted(each.name for each in mutants)
    return [title, "", "```text", *names, "```", ""] if names else []


def replaced(page: str, content: str) -> str:
    """The page with other content between the marks. Raises `ValueError` where the marks are missing."""
    before, _, rest = page.partition(BEGIN)
    _, found, after = rest.partition(END)
    if not found:
        raise ValueError("the page has no marks for the table")
    return before + BEGIN + content + END + after


def main() -> int:
    titles = ("### Client and broker\n\n", "### The adapter\n\n")
    sections = [title + section(read(Path(name))) for title, name in zip(titles, sys.argv[1:], strict=False)]
    PAGE.write_text(replaced(PAGE.read_text(encoding="utf-8"), "\n".join(sections)), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
