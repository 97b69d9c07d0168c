"""`Lookup`: finds the broker that serves a topic, the partitions of a topic, and the topics of a namespace.

It owns the sharing of equal lookups in flight and the timeout of each, redirects included (GAP-25). A
`LookupMeans` asks: over the binary protocol, or over HTTP for a service URL of http:// or https://. A lookup
never retries; the caller does (rule LOOKUP-08).
"""

from collections.abc import Callable
from functools import partial
from typing import Protocol

from ...model.errors import PulsarError, TimedOut, TooManyPartitions
from ...model.service_url import Address
from ...model.topic_name import TopicName
from ..connecting.services import Services
from .binary_lookup import BinaryLookup
from .http_lookup import HttpLookup
from .questions import LookupQuestion, Query, Questions
from .topic_list import TopicList, TopicListing


class LookupMeans(Protocol):
    """A way to ask. Each question is answered or failed once, unless its timeout withdraws it before."""

    def find(self, question: LookupQuestion) -> None:
        """Ask for the broker of a topic; the answer is its logical and physical address."""

    def count(self, question: LookupQuestion) -> None:
        """Ask for the number of partitions of a topic."""

    def list(self, question: LookupQuestion, wanted: TopicList) -> None:
        """Ask for the topics of a namespace; the answer is a `TopicListing`."""


class Lookup:
    """The lookups of one client."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._binary = BinaryLookup(services)
        self._http = HttpLookup(services)
        self._finding: Questions = {}
        self._counting: Questions = {}
        self._listing: Questions = {}

    @property
    def _means(self) -> LookupMeans:
        return self._http if self._services.addresses.service_url.http else self._binary

    def find(
        self,
        topic: TopicName,
        on_found: Callable[[Address, Address], None],
        on_failed: Callable[[PulsarError], None],
        at: Address | None = None,
    ) -> Query:
        """Find the broker of `topic`; `on_found` gets its logical and physical address.

        Equal queries share one request. `at`: the broker to ask in place of the service URL.
        """
        query = Query(on_found, on_failed)
        question = self._join(self._finding, topic, query, at)
        if question is not None:
            means = self._means if at is None else self._binary
            means.find(question)
        return query

    def partitions(
        self,
        topic: TopicName,
        on_known: Callable[[int], None],
        on_failed: Callable[[PulsarError], None],
    ) -> Query:
        """Find the number of partitions of `topic`, 0 for a topic without partitions.

        Equal queries share one request. More than `max_partitions` fail: each costs a producer or consumer.
        """
        most = self._services.config.max_partitions

        def known(partitions: int) -> None:
            if partitions > most:
                text = f"topic {topic} is said to have {partitions} partitions, allowed are {most}"
                on_failed(TooManyPartitions(f"{text} (max_partitions)"))
            else:
                on_known(partitions)

        query = Query(known, on_failed)
        question = self._join(self._counting, topic, query)
        if question is not None:
            self._means.count(question)
        return query

    def topics(
        self,
        wanted: TopicList,
        on_known: Callable[[TopicListing], None],
        on_failed: Callable[[PulsarError], None],
    ) -> Query:
        """Find the topics of a namespace by asking any broker. Equal queries share one request."""
        query = Query(on_known, on_failed)
        question = self._join(self._listing, wanted, query)
        if question is not None:
            self._means.list(question, wanted)
        return query

    def fail_waiting(self, cause: PulsarError) -> None:
        """All links are about to end: fail the lookups that wait for a link."""
        self._http.fail_waiting(cause)

    def _join(
        self, among: Questions, topic: TopicName | TopicList, query: Query, at: Address | None = None
    ) -> LookupQuestion | None:
        """Add a query to the equal lookup in flight; return a new lookup if there is none."""
        question = among.get((topic, at))
        if question is not None:
            question.queries.append(query)
            return None
        question = among[topic, at] = LookupQuestion(among, topic, at)
        question.queries.append(query)
        context = self._services.context
        question.deadline = context.deadlines.slot(partial(self._timed_out, question))
        question.deadline.set(context.now + self._services.durations.operation_timeout)
        return question

    def _timed_out(self, question: LookupQuestion) -> None:
        if question.withdraw is not None:
            question.withdraw()
        seconds = self._services.config.operation_timeout
        question.fail(TimedOut(f"lookup of {question.topic}: no answer within {seconds:g} s"))
