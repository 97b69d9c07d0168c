"""Explanations: the text that says why nothing moves, put together of lines.

Pure functions over facts. Each machine knows its own facts and makes its lines (`explain`); the root joins
them under one heading. Nothing secret is among the facts: neither properties nor payloads nor keys.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ..model.errors import PulsarError

MAX_PARTS = 10
"""Topics and partitions with a line of their own; of the others only the number is said."""

MAX_REASON = 500
"""Characters of an error that are repeated; a broker's text may be longer."""


class Part(NamedTuple):
    """One topic or partition of a consumer or producer that has several."""

    name: str
    moves: bool
    """The topic or partition is attached."""
    lines: Sequence[str]


def seconds(nanoseconds: int) -> str:
    """A duration, to a tenth of a second."""
    return f"{nanoseconds / 1e9:.1f} s"


def reason(error: PulsarError | None) -> str:
    """An error as the end of a sentence; an empty text where there is none."""
    if error is None:
        return ""
    text = str(error)
    return ": " + (text if len(text) <= MAX_REASON else text[:MAX_REASON] + "…")


def several(parts: Sequence[Part], what: str) -> list[str]:
    """A line for each part, those that are not attached first; never more than `MAX_PARTS`."""
    attached = sum(part.moves for part in parts)
    lines = [f"{attached} of {len(parts)} {what} are connected"]
    ordered = sorted(parts, key=lambda part: part.moves)
    lines += [f"{part.name}: {'; '.join(part.lines)}" for part in ordered[:MAX_PARTS]]
    if len(parts) > MAX_PARTS:
        lines.append(f"and {len(parts) - MAX_PARTS} more")
    return lines


def under(heading: str, lines: Iterable[str]) -> str:
    """One text: the first line behind the heading, the others indented below."""
    first, *rest = lines
    return "\n".join([f"{heading}: {first}", *(f"  {line}" for line in rest)])
