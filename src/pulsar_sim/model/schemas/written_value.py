"""`WrittenValue`: the value of a message, as its producer wrote it."""

from typing import Any, NamedTuple

from .definition import Definition


class WrittenValue(NamedTuple):
    """A value, and the definition that its producer has registered."""

    definition: Definition
    value: Any
