"""Give a client calls that it has to refuse (INV-N17).

Owns the comparison: a call raises the declared error, and the client then has the outputs, the deadline and
the memory that it had before.
"""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from ...engine.failures import ViolationError

if TYPE_CHECKING:
    from pulsar_sansio.client.client import Client

Call: TypeAlias = "Callable[[Client, int, int], object]"
"""A call to a client: (client, now, handle)."""

ANY_CAUSE = object()
"""Stands for any cause of an error."""


def check_refusals(
    name: str,
    client: "Client",
    now: int,
    handle: int,
    calls: Mapping[str, Call],
    wanted: type[Exception],
    cause: object = ANY_CAUSE,
) -> None:
    """Give the client all calls. Raises `ViolationError` unless each raises an error of exactly the wanted
    type, with its cause, and changes nothing."""
    before = _image(client)
    for what, call in calls.items():
        try:
            result: Any = call(client, now, handle)
        except Exception as error:
            if type(error) is not wanted:
                _fail(name, what, f"raises {error!r}, not {wanted.__name__}")
            if not str(error):
                _fail(name, what, f"raises {wanted.__name__} without a text")
            if cause is not ANY_CAUSE and error.__cause__ is not cause:
                _fail(name, what, f"raises an error because of {error.__cause__!r}, not {cause!r}")
        else:
            _fail(name, what, f"gives {result!r}, not {wanted.__name__}")
        if _image(client) != before:
            _fail(name, what, "is refused and changes the client")


def _image(client: "Client") -> tuple[object, ...]:
    return (
        client.has_output and client.outputs[-1],
        len(client.outputs),
        client.next_deadline(),
        client.memory_held,
    )


def _fail(name: str, what: str, how: str) -> None:
    raise ViolationError("INV-N17", f"{name}: {what} {how}")
