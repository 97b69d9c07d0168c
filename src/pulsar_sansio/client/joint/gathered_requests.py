"""`GatheredRequests`: one request asked of several consumers or producers, answered as one.

Each part is asked under one request id and answers with `RequestDone` or `RequestFailed`. When all parts have
answered, the outcome is the first error, or what `together` makes of the results. An answer about a part's
position holds until the part is moved; then that part is asked again.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ...core.callbacks import ignore
from ...model.errors import PulsarError
from ..outputs import RequestDone, RequestFailed


@dataclass(slots=True)
class Asked:
    """A request, the parts that have not answered, and the answers so far."""

    waiting: set[str]
    together: Callable[[Mapping[str, Any]], Any]
    on_over: Callable[[RequestDone | RequestFailed], None]
    ask_again: Callable[[str], None] | None
    error: PulsarError | None
    results: dict[str, Any] = field(default_factory=dict)


class GatheredRequests:
    """The requests of one consumer or producer. Its parts are known by the names of their topics."""

    __slots__ = ("_asked",)

    def __init__(self) -> None:
        self._asked: dict[int, Asked] = {}

    def ask(
        self,
        request: int,
        names: Iterable[str],
        question: Callable[[], None],
        on_over: Callable[[RequestDone | RequestFailed], None],
        together: Callable[[Mapping[str, Any]], Any] = ignore,
        ask_again: Callable[[str], None] | None = None,
        error: PulsarError | None = None,
    ) -> None:
        """Call `question()`, which asks all parts in `names`; they may answer at once. `on_over` is given the
        outcome.

        `ask_again(name)` asks one part whose answer held only for its position. `error`: a failure that is
        known before the first answer. When `question` raises, the request is discarded. A request without
        parts is over at once.
        """
        asked = self._asked[request] = Asked(set(names), together, on_over, ask_again, error)
        try:
            question()
        except Exception:
            del self._asked[request]
            raise
        if not asked.waiting and request in self._asked:
            self._finish(request, asked)

    def answered(self, name: str, outcome: RequestDone | RequestFailed) -> None:
        """One part has answered. An answer that no request waits for is ignored."""
        asked = self._asked.get(outcome.request)
        if asked is None or name not in asked.waiting:
            return
        asked.waiting.remove(name)
        if isinstance(outcome, RequestFailed):
            asked.error = asked.error or outcome.error
        else:
            asked.results[name] = outcome.result
        if not asked.waiting:
            self._finish(outcome.request, asked)

    def moved(self, name: str) -> None:
        """The application moves one part: its answers about its position do not hold any more. A part that
        has not answered yet sees to that itself."""
        for asked in list(self._asked.values()):
            if asked.ask_again is not None and name in asked.results:
                del asked.results[name]
                asked.waiting.add(name)
                asked.ask_again(name)

    def detach(self, name: str) -> None:
        """One part has left: requests go on without its answer."""
        for request, asked in list(self._asked.items()):
            if name in asked.waiting:
                asked.waiting.remove(name)
                if not asked.waiting:
                    self._finish(request, asked)

    def discard(self, request: int) -> bool:
        """Give up a request whose outcome the application does not want; False when there is none."""
        return self._asked.pop(request, None) is not None

    def _finish(self, request: int, asked: Asked) -> None:
        del self._asked[request]
        if asked.error is not None:
            asked.on_over(RequestFailed(request, asked.error))
        else:
            asked.on_over(RequestDone(request, asked.together(asked.results)))
