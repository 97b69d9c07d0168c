"""Keeps what a run of recall found: the table in docs/bank.md, and the seeds that the tests replay.

    pulsar-trio simulate recall --json > build/recall.json
    python tools/keep_recall.py build/recall.json

Refuses a run in which a bug was not caught, or was caught only by what followed from it.
"""

import json
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "bank.md"
KNOWN = ROOT / "tests" / "sim" / "bank" / "known_seeds.json"

BEGIN = "<!-- recall: begin -->\n"
END = "<!-- recall: end -->\n"


def table(result: dict[str, Any]) -> str:
    """The table, one line for each bug, as Markdown."""
    lines = [
        f"{result['planted']} planted, of {result['historical']} entries and of our own; {result['caught']} "
        f"caught. Seeds to the first that notices: median {result['median_seeds']:g}, at most "
        f"{result['most_seeds']}.",
        "",
        "| bug | entry | noticed by (in so many seeds) | of seeds | first |",
        "| --- | --- | --- | --- | --- |",
    ]
    for bug in result["bugs"]:
        rules = ", ".join(
            f"{rule}{'' if rule in bug['expected'] else '?'} ({times})"
            for rule, times in bug["rules"].items()
        )
        lines.append(f"| {bug['name']} | {bug['origin']} | {rules} | {bug['tried']} | {bug['seeds']} |")
    return "\n".join(lines) + "\n"


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
    PAGE.write_text(replaced(PAGE.read_text(), table(result)))
    KNOWN.write_text(json.dumps(known(result), indent=1, sort_keys=True) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
