"""`RetriedLookup`: one lookup, repeated until its one outcome.

The lookup is repeated until the operation timeout after failures that the refusal policy retries. Then `done`
or `failed` is called. With `answers` it is repeated without a limit until one of these errors is the answer.
Producers and consumers use `attachment` for lookups of their own topics.
"""

from collections.abc import Callable
from typing import Any

from ...core.backoff import Backoff
from ...model.errors import PulsarError, TimedOut
from ..connecting.refusal_policy import Decision, decide
from ..connecting.services import Services
from ..outputs import Retrying
from .questions import Withdrawable


class RetriedLookup:
    """Repeats a lookup until the operation timeout (CONN-13).

    `handle`: the request or consumer that waits for the result. `what`: the wanted result in words.
    `ask(on_done, on_failed)` makes one attempt.
    """

    __slots__ = (
        "_answers",
        "_ask",
        "_backoff",
        "_context",
        "_deadline",
        "_done",
        "_failed",
        "_handle",
        "_last_failure",
        "_query",
        "_retry",
        "_services",
        "_what",
    )

    def __init__(
        self,
        services: Services,
        handle: int,
        what: str,
        ask: Callable[[Callable[..., None], Callable[[PulsarError], None]], Withdrawable],
        done: Callable[[Any], None],
        failed: Callable[[PulsarError], None],
        answers: tuple[type[PulsarError], ...] | None = None,
    ) -> None:
        context = services.context
        durations = services.durations
        self._handle = handle
        self._what = what
        self._ask = ask
        self._answers = answers
        self._done = done
        self._failed = failed
        self._services = services
        self._context = context
        self._backoff = Backoff(durations.initial_backoff, durations.max_backoff, context.rng)
        self._query: Withdrawable | None = None
        self._last_failure: PulsarError | None = None
        self._retry = context.deadlines.slot(self.ask)
        self._deadline = context.deadlines.slot(self._timed_out)
        if answers is None:
            self._deadline.set(context.now + durations.operation_timeout)

    def ask(self) -> None:
        """Make one attempt."""
        self._query = self._ask(self._known, self._not_known)

    def pause(self) -> None:
        """Make no attempt until `ask` is called; the time goes on."""
        if self._query is not None:
            self._query.cancel()
        self._retry.clear()

    def cancel(self) -> None:
        """Discard the lookup; neither callback will be called."""
        self.pause()
        self._deadline.clear()

    def fail(self, error: PulsarError) -> None:
        """End with this error as the outcome."""
        self.cancel()
        self._failed(error)

    def _known(self, result: Any) -> None:
        self.cancel()
        self._done(result)

    def _not_known(self, error: PulsarError) -> None:
        if self._is_repeated_after(error):
            self._last_failure = error
            now = self._context.now
            wait = self._backoff.next(now)
            self._retry.set(now + wait)
            self._context.emit(Retrying(self._handle, self._what, error, wait, False))
        else:
            self.fail(error)

    def _is_repeated_after(self, error: PulsarError) -> bool:
        if self._answers is None:
            return decide(error, was_attached=False) is Decision.RETRY
        return not isinstance(error, self._answers)

    def _timed_out(self) -> None:
        seconds = self._services.config.operation_timeout
        last = self._last_failure
        why = f"; the last attempt: {last}" if last is not None else ""
        error = TimedOut(f"{self._what} were not known within {seconds:g} s{why}")
        error.__cause__ = last
        self.fail(error)
