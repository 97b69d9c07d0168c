"""What a mark is: a situation by name, and a condition on the call of one method of a machine.

Owns the register of all marks. It refuses to know what is done with them: `coverage` replaces the methods
while it records, so that the machines know nothing of marks and pay nothing for them.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

Condition: TypeAlias = "Callable[..., object]"


@dataclass(frozen=True, slots=True)
class Mark:
    """One situation."""

    name: str
    text: str
    owner: type
    method: str
    reached: Condition
    """Gets what the method gets, itself included."""


MARKS: dict[str, Mark] = {}
"""All marks, by name."""


def mark(owner: type, method: str) -> Callable[[Condition], Condition]:
    """Add a condition: true where the situation is reached with this call of `owner.method`."""

    def add(reached: Condition) -> Condition:
        name = reached.__name__.strip("_").replace("_", " ")
        if name in MARKS:
            raise ValueError(f"two marks are called {name}")
        MARKS[name] = Mark(name, " ".join((reached.__doc__ or "").split()), owner, method, reached)
        return reached

    return add
