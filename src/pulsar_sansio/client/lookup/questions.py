"""`LookupQuestion`: one lookup in flight, with the queries that share it, until its one outcome."""

from collections.abc import Callable
from typing import Any, Protocol, TypeAlias

from ...core.deadlines import Slot
from ...model.errors import PulsarError
from ...model.service_url import Address
from ...model.topic_name import TopicName
from .topic_list import TopicList


class Withdrawable(Protocol):
    """A question that its asker can withdraw."""

    def cancel(self) -> None: ...


class Query:
    """A caller's request for the result of a lookup."""

    __slots__ = ("cancelled", "on_done", "on_failed")

    def __init__(self, on_done: Callable[..., None], on_failed: Callable[[PulsarError], None]) -> None:
        self.on_done = on_done
        self.on_failed = on_failed
        self.cancelled = False

    def cancel(self) -> None:
        """Prevent both callbacks."""
        self.cancelled = True


class LookupQuestion:
    """One lookup in flight, with the queries that share it.

    A query that joins late shares the lookup's deadline, so its timeout may come early. Its caller retries,
    as after any failure (LOOKUP-08).
    """

    __slots__ = (
        "_among",
        "at",
        "authoritative",
        "deadline",
        "over",
        "queries",
        "redirects",
        "topic",
        "withdraw",
    )

    deadline: Slot
    """The timeout of the lookup, with all its connections, waits, requests and redirects."""

    def __init__(self, among: "Questions", topic: TopicName | TopicList, at: Address | None) -> None:
        self._among = among
        """The registry in which equal queries find this lookup until it is over."""
        self.topic = topic
        self.at = at
        """The cluster to which the topic has migrated; None to ask the service URL."""
        self.queries: list[Query] = []
        self.redirects = 0
        self.authoritative = False
        self.withdraw: Callable[[], None] | None = None
        """Discards the pending request; None when no request is pending."""
        self.over = False
        """True once answered or failed; later results are then ignored."""

    def answer(self, *result: Any) -> None:
        """The lookup is over with this result."""
        if self.over:
            return
        self._end()
        for query in self.queries:
            if not query.cancelled:
                query.on_done(*result)

    def fail(self, error: PulsarError) -> None:
        """The lookup is over with this error."""
        if self.over:
            return
        self._end()
        for query in self.queries:
            if not query.cancelled:
                query.on_failed(error)

    def _end(self) -> None:
        self.over = True
        self.deadline.clear()
        del self._among[self.topic, self.at]


Questions: TypeAlias = dict[tuple[TopicName | TopicList, Address | None], LookupQuestion]
