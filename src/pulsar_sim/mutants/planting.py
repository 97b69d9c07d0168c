"""The way in: functions of an imported module get the code of another tree. No file changes.

Owns the exchange, and the probes that say which statements run. Nothing is imported anew: a table, a closure
or a bound method that holds a function calls the other code from then on. So a mutant costs a compilation and
not an import. A caller plants in a process of its own, since nothing is taken back.
"""

import ast
import gc
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FunctionType, ModuleType

from .source import PROBE, ModuleSource, Mutant


def source_of(module: str) -> ModuleSource:
    """The source of an imported module."""
    file = sys.modules[module].__file__
    assert file is not None, module
    return ModuleSource(module, Path(file).read_text(encoding="utf-8"))


def plant(mutant: Mutant) -> None:
    """Put a mutant in a function in the place of what was imported.

    Raises `ValueError` for a mutant in code that only runs when its module is imported, and for one that
    uses fewer variables of an outer function.
    """
    if mutant.statement is None:
        raise ValueError(f"{mutant} is in no function")
    _exchange(sys.modules[mutant.module], source_of(mutant.module).mutated(mutant.number))


@dataclass(slots=True)
class Probes:
    """The statements that were begun, by module; one byte for each."""

    modules: dict[str, bytearray] = field(default_factory=dict)

    def plant(self, sources: Iterable[ModuleSource]) -> None:
        """Let all functions of these modules, as far as they are imported, note what is begun."""
        for source in sources:
            module = sys.modules.get(source.module)
            if module is not None:
                self.modules[source.module] = bytearray(source.statements)
                vars(module)[PROBE] = self.modules[source.module]
                _exchange(module, source.probed())

    def taken(self) -> dict[str, bytes]:
        """Return the statements begun since the last call, and forget them."""
        found = {name: bytes(each) for name, each in self.modules.items() if any(each)}
        for each in self.modules.values():
            each[:] = bytes(len(each))
        return found


def _functions(code: CodeType) -> Iterator[CodeType]:
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield each
            yield from _functions(each)


def _exchange(module: ModuleType, tree: ast.Module) -> None:
    """The functions of a module get the code that they have in the tree; they are told by name and line."""
    file = str(module.__file__)
    code = compile(tree, file, "exec", dont_inherit=True)
    new = {(each.co_qualname, each.co_firstlineno): each for each in _functions(code)}
    for each in gc.get_objects():
        if type(each) is FunctionType and each.__globals__ is vars(module):
            old = each.__code__
            found = new.get((old.co_qualname, old.co_firstlineno))
            if found is not None and old.co_filename == file and not old.co_name.startswith("<"):
                # A method that loses its only `super()` has no `__class__`; the function keeps the cell.
                each.__code__ = found if found.co_freevars else found.replace(co_freevars=old.co_freevars)
