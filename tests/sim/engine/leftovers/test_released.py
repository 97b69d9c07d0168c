"""The tables of released state name classes and attributes that exist: other names would be ignored."""

import ast
import importlib
import inspect
import pkgutil
from collections.abc import Iterator
from textwrap import dedent

import pytest

import pulsar_sansio
from pulsar_sim.engine.leftovers import machine_parts, released


def classes() -> Iterator[type]:
    """All classes of the core."""
    for module in pkgutil.walk_packages(pulsar_sansio.__path__, "pulsar_sansio."):
        for each in vars(importlib.import_module(module.name)).values():
            if isinstance(each, type) and each.__module__ == module.name:
                yield each


def attributes_of(kind: type) -> set[str]:
    """The names that a class or its bases declare, or that their methods set on `self`."""
    found: set[str] = set()
    for base in kind.__mro__:
        if base.__module__.startswith("pulsar_sansio."):
            found |= vars(base).keys() | vars(base).get("__annotations__", {}).keys()
            found |= {
                node.attr
                for node in ast.walk(ast.parse(dedent(inspect.getsource(base))))
                if isinstance(node, ast.Attribute)
                and isinstance(node.ctx, ast.Store)
                and isinstance(node.value, ast.Name)
                and node.value.id == "self"
            }
    return found


@pytest.fixture(scope="module")
def known() -> dict[str, set[str]]:
    """The attributes of each class by its name; two classes may have one name."""
    found: dict[str, set[str]] = {}
    for each in classes():
        found.setdefault(each.__name__, set()).update(attributes_of(each))
    return found


TABLES = sorted(name for name, value in vars(released).items() if name.isupper() and isinstance(value, str))


@pytest.mark.parametrize("table", TABLES)
def test_every_attribute_of_a_table_exists(known: dict[str, set[str]], table: str) -> None:
    lines = released.parsed(getattr(released, table))
    missing = [
        f"{name}.{attribute}"
        for name, attributes in lines.items()
        for attribute, value in attributes
        for each in [attribute, *([value[3:]] if isinstance(value, str) and value[:3] == "in:" else [])]
        if each not in known.get(name, ())
    ]
    assert missing == []


def test_every_container_that_may_be_kept_exists(known: dict[str, set[str]]) -> None:
    missing = [
        f"{name}.{attribute}"
        for name, attributes in released.KEPT.items()
        for attribute in attributes.split()
        if attribute not in known.get(name, ())
    ]
    assert missing == []


def test_every_class_that_the_walk_does_not_enter_exists(known: dict[str, set[str]]) -> None:
    assert (machine_parts.SHARED | machine_parts._RECORDS) - known.keys() == set()
