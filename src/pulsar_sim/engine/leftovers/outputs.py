"""The check of one output of a machine: its values have the declared types (INV-L4).

Owns the types of each class of outputs. A driver and an application rely on them, and no type checker sees a
value that a machine has mixed up while it runs. Elements of collections are not looked at.
"""

from dataclasses import fields
from functools import cache
from types import UnionType
from typing import Any

from ..failures import ViolationError


@cache
def _declared(kind: Any) -> tuple[tuple[str, Any], ...]:
    """Return the fields of a class of outputs whose types can be checked."""
    found = ((field.name, field.type) for field in fields(kind))
    return tuple((name, each) for name, each in found if type(each) in (type, UnionType))


def check_output(name: str, output: Any) -> None:
    """INV-L4: a machine has emitted this."""
    for field, kind in _declared(type(output)):  # type: ignore[arg-type]
        value = getattr(output, field)
        if not isinstance(value, kind):
            raise ViolationError("INV-L4", f"{name}: {field} of {output} is no {kind}")
