"""The draw of the mutants to try: some of many, by a seed over the lines that worlds reach.

Each line has the same chance, however many mutants it has. The same seed draws the same mutants in every
process, and a larger number begins with those of a smaller one.
"""

from collections.abc import Iterable

from ..engine.randomness import Streams
from .reach import Reach
from .source import ModuleSource, Mutant


def reachable(sources: Iterable[ModuleSource], reach: Reach) -> list[Mutant]:
    """The mutants in statements that worlds run, in the order of the modules and their source."""
    found = []
    for source in sources:
        bits = reach.all(source.module)
        found += [
            each for each in source.mutants() if each.statement is not None and bits >> each.statement & 1
        ]
    return found


def drawn(sources: Iterable[ModuleSource], reach: Reach, seed: int, count: int) -> list[Mutant]:
    """At most `count` mutants: one of each line, the lines in an order that the seed decides, then another of
    each line."""
    lines: dict[tuple[str, int], list[Mutant]] = {}
    for mutant in reachable(sources, reach):
        lines.setdefault((mutant.module, mutant.line), []).append(mutant)
    stream = Streams(seed).stream("mutants")
    queues = list(lines.values())
    stream.shuffle(queues)
    for queue in queues:
        stream.shuffle(queue)
    found: list[Mutant] = []
    turn = 0
    while len(found) < count and any(len(queue) > turn for queue in queues):
        found += [queue[turn] for queue in queues if len(queue) > turn]
        turn += 1
    return found[:count]
