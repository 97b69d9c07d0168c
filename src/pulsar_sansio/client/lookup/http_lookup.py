"""`HttpLookup`: asks brokers over HTTP, for service URLs of http:// and https://.

The brokers that it finds speak the binary protocol: pulsar:// for http://, and pulsar+ssl:// for https://.
"""

from collections.abc import Callable
from functools import partial
from typing import Any
from urllib.parse import quote

from ...model.config import TopicDomain
from ...model.errors import (
    BrokerAddressRefused,
    InvalidServiceUrl,
    NotSupported,
    PulsarError,
    RemoteProtocolError,
    ServiceNotReady,
    TimedOut,
    TooManyRedirects,
)
from ...model.http_url import HttpUrl
from ...model.topic_name import TopicName
from ..connecting.lookup_queue import LookupQueue
from ..connecting.services import Services
from .http_answer import HttpAnswer
from .http_exchange import HttpExchange, check_method
from .questions import LookupQuestion
from .topic_list import TopicList, TopicListing

MAX_EXCHANGES = 16
"""The number of exchanges at a time: each has a connection of its own, which costs the broker memory."""

MAX_ANSWER = 64 * 1024
"""Bytes of the largest answer to a lookup, or to a request for partitions: these have some hundred bytes."""

MAX_LISTING = 16 * 1024 * 1024
"""Bytes of the largest list of topics; a list over the binary protocol has at most 5 MiB by default."""

_MODES = {
    TopicDomain.PERSISTENT: "PERSISTENT",
    TopicDomain.NON_PERSISTENT: "NON_PERSISTENT",
    TopicDomain.ALL: "ALL",
}


class HttpLookup:
    """The lookups over HTTP of one client."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._method = services.config.authentication_method
        self._queue = LookupQueue(MAX_EXCHANGES)

    def find(self, question: LookupQuestion) -> None:
        """Ask `/lookup/v2` for the broker of a topic, and follow the redirects."""
        target = f"/lookup/v2/topic/{_path(question.topic)}?authoritative=false"
        listener = self._services.config.listener_name
        if listener is not None:
            target += f"&listenerName={quote(listener, safe='')}"
        self._submit(question, target, self._found, MAX_ANSWER)

    def count(self, question: LookupQuestion) -> None:
        """Ask for the partitions of a topic."""
        create = "true" if self._services.config.create_topics else "false"
        target = f"/admin/v2/{_path(question.topic)}/partitions?checkAllowAutoCreation={create}"
        self._submit(question, target, _partitions, MAX_ANSWER)

    def list(self, question: LookupQuestion, wanted: TopicList) -> None:
        """Ask for the topics of a namespace. The answer is the whole list: brokers filter none over HTTP."""
        target = f"/admin/v2/namespaces/{quote(wanted.namespace)}/topics?mode={_MODES[wanted.domain]}"
        self._submit(question, target, _listing, MAX_LISTING)

    def fail_waiting(self, cause: PulsarError) -> None:
        """Fail the lookups that wait for their turn."""
        self._queue.fail(cause)

    # --- one lookup ---

    def _submit(
        self,
        question: LookupQuestion,
        target: str,
        result: Callable[[Any], tuple[Any, ...]],
        limit: int,
    ) -> None:
        """Ask when the question has its turn. `result` makes the answer's values of the JSON."""
        try:
            check_method(self._method)
        except NotSupported as error:
            question.fail(error)
            return

        def start() -> bool:
            if question.over:
                return False
            addresses = self._services.addresses
            url = HttpUrl(addresses.service_url.tls, addresses.service_address, target)
            self._step(question, url, result, limit)
            return True

        self._queue.submit(start, question.fail)

    def _step(
        self,
        question: LookupQuestion,
        url: HttpUrl,
        result: Callable[[Any], tuple[Any, ...]],
        limit: int,
    ) -> None:
        """Ask one host. A redirect keeps the question's turn."""

        def answered(answer: HttpAnswer) -> None:
            question.withdraw = None
            try:
                if answer.redirects:
                    self._step(question, self._redirected(question, answer), result, limit)
                    return
                found = result(answer.json())
            except PulsarError as error:
                if isinstance(error, ServiceNotReady):
                    self._ask_next_host(url)
                self._queue.answered()
                question.fail(_of(question, error))
                return
            self._queue.answered()
            question.answer(*found)

        def failed(error: PulsarError) -> None:
            question.withdraw = None
            self._ask_next_host(url)
            self._queue.answered()
            question.fail(error)

        exchange = HttpExchange(self._services, url, answered, failed, method=self._method, limit=limit)
        question.withdraw = partial(self._withdraw, exchange, url)

    def _withdraw(self, exchange: HttpExchange, url: HttpUrl) -> None:
        """Discard a request that was not answered in time."""
        exchange.abandon(TimedOut("the lookup was not answered in time"))
        self._ask_next_host(url)
        self._queue.answered()

    def _ask_next_host(self, url: HttpUrl) -> None:
        self._services.addresses.could_not_connect(url.address, url.address)

    def _redirected(self, question: LookupQuestion, answer: HttpAnswer) -> HttpUrl:
        """Return the URL that a redirect leads to.

        Raises `TooManyRedirects`, `RemoteProtocolError` for an unusable URL, and `BrokerAddressRefused` for
        another scheme or a forbidden host: the next request carries the credentials there.
        """
        question.redirects += 1
        if question.redirects > self._services.config.max_lookup_redirects:
            raise TooManyRedirects(f"lookup of {question.topic} was redirected {question.redirects} times")
        try:
            url = answer.url.joined(answer.location)
        except InvalidServiceUrl as error:
            raise RemoteProtocolError(f"a redirect of {answer.url.address}: {error}") from error
        addresses = self._services.addresses
        if url.tls != addresses.service_url.tls:
            scheme = addresses.service_url.scheme
            raise BrokerAddressRefused(f"a redirect to {url}, but this client asks by {scheme}:// only")
        addresses.check_host(url.address)
        return url

    def _found(self, data: Any) -> tuple[Any, ...]:
        """Return the broker's logical and physical address."""
        addresses = self._services.addresses
        names = ("brokerUrlTls",) if addresses.service_url.tls else ("brokerUrl", "nativeUrl")
        found = data if isinstance(data, dict) else {}
        url = next((found[name] for name in names if isinstance(found.get(name), str)), "")
        try:
            logical = addresses.cluster_at(url)
        except RemoteProtocolError as wrong:
            raise type(wrong)(f"{names[0]} of the answer: {wrong}") from wrong
        return logical, addresses.physical_address(logical)


def _path(topic: object) -> str:
    assert isinstance(topic, TopicName)
    parts = (topic.domain, topic.tenant, topic.namespace, topic.local)
    return "/".join(quote(part, safe="") for part in parts)


def _partitions(data: Any) -> tuple[Any, ...]:
    partitions = data.get("partitions") if isinstance(data, dict) else None
    if isinstance(partitions, bool) or not isinstance(partitions, int) or partitions < 0:
        raise RemoteProtocolError("the answer has no number of partitions")
    return (partitions,)


def _listing(data: Any) -> tuple[Any, ...]:
    if not isinstance(data, list) or not all(isinstance(name, str) for name in data):
        raise RemoteProtocolError("the answer is no list of topics")
    return (TopicListing(tuple(data), changed=True, filtered=False, hash=None),)


def _of(question: LookupQuestion, error: PulsarError) -> PulsarError:
    """Return the error of an unusable answer with the lookup in its text; other errors name the host."""
    if isinstance(error, RemoteProtocolError):
        return type(error)(f"lookup of {question.topic}: {error}")
    return error
