"""Explanations: texts that tell why a producer or consumer does not move, made of lines.

Each machine makes lines of its own facts (`explain`); the root joins them under one heading. The facts
contain nothing secret: neither properties nor payloads nor keys.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ..model.errors import PulsarError

MAX_PARTS = 10
"""Topics and partitions with a line of their own; the text gives only the number of the others."""

MAX_REASON = 500
"""The most characters of an error in a text; a broker's error may be longer."""


class ExplainedPart(NamedTuple):
    """One topic or partition of a consumer or producer that has several."""

    name: str
    moves: bool
    """The topic or partition is attached."""
    lines: Sequence[str]


def seconds(nanoseconds: int) -> str:
    """Format a duration, to a tenth of a second."""
    return f"{nanoseconds / 1e9:.1f} s"


def reason(error: PulsarError | None) -> str:
    """Format an error as the end of a sentence; return an empty text for None."""
    if error is None:
        return ""
    text = str(error)
    return ": " + (text if len(text) <= MAX_REASON else text[:MAX_REASON] + "…")


def several(parts: Sequence[ExplainedPart], what: str) -> list[str]:
    """Make a line for each part, detached ones first, for `MAX_PARTS` parts at most."""
    attached = sum(part.moves for part in parts)
    lines = [f"{attached} of {len(parts)} {what} are connected"]
    ordered = sorted(parts, key=lambda part: part.moves)
    lines += [f"{part.name}: {'; '.join(part.lines)}" for part in ordered[:MAX_PARTS]]
    if len(parts) > MAX_PARTS:
        lines.append(f"and {len(parts) - MAX_PARTS} more")
    return lines


def under(heading: str, lines: Iterable[str]) -> str:
    """Join lines to one text: the first line behind the heading, the others indented below."""
    first, *rest = lines
    return "\n".join([f"{heading}: {first}", *(f"  {line}" for line in rest)])
