"""Bugs of lookups over HTTP: redirects, refusals, the turns of requests and their links."""

import json
from typing import Any

from pulsar_sansio.client.connecting.lookup_queue import LookupQueue
from pulsar_sansio.client.lookup.http_answer import HttpAnswer
from pulsar_sansio.client.lookup.http_exchange import HttpExchange
from pulsar_sansio.client.lookup.http_lookup import HttpLookup
from pulsar_sansio.client.lookup.lookup import Lookup
from pulsar_sansio.client.outputs import Disconnect
from pulsar_sansio.model.http_url import HttpUrl
from pulsar_sansio.model.service_url import Address

from .planted_bug import Patches, bug
from .preconditions import http_lookups as needs


@bug("own", caught_by=("INV-N16",), needs=[needs.web])
def the_scheme_of_the_service_url_is_ignored(patches: Patches) -> None:
    """A client with an HTTP service URL asks over the binary protocol."""
    patches.replace(Lookup, "_means", property(lambda self: self._binary))


@bug("own", caught_by=("INV-N16",), needs=[needs.crowd])
def requests_do_not_wait_for_their_turn(patches: Patches) -> None:
    """A client has as many requests over HTTP at a time as its applications ask."""

    def begin(original: Any, self: HttpLookup, services: Any) -> None:
        original(self, services)
        self._queue = LookupQueue(1_000)

    patches.around(HttpLookup, "__init__", begin)


@bug("own", caught_by=("INV-N5", "INV-N11", "INV-N1"), needs=[needs.refusals])
def a_failed_request_keeps_its_turn(patches: Patches) -> None:
    """A request that fails counts as open for ever: after sixteen of them the client asks nothing more."""

    def ask_next_host(original: Any, self: HttpLookup, url: HttpUrl) -> None:
        self._queue._in_flight += 1
        original(self, url)

    patches.around(HttpLookup, "_ask_next_host", ask_next_host)


@bug("own", caught_by=("exception",), needs=[needs.garbage])
def an_answer_without_json_raises(patches: Patches) -> None:
    """An answer that is no JSON raises an error that no caller expects."""
    patches.replace(HttpAnswer, "json", lambda self: json.loads(self.body.decode()))


@bug("own", caught_by=("INV-N5",), needs=[needs.redirects])
def a_redirect_is_not_followed(patches: Patches) -> None:
    """The client asks the first host again, until it has been redirected too often."""

    def redirected(original: Any, self: HttpLookup, question: Any, answer: HttpAnswer) -> HttpUrl:
        original(self, question, answer)
        return answer.url

    patches.around(HttpLookup, "_redirected", redirected)


@bug("own", caught_by=("INV-N16", "INV-N5", "INV-N11"), needs=[needs.web])
def an_exchange_leaves_its_link_open(patches: Patches) -> None:
    """A complete answer does not end the link, which waits for the server."""

    def end(original: Any, self: HttpExchange, reason: str, **options: Any) -> None:
        outputs = self._context.outputs
        before = len(outputs)
        original(self, reason, **options)
        kept = [each for each in list(outputs)[before:] if not isinstance(each, Disconnect)]
        while len(outputs) > before:
            outputs.pop()
        outputs.extend(kept)

    patches.around(HttpExchange, "_end", end)


@bug("own", caught_by=("INV-N16",), needs=[needs.web])
def a_request_names_the_default_port(patches: Patches) -> None:
    """The Host header has the port 80, whatever the service URL says."""

    def ask(original: Any, self: HttpExchange, credentials: Any) -> None:
        physical, self.physical = self.physical, Address(self.physical.host, 80)
        original(self, credentials)
        self.physical = physical

    patches.around(HttpExchange, "_ask", ask)
