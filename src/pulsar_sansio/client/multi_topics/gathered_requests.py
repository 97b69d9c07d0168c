"""One request asked of several consumers, answered as one.

Every consumer of the group is asked under the same id and says `RequestDone` or `RequestFailed` in its own
time. When all have, the application is told: the first error where there was one, else what `together` makes
of the results. Where an answer is of the place at which somebody is, it holds until that one is moved, and is
asked for again. It knows what was asked no better than who answers.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ...model.errors import PulsarError
from ..outputs import RequestDone, RequestFailed


def nothing(_results: Mapping[str, Any]) -> None:
    """For a request of which only the end is of interest."""


@dataclass(slots=True)
class Asked:
    """A request, who has not answered it yet, and what came so far."""

    waiting: set[str]
    together: Callable[[Mapping[str, Any]], Any]
    on_over: Callable[[RequestDone | RequestFailed], None]
    ask_again: Callable[[str], None] | None
    results: dict[str, Any] = field(default_factory=dict)
    error: PulsarError | None = None


class GatheredRequests:
    """The requests of one group."""

    __slots__ = ("_asked",)

    def __init__(self) -> None:
        self._asked: dict[int, Asked] = {}

    def ask(
        self,
        request: int,
        names: Iterable[str],
        question: Callable[[], None],
        together: Callable[[Mapping[str, Any]], Any],
        on_over: Callable[[RequestDone | RequestFailed], None],
        ask_again: Callable[[str], None] | None = None,
    ) -> None:
        """`question()` asks everybody in `names` (those of their topics), who may answer at once; `on_over`
        is told the outcome. `ask_again(name)` asks one of them, where the answers hold only for the place at
        which it is.

        Nothing is left of it where `question` raises. Without anybody to ask it is done at once.
        """
        asked = self._asked[request] = Asked(set(names), together, on_over, ask_again)
        try:
            question()
        except Exception:
            del self._asked[request]
            raise
        if not asked.waiting and request in self._asked:
            self._end(request, asked)

    def answered(self, name: str, outcome: RequestDone | RequestFailed) -> None:
        """One of those asked has answered. An answer to nothing that was asked is of no interest."""
        asked = self._asked.get(outcome.request)
        if asked is None or name not in asked.waiting:
            return
        asked.waiting.remove(name)
        if isinstance(outcome, RequestFailed):
            asked.error = asked.error or outcome.error
        else:
            asked.results[name] = outcome.result
        if not asked.waiting:
            self._end(outcome.request, asked)

    def moved(self, name: str) -> None:
        """Somebody has asked for that one to be elsewhere; who has not answered yet looks out for itself."""
        for asked in list(self._asked.values()):
            if asked.ask_again is not None and name in asked.results:
                del asked.results[name]
                asked.waiting.add(name)
                asked.ask_again(name)

    def leave(self, name: str) -> None:
        """That topic is none of the group's any more: what was asked of all goes on without its answer."""
        for request, asked in list(self._asked.items()):
            if name in asked.waiting:
                asked.waiting.remove(name)
                if not asked.waiting:
                    self._end(request, asked)

    def forget(self, request: int) -> None:
        """Nobody wants to know any more."""
        self._asked.pop(request, None)

    def _end(self, request: int, asked: Asked) -> None:
        del self._asked[request]
        if asked.error is not None:
            asked.on_over(RequestFailed(request, asked.error))
        else:
            asked.on_over(RequestDone(request, asked.together(asked.results)))
