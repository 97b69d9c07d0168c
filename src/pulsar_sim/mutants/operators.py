"""The changes that can be made to a syntax tree: one entry of `OPERATORS` for each kind.

Owns which small mistakes there are. An operator gets one `Spot` of a tree and yields what could stand there
instead. It refuses to know what a spot means, and where in a module changes make no sense (see `source`).
"""

import ast
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, TypeAlias


@dataclass(frozen=True, slots=True)
class Change:
    """Put `new` at `key` of `holder`: an attribute of a node, or an item (or a slice) of a list of nodes."""

    holder: Any
    key: Any
    new: Any

    def make(self) -> "Change":
        """Change the tree, and give the change that takes this one back."""
        if isinstance(self.holder, list):
            old = self.holder[self.key]
            self.holder[self.key] = self.new
        else:
            old = getattr(self.holder, self.key)
            setattr(self.holder, self.key, self.new)
        return Change(self.holder, self.key, old)


@dataclass(frozen=True, slots=True)
class Spot:
    """A node, where it hangs, and what is around it."""

    node: ast.AST
    holder: Any
    key: Any
    constructs: bool
    """In `__init__` or `__post_init__`, where a dropped assignment is an AttributeError, not a bug."""

    def instead(self, new: Any) -> Change:
        return Change(self.holder, self.key, new)


Operator: TypeAlias = Callable[[Spot], Iterator[Change]]

OPERATORS: dict[str, Operator] = {}
"""By kind, in the order in which changes are numbered."""


def _operator(function: Operator) -> Operator:
    OPERATORS[function.__name__] = function
    return function


def negated(test: ast.expr) -> ast.expr:
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return test.operand
    return ast.UnaryOp(ast.Not(), deepcopy(test))


# --- expressions ------------------------------------------------------------------------------------------

_COMPARED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}


@_operator
def comparison(spot: Spot) -> Iterator[Change]:
    """`<` and `<=`, `==` and `!=`, `in` and `not in`: the other of the two."""
    if isinstance(spot.node, ast.Compare):
        for index, each in enumerate(spot.node.ops):
            yield Change(spot.node.ops, index, _COMPARED[type(each)]())


@_operator
def bound(spot: Spot) -> Iterator[Change]:
    """A whole number, one more and one less."""
    if isinstance(spot.node, ast.Constant) and type(spot.node.value) is int:
        yield spot.instead(ast.Constant(spot.node.value + 1))
        yield spot.instead(ast.Constant(spot.node.value - 1))


@_operator
def constant(spot: Spot) -> Iterator[Change]:
    """True and False exchanged, a fraction doubled."""
    if isinstance(spot.node, ast.Constant):
        if isinstance(spot.node.value, bool):
            yield spot.instead(ast.Constant(not spot.node.value))
        elif isinstance(spot.node.value, float):
            yield spot.instead(ast.Constant(spot.node.value * 2 or 1.0))


_TURNED: dict[type[ast.operator], type[ast.operator]] = {ast.Add: ast.Sub, ast.Sub: ast.Add}


def _counts(node: ast.expr) -> bool:
    """Tell whether plus and minus can be of numbers: text, bytes, lists and tuples are only joined."""
    joined = (ast.JoinedStr, ast.List, ast.Tuple, ast.ListComp)
    return not (
        isinstance(node, joined) or (isinstance(node, ast.Constant) and isinstance(node.value, str | bytes))
    )


@_operator
def arithmetic(spot: Spot) -> Iterator[Change]:
    """Plus and minus exchanged, also in `+=` and `-=`."""
    match spot.node:
        case ast.BinOp(left=left, op=(ast.Add() | ast.Sub()) as op, right=right):
            if _counts(left) and _counts(right):
                yield Change(spot.node, "op", _TURNED[type(op)]())
        case ast.AugAssign(op=(ast.Add() | ast.Sub()) as op, value=value):
            if _counts(value):
                yield Change(spot.node, "op", _TURNED[type(op)]())


@_operator
def junction(spot: Spot) -> Iterator[Change]:
    """`and` and `or` exchanged."""
    if isinstance(spot.node, ast.BoolOp):
        yield Change(spot.node, "op", ast.Or() if isinstance(spot.node.op, ast.And) else ast.And())


@_operator
def condition(spot: Spot) -> Iterator[Change]:
    """One part of a condition forgotten: of `a and b` only `a`, or only `b`; a comprehension's filter."""
    match spot.node:
        case ast.BoolOp(op=op, values=values):
            for index in range(len(values)):
                left = [each for number, each in enumerate(values) if number != index]
                yield spot.instead(left[0] if len(left) == 1 else ast.BoolOp(op, left))
        case ast.comprehension(ifs=ifs):
            for index in range(len(ifs)):
                yield Change(spot.node, "ifs", ifs[:index] + ifs[index + 1 :])


