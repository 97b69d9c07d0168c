"""What a planted bug is: a name, where it comes from, and methods of a machine replaced for a while.

Owns planting and removing, and the register of all bugs. The machines know nothing of it and pay nothing for
it: outside of `PlantedBug.planted()` they are the classes that were imported. Every replacement counts its
calls, so that a bug in code that never runs is told from one that nobody notices.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import ModuleType
from typing import Any, TypeAlias

from .preconditions.general import Need


class Patches:
    """Attributes of classes and modules replaced for a while."""

    def __init__(self) -> None:
        self.calls: dict[str, int] = {}
        """Class or module and attribute -> how often the replacement was called."""
        self._undo: list[tuple[type | ModuleType, str, Any]] = []

    def replace(self, owner: type | ModuleType, name: str, new: Any) -> None:
        """Put `new`, a function or a property, in the place of an attribute of the class or module itself.

        Raises `KeyError` where there is no such attribute: the bank has to follow the machines.
        """
        original = vars(owner)[name]
        self._undo.append((owner, name, original))
        label = f"{owner.__name__}.{name}"
        self.calls[label] = 0
        setattr(owner, name, self._counted(label, new))

    def around(self, owner: type | ModuleType, name: str, wrap: Callable[..., Any]) -> None:
        """`wrap(original, *arguments)` in the place of a function or method; `self` is the first argument."""
        original = vars(owner)[name]

        def replacement(*arguments: Any, **options: Any) -> Any:
            return wrap(original, *arguments, **options)

        self.replace(owner, name, replacement)

    def _counted(self, label: str, new: Any) -> Any:
        calls = self.calls
        function: Callable[..., Any] = new.fget if isinstance(new, property) else new  # type: ignore[assignment]

        def counted(*arguments: Any, **options: Any) -> Any:
            calls[label] += 1
            return function(*arguments, **options)

        return property(counted, new.fset) if isinstance(new, property) else counted

    def restore(self) -> None:
        for owner, name, original in reversed(self._undo):
            setattr(owner, name, original)
        self._undo.clear()


Plant: TypeAlias = Callable[[Patches], None]


@dataclass(frozen=True, slots=True)
class PlantedBug:
    """One bug that can be planted."""

    name: str
    origin: str
    """Number in the list of historical bugs of Pulsar clients (BUG-nnn), or "own": of our own making."""
    text: str
    """What goes wrong, in one or two sentences."""
    needs: tuple[Need, ...]
    """What a seed must have for the bug to matter."""
    caught_by: tuple[str, ...]
    """Invariants that are right to notice it."""
    plant: Plant

    @contextmanager
    def planted(self) -> Iterator[Patches]:
        """The machines have the bug while this lasts."""
        patches = Patches()
        try:
            self.plant(patches)
            yield patches
        finally:
            patches.restore()


BANK: dict[str, PlantedBug] = {}
"""All bugs, by name."""


def bug(origin: str, *, caught_by: Sequence[str], needs: Sequence[Need] = ()) -> Callable[[Plant], Plant]:
    """Add a function that plants a bug to the bank: its name is the bug's, its docstring the text."""

    def add(plant: Plant) -> Plant:
        name = plant.__name__.replace("_", "-")
        if name in BANK:
            raise ValueError(f"two bugs are called {name}")
        text = " ".join((plant.__doc__ or "").split())
        BANK[name] = PlantedBug(name, origin, text, tuple(needs), tuple(caught_by), plant)
        return plant

    return add


def nothing(*_: Any, **__: Any) -> None:
    """In the place of something that is forgotten."""
