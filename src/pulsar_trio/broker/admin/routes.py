"""The table of paths: which function answers which method of which path.

The table also has the paths of Pulsar that this broker lacks; it answers them with 501 and their name. A path
that Pulsar lacks is 404, and a method that a path lacks is 405.
"""

from collections.abc import Awaitable, Callable
from typing import Any, Protocol

from pulsar_sansio import Broker

from .messages import Answer, Refused, Request


class AdministeredBroker(Protocol):
    """The broker as the handlers of requests see it."""

    @property
    def machine(self) -> Broker:
        """The machine of the broker; handlers only read it."""

    def now(self) -> int:
        """Return the present moment of the machine's clock, in nanoseconds."""

    def command(self, command: Callable[..., Any], *arguments: object) -> Any:
        """Run a command now. When this returns, its consequences are done, and recorded for the store."""


Handler = Callable[[AdministeredBroker, Request], Answer]

Route = tuple[str, str, Handler]
"""A method, a path with `{names}` in it, and the handler that answers."""


class Table:
    """Routes by the number of their parts. `{name}` matches any one part. `no_such_path` answers the rest."""

    def __init__(
        self,
        routes: list[Route],
        no_such_path: Callable[[Request], Refused],
    ) -> None:
        self._no_such_path = no_such_path
        self._by_length: dict[int, dict[tuple[str, ...], dict[str, Handler]]] = {}
        for method, path, handler in routes:
            parts = tuple(path.strip("/").split("/"))
            methods = self._by_length.setdefault(len(parts), {}).setdefault(parts, {})
            assert method not in methods, f"{method} {path} is there twice"
            methods[method] = handler

    def find(self, request: Request) -> Handler:
        """Find the handler; set the request's parameters. Raises `Refused` (404), `MethodNotAllowed`."""
        allowed: dict[str, None] = {}
        method = "GET" if request.method == "HEAD" else request.method
        for parts in self._matching(request.path):
            methods = self._by_length[len(parts)][parts]
            handler = methods.get(method)
            if handler is not None:
                request.parameters = {
                    part[1:-1]: given
                    for part, given in zip(parts, request.path, strict=True)
                    if part.startswith("{")
                }
                return handler
            allowed.update(dict.fromkeys(methods))
        if allowed:
            raise MethodNotAllowed(request.method, sorted(allowed))
        raise self._no_such_path(request)

    def _matching(self, path: tuple[str, ...]) -> list[tuple[str, ...]]:
        """Templates that fit, those with fewer names first."""
        found = [
            parts
            for parts in self._by_length.get(len(path), ())
            if all(part.startswith("{") or part == given for part, given in zip(parts, path, strict=True))
        ]
        return sorted(found, key=lambda parts: sum(part.startswith("{") for part in parts))


class NotYet(Exception):
    """The request cannot be answered now. `changed`: waits until the machine has done something.

    `limit`: the request is asked again at the latest this many seconds after it came.
    """

    def __init__(self, changed: Callable[[], Awaitable[None]], limit: float) -> None:
        super().__init__()
        self.changed = changed
        self.limit = limit


class MethodNotAllowed(Refused):
    def __init__(self, method: str, allowed: list[str]) -> None:
        super().__init__(405, f"Method Not Allowed: {method}, there are {', '.join(allowed)}")
        self.allowed = [*allowed, *(["HEAD"] if "GET" in allowed else []), "OPTIONS"]


def not_implemented(path: str) -> Handler:
    """Answers 501 and names what is missing."""

    def handler(broker: AdministeredBroker, request: Request) -> Answer:
        raise Refused(501, f"{request.method} {path} is not implemented by this broker")

    return handler


def both_domains(routes: list[Route]) -> list[Route]:
    """`{domain}` is one of two words: each route once for each of them."""
    return [
        (method, path.replace("{domain}", domain), _with_domain(domain, handler))
        for method, path, handler in routes
        for domain in ("persistent", "non-persistent")
    ]


def _with_domain(domain: str, handler: Handler) -> Handler:
    def with_domain(broker: AdministeredBroker, request: Request) -> Answer:
        request.parameters["domain"] = domain
        return handler(broker, request)

    return with_domain
