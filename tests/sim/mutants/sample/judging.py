"""The simulation of the sample: it looks at what `add` returns, and never at what was refused."""

from collections.abc import Iterator

from tests.sim.mutants.sample.counting import Sum


def worlds(drawn: int = 2) -> Iterator[str]:
    for number in range(drawn):
        yield f"world {number}"


def broken_by(world: str) -> str:
    number = int(world.removeprefix("world "))
    if number > 1:
        return "RULE-3: there is no such world"
    found = Sum(10)
    told = [found.add(each) for each in (4, 6, 1)]
    if told != [True, True, False]:
        return f"RULE-1: told {told}"
    if number:
        found.halve()
        return "RULE-2: more than half" if found.total != 5 else ""
    return ""
