"""Names of other Pulsar clients that this one has not: using one raises an error with its name here.

Python calls `__getattr__` of a class for a missing attribute, but a class that has one pays for it at every
present attribute. So each known name is a descriptor that raises: it costs nothing until it is used.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from .errors import UnknownName

ClassT = TypeVar("ClassT", bound=type)


def did_you_mean(hint: str) -> str:
    """`hint`, a name of ours or a clause, as the end of an error's text."""
    return f"did you mean {hint!r}?" if hint.isidentifier() else hint


class UnknownAttribute:
    """A descriptor that raises `UnknownName`, which is an `AttributeError`, when it is read."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def __get__(self, instance: object, owner: type) -> "UnknownAttribute":
        """Raise the error; for a class, as documentation tools ask for it, return the descriptor itself."""
        if instance is None:
            return self
        raise UnknownName(f"{type(instance).__name__} {self._text}")


def unknown_names(names: Mapping[str, str]) -> Callable[[ClassT], ClassT]:
    """Class decorator: each name of the mapping raises an error with its hint, a name or a clause. Type
    checkers and `dir` do not see these names."""

    def decorate(cls: ClassT) -> ClassT:
        for name, hint in names.items():
            setattr(cls, name, UnknownAttribute(f"has no {name!r}; {did_you_mean(hint)}"))

        def listed(self: object) -> Iterable[str]:
            return [name for name in object.__dir__(self) if not _is_unknown(type(self), name)]

        cls.__dir__ = listed  # type: ignore[assignment]
        return cls

    return decorate


def _is_unknown(cls: type, name: str) -> bool:
    found = next((each.__dict__[name] for each in cls.__mro__ if name in each.__dict__), None)
    return isinstance(found, UnknownAttribute)
