"""The statements that each world (or each test) runs.

Owns the sets, as whole numbers with one bit for each statement. They say which mutants can be noticed at all,
and by which worlds; so a mutant in a line that one world in a hundred reaches is tried in those worlds alone.
"""

from dataclasses import dataclass, field
from typing import Any


def bits_of(reached: bytes) -> int:
    """One bit for each byte that is not 0: the first byte is the lowest bit."""
    return sum(1 << number for number, each in enumerate(reached) if each)


@dataclass(slots=True)
class Reach:
    """The statements that were run: world (or test) -> module -> bits of the statements. The order is that of
    the worlds."""

    worlds: dict[str, dict[str, int]] = field(default_factory=dict)

    def add(self, world: str, reached: dict[str, bytes]) -> None:
        self.worlds[world] = {module: bits_of(found) for module, found in reached.items()}

    def all(self, module: str) -> int:
        """The statements of a module that any world runs."""
        found = 0
        for each in self.worlds.values():
            found |= each.get(module, 0)
        return found

    def of(self, module: str, statement: int) -> list[str]:
        """The worlds that run a statement, in their order."""
        bit = 1 << statement
        return [world for world, each in self.worlds.items() if each.get(module, 0) & bit]

    def as_json(self) -> dict[str, Any]:
        return {
            world: {module: f"{bits:x}" for module, bits in each.items()}
            for world, each in self.worlds.items()
        }

    @classmethod
    def from_json(cls, found: dict[str, dict[str, str]]) -> "Reach":
        return cls(
            {world: {module: int(bits, 16) for module, bits in each.items()} for world, each in found.items()}
        )
