"""`PlantedBug`: a bug with a name and an origin that replaces methods of a machine for a while.

Owns planting and removing, and the register of all bugs. The machines know nothing of it and pay nothing for
it: outside of `PlantedBug.planted()` they are the classes that were imported. Every replacement counts its
calls, which distinguishes a bug in code that never runs from a bug that no check notices.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import ModuleType
from typing import Any, TypeAlias

from .preconditions.general import Need


class Patches:
    """Replaces attributes of classes and modules for a while."""

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
        """Put `wrap(original, *arguments)` in the place of a function or method; `self` is the first
        argument."""
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
    """The number in the list of historical bugs of Pulsar clients (BUG-nnn), or "own" for a bug of this
    project."""
    text: str
    """A description of the wrong behaviour, in one or two sentences."""
    needs: tuple[Need, ...]
    """Preconditions that the profile of a seed must meet for the bug to matter."""
    caught_by: tuple[str, ...]
    """Invariants that the bug itself breaks."""
    plant: Plant

    @contextmanager
    def planted(self) -> Iterator[Patches]:
        """Plant the bug in the machines for the duration of the context."""
        patches = Patches()
        try:
            self.plant(patches)
            yield patches
        finally:
            patches.restore()


BANK: dict[str, PlantedBug] = {}
"""All bugs, by name."""


def bug(origin: str, *, caught_by: Sequence[str], needs: Sequence[Need] = ()) -> Callable[[Plant], Plant]:
    """Add a function that plants a bug to the bank. Its name is the bug's name; its docstring is the bug's
    text."""

    def add(plant: Plant) -> Plant:
        name = plant.__name__.replace("_", "-")
        if name in BANK:
            raise ValueError(f"two bugs are called {name}")
        text = " ".join((plant.__doc__ or "").split())
        BANK[name] = PlantedBug(name, origin, text, tuple(needs), tuple(caught_by), plant)
        return plant

    return add


def nothing(*_: Any, **__: Any) -> None:
    """Do nothing, in the place of a method that the bug forgets."""
