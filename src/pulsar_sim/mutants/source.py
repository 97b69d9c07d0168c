"""The mutants of one module: all that the operators can make of its source, each with a name.

Owns where changes make no sense (annotations, texts of errors, assertions, `__repr__`), and the names. The
name of a mutant is its module, its function, its kind and the text of the statement before and after, and has
no line: it stays the same while the code around it is edited.
"""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from .operators import OPERATORS, Change, Spot

SHOWN = 140
"""Characters of source that name a mutant at most; of a longer statement only the expression around it."""

PROBE = "__reached__"
"""The name, in a probed module, of the bytes that say which statements were begun."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change of one module. `statement` is the number of the statement that it changes, None for what is
    run when the module is imported."""

    module: str
    function: str
    kind: str
    before: str
    after: str
    again: int
    """1, or more where the same change can be made at several places of the function."""
    line: int
    statement: int | None
    number: int
    """Among the mutants of the module."""

    @property
    def name(self) -> str:
        again = f" #{self.again}" if self.again > 1 else ""
        return f"{self.module} {self.function} {self.kind}: {self.before} => {self.after}{again}"

    def __str__(self) -> str:
        return self.name


class ModuleSource:
    """A module's source. Its statements and its mutants have the same numbers in every process."""

    def __init__(self, module: str, text: str) -> None:
        self.module = module
        self.text = text

    @property
    def statements(self) -> int:
        """The number of statements in its functions."""
        return sum(1 for _ in _statements(ast.parse(self.text)))

    def mutants(self) -> list[Mutant]:
        """All there are, in the order of the source."""
        found: list[Mutant] = []
        seen: dict[tuple[str, ...], int] = {}
        for number, (kind, change, place) in enumerate(_changes(ast.parse(self.text))):
            before, after = place.shown(change)
            name = (place.function or "module", kind, before, after)
            seen[name] = seen.get(name, 0) + 1
            found.append(Mutant(self.module, *name, seen[name], place.line, place.statement, number))
        return found

    def mutated(self, number: int) -> ast.Module:
        """The tree with that mutant inside. Raises `IndexError` where there is none."""
        tree = ast.parse(self.text)
        for each, (_, change, _) in enumerate(_changes(tree)):
            if each == number:
                change.make()
                return ast.fix_missing_locations(tree)
        raise IndexError(f"{self.module} has no mutant {number}")

    def probed(self) -> ast.Module:
        """The tree with `__reached__[n] = 1` in front of the nth statement of its functions."""
        tree = ast.parse(self.text)
        bodies = [(body, body.index(each)) for each, body in _statements(tree)]
        for number, (body, index) in reversed(list(enumerate(bodies))):
            if not (index == 0 and _is_text(body[0])):
                body.insert(index, ast.parse(f"{PROBE}[{number}] = 1").body[0])
        return ast.fix_missing_locations(tree)


# --- where there is something to change -------------------------------------------------------------------

_NOT_RUN = {"annotation", "returns", "decorator_list", "type_comment", "pattern"}
"""Fields that say what something is, not what it does."""

_UNSAID = {"__repr__", "__str__", "__format__"}
"""Functions whose result is read by people."""

_LOGS = {"_log", "log", "logger", "_logger"}

_NAMING = {"__slots__", "__all__", "__match_args__"}


@dataclass(frozen=True, slots=True)
class _Place:
    """The place of a change."""

    function: str
    ancestors: tuple[ast.AST, ...]
    """From the statement to the node itself."""
    line: int
    statement: int | None

    @property
    def constructs(self) -> bool:
        return self.function.rpartition(".")[2] in ("__init__", "__post_init__")

    def inner(self, node: ast.AST) -> "_Place":
        """The place of a node that hangs at the node of this one."""
        function, ancestors, statement = self.function, (*self.ancestors, node), self.statement
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            function = f"{function}.{node.name}".lstrip(".")
        if isinstance(node, ast.stmt):
            ancestors, statement = (node,), getattr(node, "reached_as", None)
        elif isinstance(node, ast.match_case):
            ancestors = ()
        return _Place(function, ancestors, getattr(node, "lineno", self.line), statement)

    def shown(self, change: Change) -> tuple[str, str]:
        """Return the names of the change, before and after. Each is the head of the statement, or as much of
        it as is not too long."""
        whole: ast.AST | None = None
        if not (isinstance(change.holder, list) and isinstance(change.holder[0], ast.stmt)):
            whole = next((each for each in self.ancestors if len(_text(each)) <= SHOWN), None)
        back = change.make()
        replaced = back.new if isinstance(back.new, list) else [back.new]
        if whole is None or any(whole is each for each in replaced):
            found = (_text(back.new), _text(change.new))
            back.make()
            return found
        after = _text(whole)
        back.make()
        return _text(whole), after


