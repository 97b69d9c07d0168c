"""The way in: modules are imported anew, one of them mutated, or all of them probed. No file changes.

Owns a finder that goes before the others. It refuses to know what runs then. A caller imports mutants in a
process of their own, since imported modules stay.
"""

import ast
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import ModuleType

from .source import PROBE, Mutant, Source


class _Loader(SourceFileLoader):
    """Compiles the tree that it is given in place of the file, and keeps nothing of it on disk."""

    def __init__(self, name: str, path: str, tree: ast.Module, names: dict[str, object]) -> None:
        super().__init__(name, path)
        self._tree = tree
        self._names = names

    def get_code(self, fullname: str) -> object:  # type: ignore[override]
        return compile(self._tree, self.path, "exec", dont_inherit=True)

    def exec_module(self, module: ModuleType) -> None:
        vars(module).update(self._names)
        super().exec_module(module)


class _Finder(MetaPathFinder):
    """`change(name, source)` gives the tree and the names that the module begins with; None leaves it."""

    def __init__(self, change: Callable[[str, str], tuple[ast.Module, dict[str, object]] | None]) -> None:
        self._change = change

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is None or not isinstance(spec.loader, SourceFileLoader):
            return None
        source = spec.loader.get_data(spec.loader.path).decode()
        changed = self._change(fullname, source)
        if changed is not None:
            spec.loader = _Loader(fullname, spec.loader.path, *changed)
        return spec


@contextmanager
def _found_by(finder: _Finder) -> Iterator[None]:
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)


def belongs(name: str, packages: Iterable[str]) -> bool:
    """Whether a module is one of the packages, or in one."""
    return any(name == each or name.startswith(f"{each}.") for each in packages)


def forget(packages: Iterable[str], but: Iterable[str] = ()) -> None:
    """Let the next import of these packages, and of all in them, run their modules anew; `but` stay."""
    for name in [each for each in sys.modules if belongs(each, packages) and not belongs(each, but)]:
        del sys.modules[name]


@contextmanager
def import_mutant(mutant: Mutant) -> Iterator[None]:
    """Within, the import of the mutant's module gives the mutant."""

    def change(name: str, text: str) -> tuple[ast.Module, dict[str, object]] | None:
        return (Source(name, text).mutated(mutant.number), {}) if name == mutant.module else None

    with _found_by(_Finder(change)):
        yield


@dataclass(slots=True)
class Probes:
    """Which statements were begun, by module; one byte for each."""

    modules: dict[str, bytearray] = field(default_factory=dict)

    def clear(self) -> None:
        for each in self.modules.values():
            each[:] = bytes(len(each))

    def taken(self) -> dict[str, bytes]:
        """What was begun since the last time."""
        found = {name: bytes(each) for name, each in self.modules.items() if any(each)}
        self.clear()
        return found


@contextmanager
def import_probed(packages: Iterable[str], probes: Probes) -> Iterator[None]:
    """Within, imports of modules of these packages give modules that note which statements are begun."""
    packages = tuple(packages)

    def change(name: str, text: str) -> tuple[ast.Module, dict[str, object]] | None:
        if not belongs(name, packages):
            return None
        source = Source(name, text)
        reached = probes.modules[name] = bytearray(source.statements)
        return source.probed(), {PROBE: reached}

    with _found_by(_Finder(change)):
        yield
