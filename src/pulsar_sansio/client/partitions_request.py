"""`PartitionsRequest`: the command `partitions`, from being asked to its one outcome.

It asks the lookup again after failures that may pass, until the operation timeout, and emits `RequestDone` or
`RequestFailed`. What a producer or consumer finds out about its own topic is the business of `attachment`.
"""

from collections.abc import Callable

from ..core.backoff import Backoff
from ..model.errors import PulsarError, TimedOut
from ..model.topic_name import TopicName
from .lookup import Query
from .outputs import RequestDone, RequestFailed
from .services import ClientContext, Services


class PartitionsRequest:
    """One `partitions` command: asks again until the operation timeout (CONN-13)."""

    __slots__ = (
        "_backoff",
        "_context",
        "_deadline",
        "_ended",
        "_last_failure",
        "_query",
        "_request",
        "_retry",
        "_services",
        "_topic",
    )

    def __init__(
        self,
        context: ClientContext,
        services: Services,
        request: int,
        topic: TopicName,
        ended: Callable[[int], None],
    ) -> None:
        durations = services.durations
        self._request = request
        self._topic = topic
        self._ended = ended
        """`ended(request)`: it is answered, has failed or was cancelled."""
        self._services = services
        self._context = context
        self._backoff = Backoff(durations.initial_backoff, durations.max_backoff, context.rng)
        self._query: Query | None = None
        self._last_failure: PulsarError | None = None
        self._retry = context.deadlines.slot(self.ask)
        self._deadline = context.deadlines.slot(self._timed_out)
        self._deadline.set(context.now + durations.operation_timeout)

    def ask(self) -> None:
        """Begin, or begin again."""
        self._query = self._services.lookup.partitions(self._topic, self._known, self._failed)

    def cancel(self) -> None:
        """Nobody wants to know any more."""
        if self._query is not None:
            self._query.cancel()
        self._retry.clear()
        self._deadline.clear()
        self._ended(self._request)

    def fail(self, error: PulsarError) -> None:
        """Tell `error` as the outcome."""
        self.cancel()
        self._context.emit(RequestFailed(self._request, error))

    def _known(self, partitions: int) -> None:
        self.cancel()
        self._context.emit(RequestDone(self._request, partitions))

    def _failed(self, error: PulsarError) -> None:
        if error.retryable:
            self._last_failure = error
            now = self._context.now
            self._retry.set(now + self._backoff.next(now))
        else:
            self.fail(error)

    def _timed_out(self) -> None:
        seconds = self._services.config.operation_timeout
        last = self._last_failure
        why = f"; the last attempt: {last}" if last is not None else ""
        error = TimedOut(f"the partitions of {self._topic} were not known within {seconds:g} s{why}")
        error.__cause__ = last
        self.fail(error)
