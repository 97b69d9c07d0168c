"""Keeps the results of a run of recall: the table in docs/bank.md, and the seeds that the tests replay.

    pulsar-trio simulate recall --json > build/recall.json
    python tools/keep_recall.py build/recall.json

A run of some bugs (`recall --bug NAME`) replaces the lines of those and leaves the others. The tool refuses a
run in which a bug was not caught, or was caught only by its consequences. It also refuses a run that leaves a
bug of the bank without a line.
"""

import json
import re
import sys
from pathlib import Path
from statistics import median
from typing import Any

from pulsar_sim.bug_bank import BANK

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "bank.md"
KNOWN = ROOT / "tests" / "sim" / "bug_bank" / "known_seeds.json"

BEGIN = "<!-- recall: begin -->\n"
END = "<!-- recall: end -->\n"


def lines_of(result: dict[str, Any]) -> dict[str, str]:
    """Bug -> its line of the table, as Markdown."""
    lines = {}
    for bug in result["bugs"]:
        rules = ", ".join(
            f"{rule}{'' if rule in bug['expected'] else '?'} ({times})"
            for rule, times in bug["rules"].items()
        )
        lines[bug["name"]] = (
            f"| {bug['name']} | {bug['origin']} | {rules} | {bug['tried']} | {bug['seeds']} |"
        )
    return lines


def lines_in(page: str) -> dict[str, str]:
    """Return the lines that a page has."""
    content = page.partition(BEGIN)[2].partition(END)[0]
    return {match[1]: match[0] for match in re.finditer(r"^\| ([a-z0-9-]+) \| .*\|$", content, re.MULTILINE)}


def table(lines: dict[str, str]) -> str:
    """The table, as Markdown. Raises `KeyError` for a bug without a line."""
    seeds = [int(lines[name].split("|")[-2]) for name in BANK]
    entries = {bug.origin for bug in BANK.values()} - {"own"}
    head = [
        f"{len(BANK)} planted, of {len(entries)} entries and of our own; {len(BANK)} "
        f"caught. Seeds to the first that notices: median {median(seeds):g}, at most "
        f"{max(seeds)}.",
        "",
        "| bug | entry | noticed by (in so many seeds) | of seeds | first |",
        "| --- | --- | --- | --- | --- |",
    ]
    return "\n".join([*head, *(lines[name] for name in BANK)]) + "\n"


def replaced(page: str, content: str) -> str:
    """The page with other content between the marks. Raises `ValueError` where the marks are missing."""
    before, _, rest = page.partition(BEGIN)
    _, found, after = rest.partition(END)
    if not found:
        raise ValueError("the page has no marks for the table")
    return before + BEGIN + content + END + after


def known(result: dict[str, Any]) -> dict[str, int]:
    """Bug -> the seed that shows it at the least cost."""
    return {bug["name"]: bug["quickest_seed"] for bug in result["bugs"]}


def main() -> int:
    result = json.loads(Path(sys.argv[1]).read_text())
    if wrong := [bug["name"] for bug in result["bugs"] if not (bug["caught"] and bug["right"])]:
        print(f"not caught, or not by an invariant that is right: {', '.join(wrong)}", file=sys.stderr)
        return 1
    page = PAGE.read_text()
    PAGE.write_text(replaced(page, table({**lines_in(page), **lines_of(result)})))
    seeds = {**json.loads(KNOWN.read_text()), **known(result)}
    kept = {name: seeds[name] for name in BANK}
    KNOWN.write_text(json.dumps(kept, indent=1, sort_keys=True) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