@_operator
def negation(spot: Spot) -> Iterator[Change]:
    """A condition turned round: the branches are swapped. `comparison` has `==`, `is` and `in`."""
    if isinstance(spot.node, ast.If | ast.While | ast.IfExp):
        match spot.node.test:
            case ast.Compare(ops=[ast.Eq() | ast.NotEq() | ast.Is() | ast.IsNot() | ast.In() | ast.NotIn()]):
                return
        yield Change(spot.node, "test", negated(spot.node.test))
    elif isinstance(spot.node, ast.UnaryOp) and isinstance(spot.node.op, ast.Not) and spot.key != "test":
        yield spot.instead(spot.node.operand)


_RELATED = {
    "min": "max",
    "max": "min",
    "any": "all",
    "all": "any",
    "popleft": "pop",
    "appendleft": "append",
}


@_operator
def relative(spot: Spot) -> Iterator[Change]:
    """The nearest relative of a function: `min` and `max`, `any` and `all`, the other end of a queue."""
    match spot.node:
        case ast.Call(func=ast.Name(id="min" | "max" | "any" | "all") as name):
            yield Change(name, "id", _RELATED[name.id])
        case ast.Call(func=ast.Attribute(attr="popleft" | "appendleft") as method):
            yield Change(method, "attr", _RELATED[method.attr])


@_operator
def arguments(spot: Spot) -> Iterator[Change]:
    """The first two arguments of a call exchanged, where both are names or attributes."""
    match spot.node:
        case ast.Call(args=[ast.Name() | ast.Attribute() as one, ast.Name() | ast.Attribute() as other, *_]):
            if isinstance(spot.node.func, ast.Name) and spot.node.func.id in ("isinstance", "min", "max"):
                return
            if ast.dump(one) != ast.dump(other):
                yield Change(spot.node.args, slice(0, 2), [other, one])


# --- statements -------------------------------------------------------------------------------------------

_FORGETS = ("clear", "discard", "pop", "popleft", "remove", "cancel", "stop", "reset")


def _is_empty(value: ast.expr) -> bool:
    match value:
        case ast.Constant(value=None | False | 0 | "" | b""):
            return True
        case ast.List(elts=[]) | ast.Dict(keys=[]) | ast.Tuple(elts=[]):
            return True
        case ast.Call(func=ast.Name(id="set" | "deque" | "list" | "dict"), args=[]):
            return True
    return False


def _is_reset(statement: ast.AST) -> bool:
    match statement:
        case ast.Assign(targets=[ast.Attribute() | ast.Subscript()], value=value):
            return _is_empty(value)
        case ast.Expr(value=ast.Call(func=ast.Attribute(attr=name))):
            return name in _FORGETS
    return isinstance(statement, ast.Delete)


@_operator
def reset(spot: Spot) -> Iterator[Change]:
    """A reset forgotten: `self.x = None`, `.clear()`, `.discard(…)`, `.pop(…)`, `del`."""
    if _is_reset(spot.node) and not (spot.constructs and isinstance(spot.node, ast.Assign)):
        yield spot.instead(ast.Pass())


@_operator
def dropped(spot: Spot) -> Iterator[Change]:
    """A call, a count or an assignment to an attribute forgotten."""
    if _is_reset(spot.node):
        return
    match spot.node:
        case ast.Expr(value=ast.Call() | ast.Await(value=ast.Call())) | ast.AugAssign():
            yield spot.instead(ast.Pass())
        case ast.Assign(targets=[ast.Attribute() | ast.Subscript(), *_]) if not spot.constructs:
            yield spot.instead(ast.Pass())


@_operator
def leaving(spot: Spot) -> Iterator[Change]:
    """A return in front of the end, a `continue`, `break` or `raise` forgotten."""
    match spot.node:
        case ast.Continue() | ast.Break() | ast.Raise():
            yield spot.instead(ast.Pass())
        case ast.Return(value=None | ast.Constant(value=None)):
            yield spot.instead(ast.Pass())


@_operator
def order(spot: Spot) -> Iterator[Change]:
    """Two calls that follow each other, the other way round."""
    if not isinstance(spot.node, ast.Expr) or not isinstance(spot.node.value, ast.Call):
        return
    following = spot.holder[spot.key + 1] if spot.key + 1 < len(spot.holder) else None
    if isinstance(following, ast.Expr) and isinstance(following.value, ast.Call):
        yield Change(spot.holder, slice(spot.key, spot.key + 2), [following, spot.node])
