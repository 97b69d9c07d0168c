"""Each operator: the source of a function before and after."""

import ast

import pytest

from pulsar_sim.mutants import ModuleSource
from pulsar_sim.mutants.operators import OPERATORS

CASES: dict[str, list[tuple[str, list[str]]]] = {
    "comparison": [
        ("return a < b", ["return a <= b"]),
        ("return a == b", ["return a != b"]),
        ("return a in b", ["return a not in b"]),
        ("return a is None", ["return a is not None"]),
        ("return 1 <= a <= b", ["return 1 < a <= b", "return 1 <= a < b"]),
    ],
    "bound": [("return a[2:]", ["return a[3:]", "return a[1:]"]), ("return True", [])],
    "constant": [("return True", ["return False"]), ("return 1.5", ["return 3.0"]), ("return 'a'", [])],
    "arithmetic": [
        ("return a + b", ["return a - b"]),
        ("a -= b", ["a += b"]),
        ("return a + 'text'", []),
        ("return a * b", []),
    ],
    "junction": [("return a and b", ["return a or b"]), ("return a or b", ["return a and b"])],
    "condition": [
        ("return a and b", ["return b", "return a"]),
        ("return a or b or 1", ["return b or 1", "return a or 1", "return a or b"]),
        ("return [x for x in a if b]", ["return [x for x in a]"]),
    ],
    "negation": [
        ("if a < b:\n        return 1", ["if not a < b:"]),
        ("if not a:\n        return 1", ["if a:"]),
        ("while a:\n        b()", ["while not a:"]),
        ("return 1 if a else b", ["return 1 if not a else b"]),
        ("return not a", ["return a"]),
        ("if a is b:\n        return 1", []),
    ],
    "relative": [
        ("return min(a, b)", ["return max(a, b)"]),
        ("return any(a)", ["return all(a)"]),
        ("return a.popleft()", ["return a.pop()"]),
    ],
    "arguments": [("a(b, a.b, 1)", ["a(a.b, b, 1)"]), ("a(b, 1)", []), ("isinstance(a, b)", [])],
    "reset": [
        ("self.a = None", ["pass"]),
        ("self.a = {}", ["pass"]),
        ("self.a.clear()", ["pass"]),
        ("del a[b]", ["pass"]),
        ("self.a = b", []),
    ],
    "dropped": [
        ("a(b)", ["pass"]),
        ("self.a = b", ["pass"]),
        ("a += b", ["pass"]),
        ("a = b", []),
        ("self.a = None", []),
    ],
    "leaving": [
        ("if a:\n        return\n    b()", ["pass"]),
        ("for x in a:\n        continue", ["pass"]),
        ("raise a", ["pass"]),
        ("return a", []),
    ],
    "order": [("a(1)\n    b(2)", ["b(2); a(1)"]), ("a(1)\n    self.c = 1", [])],
}


def test_every_operator_has_cases() -> None:
    assert list(CASES) == list(OPERATORS)


@pytest.mark.parametrize(
    ("kind", "statement", "after"),
    [(kind, statement, after) for kind, cases in CASES.items() for statement, after in cases],
)
def test_what_an_operator_makes(kind: str, statement: str, after: list[str]) -> None:
    source = ModuleSource("m", f"def f(self, a, b):\n    {statement}\n")
    assert [each.after for each in source.mutants() if each.kind == kind] == after


def test_each_mutant_is_another_tree_and_compiles() -> None:
    for cases in CASES.values():
        for statement, _ in cases:
            source = ModuleSource("m", f"def f(self, a, b):\n    {statement}\n")
            trees = [source.mutated(each.number) for each in source.mutants()]
            for tree in trees:
                compile(tree, "m", "exec")
                assert ast.dump(tree) != ast.dump(ast.parse(source.text))
            assert len({ast.dump(tree) for tree in trees}) == len(trees)


@pytest.mark.parametrize(
    "text",
    [
        "def f(self):\n    assert self.a == 1, 'text'\n",
        "def f(self):\n    raise ValueError(1 + self.a)\n",
        "def f(self):\n    _log.info('a', self.a + 1)\n",
        "def f(self):\n    return f'{self.a + 1}'\n",
        "def f(self) -> Literal[1]:\n    'A text.'\n    a: Literal[1]\n",
        "def __repr__(self):\n    return 1\n",
        "class P(Protocol):\n    def f(self):\n        return 1\n",
        "@decorated(1)\ndef f(self):\n    ...\n",
        "__slots__ = (1, 2)\n",
    ],
)
def test_where_a_change_makes_no_sense(text: str) -> None:
    assert [each.name for each in ModuleSource("m", text).mutants() if each.kind != "leaving"] == []


def test_in_a_constructor_no_assignment_is_dropped() -> None:
    text = (
        "class A:\n    def __init__(self, b):\n        self.a = None\n        self.b = b\n        self.c()\n"
    )
    assert [each.before for each in ModuleSource("m", text).mutants()] == ["self.c()"]


def test_a_name_has_no_line_and_is_unique() -> None:
    text = "def f(a):\n    if a:\n        a(1)\n    else:\n        a(1)\n"
    first, moved = ModuleSource("m", text).mutants(), ModuleSource("m", f"import b\n\n{text}").mutants()
    assert [each.name for each in first] == [each.name for each in moved]
    assert [each.line + 2 for each in first] == [each.line for each in moved]
    assert [each.name for each in first if each.kind == "dropped"] == [
        "m f dropped: a(1) => pass",
        "m f dropped: a(1) => pass #2",
    ]


def test_of_a_long_statement_the_part_around_is_shown() -> None:
    others = ", ".join(f"'another word {number}': b" for number in range(20))
    (mutant,) = [
        each
        for each in ModuleSource("m", f"def f(a, b):\n    return {{{others}, 'last': a < b}}\n").mutants()
        if each.kind == "comparison"
    ]
    assert mutant.name == "m f comparison: a < b => a <= b"


def test_there_is_no_mutant_behind_the_last() -> None:
    with pytest.raises(IndexError, match="m has no mutant 1"):
        ModuleSource("m", "def f(a):\n    a()\n").mutated(1)
