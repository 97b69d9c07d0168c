"""The code blocks of pages in docs/, to be run."""

import re
from pathlib import Path

DOCS = Path(__file__).parent.parent.parent / "docs"

_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(page: str, language: str) -> list[str]:
    """The blocks of one language, each moved down to its line of the page, so that a failure names it."""
    text = (DOCS / page).read_text()
    found = [match for match in _BLOCK.finditer(text) if match[1] == language]
    return ["\n" * text.count("\n", 0, match.start(2)) + match[2] for match in found]