def _statements(tree: ast.AST, inside: bool = False) -> Iterator[tuple[ast.stmt, list[ast.stmt]]]:
    """Each statement of a function, and the list that it stands in, in the order of the source."""
    for _, value in ast.iter_fields(tree):
        children = value if isinstance(value, list) else [value]
        for child in children:
            if not isinstance(child, ast.AST):
                continue
            if inside and isinstance(child, ast.stmt):
                yield child, children
            function = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef)
            yield from _statements(child, function or (inside and not isinstance(child, ast.ClassDef)))


def _changes(tree: ast.Module) -> Iterator[tuple[str, Change, _Place]]:
    """All changes, in the order of the source. The tree may be changed and changed back in between."""
    for number, (each, _) in enumerate(_statements(tree)):
        each.reached_as = number  # type: ignore[attr-defined]
    yield from _within(tree, _Place("", (), 0, None))


def _within(node: ast.AST, outer: _Place) -> Iterator[tuple[str, Change, _Place]]:
    for field, value in ast.iter_fields(node):
        if field in _NOT_RUN or (field in ("bases", "keywords") and isinstance(node, ast.ClassDef)):
            continue
        children = list(value) if isinstance(value, list) else [value]
        for index, child in enumerate(children):
            if not isinstance(child, ast.AST) or _makes_no_sense(child):
                continue
            holder, key = (value, index) if isinstance(value, list) else (node, field)
            place = outer.inner(child)
            spot = Spot(child, holder, key, place.constructs)
            for kind, operator in OPERATORS.items():
                for change in operator(spot):
                    yield kind, change, place
            if not isinstance(child, ast.Raise):
                yield from _within(child, place)


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _makes_no_sense(node: ast.AST) -> bool:
    """Tell whether a node and all in it is passed over: it is no code, or its result is only read by
    people."""
    match node:
        case ast.Assert() | ast.Import() | ast.ImportFrom() | ast.JoinedStr():
            return True
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
            return name in _UNSAID or all(_is_text(each) for each in node.body)
        case ast.ClassDef(bases=bases):
            return any("Protocol" in ast.unparse(base) for base in bases)
        case ast.If(test=ast.Name(id="TYPE_CHECKING")):
            return True
        case ast.Assign(targets=[ast.Name(id=name)]):
            return name in _NAMING
        case ast.AnnAssign(annotation=ast.Name(id="TypeAlias")):
            return True
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id=name)))):
            return name in _LOGS
        case ast.Call(func=ast.Name(id="TypeVar" | "cast" | "getLogger" | "assert_never")):
            return True
    return _is_text(node)


# --- text -------------------------------------------------------------------------------------------------


def _text(code: Any) -> str:
    """One line; of several statements all."""
    if isinstance(code, list):
        return "; ".join(map(_text, code)) or "nothing"
    if isinstance(code, ast.operator | ast.cmpop | ast.boolop):
        return type(code).__name__
    return " ".join(ast.unparse(_head(code)).split()) if isinstance(code, ast.AST) else str(code)


def _head(node: ast.AST) -> ast.AST:
    """A statement without the statements in it."""
    blocks = {"body", "orelse", "handlers", "finalbody", "cases", "decorator_list"}
    if isinstance(node, ast.comprehension):
        return ast.ListComp(ast.Name("_"), [node])
    if not isinstance(node, ast.stmt) or not hasattr(node, "body"):
        return node
    fields: dict[str, Any] = {name: [] if name in blocks else value for name, value in ast.iter_fields(node)}
    return ast.copy_location(type(node)(**fields), node)
