"""The HTTP side of the broker: connections, h11, limits of size and time.

A slow or hostile client costs one task, some kilobytes and nothing else. Requests are bounded in size and
time, connections in number, and unread answers in bytes. The broker handles one request at a time, so that
the Pulsar side has its turn after each. A handler never waits; its answer waits for the store. h11 parses the
HTTP messages; the other modules define what they mean.
"""

import ssl
from collections.abc import Collection, Sequence
from contextlib import suppress
from email.utils import formatdate
from typing import Protocol, TypeAlias

import h11
import trio

from pulsar_sansio import LocalProtocolError, PulsarError
from pulsar_security import common_name

from . import (
    access,
    cluster,
    entries,
    missing,
    schemas,
    subscriptions,
    topics,
    transactions,
)
from .control import Control
from .messages import Answer, Refused, Request, answer_to, phrase, refusal
from .metrics import broker_stats, metrics
from .namespaces import (
    bundles,
    namespaces,
    permissions,
    policies,
    resource_groups,
    schema_strategy,
    subscription_rates,
    unset,
)
from .routes import AdministeredBroker, MethodNotAllowed, NotYet, Table
from .status import status
from .storage import elsewhere, ledgers, producing

MAX_HEADER_BYTES = 16 * 1024
"""The limit for the request line and all header fields together. Jetty, which Pulsar uses, takes 8 kB."""

MAX_BODY_BYTES = 256 * 1024
"""The largest body that makes sense has the properties of a topic: 64 K characters."""

MAX_CONNECTIONS = 200
"""The broker answers further connections with 503 and closes them, and those by HTTPS without an answer: a
client may let the handshake wait."""

MAX_UNSENT_BYTES = 64 * 1024 * 1024
"""The limit for all answers that clients have not read yet. Beyond it the broker answers 503. The stats of
ten thousand partitions are ten million bytes."""

REQUEST_TIME = 30.0
"""Seconds for a request to arrive, the wait for its first byte included. The client has as long to read the
answer."""

LINGER = 0.5
"""Seconds in which the broker reads and drops further bytes of a client, so that the client can read its
answer."""

READ_SIZE = 16 * 1024

HEADERS = (
    b"host",
    b"origin",
    b"sec-fetch-site",
    b"authorization",
    b"x-pulsar-auth-method-name",
    b"x-original-principal",
)
"""The fields of a request that access to the administration depends on."""

READING = ("GET", "HEAD", "OPTIONS")
"""The methods of requests that change nothing."""

ROUTES = [
    *topics.ROUTES,
    *subscriptions.ROUTES,
    *namespaces.ROUTES,
    *policies.ROUTES,
    *unset.ROUTES,
    *subscription_rates.ROUTES,
    *schema_strategy.ROUTES,
    *bundles.ROUTES,
    *resource_groups.ROUTES,
    *permissions.ROUTES,
    *entries.ROUTES,
    *ledgers.ROUTES,
    *elsewhere.ROUTES,
    *producing.ROUTES,
    *schemas.ROUTES,
    *transactions.ROUTES,
    *cluster.ROUTES,
    *metrics.ROUTES,
    *broker_stats.ROUTES,
    *status.ROUTES,
    *missing.ROUTES,
]

TABLE = Table(ROUTES, missing.no_such_path)


class StoringBroker(AdministeredBroker, Protocol):
    """A broker whose store may need time."""

    async def flush(self) -> None:
        """Wait until the store has everything recorded so far. Raises `StoreFailed`."""


def perform(broker: AdministeredBroker, request: Request, table: Table | None = None) -> Answer:
    """Answer one whole request by the table, None for that of every broker. Raises `NotYet`."""
    table = TABLE if table is None else table
    try:
        roles = access.identify(broker, request)
        if request.method == "OPTIONS":
            return _options(request, table)
        handler = table.find(request)
        access.authorize(broker, roles, request)
        return handler(broker, request)
    except MethodNotAllowed as error:
        answer = refusal(error.status, error.reason)
        answer.headers.append(("Allow", ", ".join(error.allowed)))
        return answer
    except Refused as error:
        return refusal(error.status, error.reason)
    except LocalProtocolError as error:
        return answer_to(error)


def _options(request: Request, table: Table) -> Answer:
    try:
        table.find(request)
    except MethodNotAllowed as error:
        allowed = ", ".join(error.allowed)
        return Answer(200, allowed.encode(), "text/plain", [("Allow", allowed)])
    raise AssertionError("no route has the method OPTIONS")


_CONTINUE = h11.InformationalResponse(status_code=100, headers=[], reason=b"Continue")


HttpStream: TypeAlias = "trio.SocketStream | trio.SSLStream[trio.SocketStream]"


def https_stream(stream: trio.SocketStream, context: ssl.SSLContext) -> HttpStream:
    """Return the server's side of HTTPS over an accepted connection; reading makes the handshake."""
    return trio.SSLStream(stream, context, server_side=True, https_compatible=True)


class AdminListener:
    """Serves the administration of one broker on accepted connections.

    `names`: the broker's hosts. `control`: serve its paths, too.
    """

    def __init__(self, broker: StoringBroker, names: Collection[str], control: Control | None = None) -> None:
        self._broker = broker
        self._table = None
        if control is not None:
            self._table = Table([*ROUTES, *control.routes], missing.no_such_path)
        self._names = frozenset(name.lower() for name in names)
        self._connections = 0
        self._turn = trio.Lock()
        self.unsent = 0
        """Bytes of answers that wait to be read."""

    async def perform(self, request: Request) -> Answer:
        """Answer a request when it has its turn, and a change when it is stored. An exception of a handler is
        a bug, answered with 500.

        A request that cannot be answered yet has its next turn when the machine has done something.
        Answers 503 when too many answers are unread.
        """
        began = trio.current_time()
        while True:
            request.waited = trio.current_time() - began
            try:
                async with self._turn:
                    access.check_site(request, self._names)
                    answer = perform(self._broker, request, self._table)
                if request.method not in READING:
                    await self._broker.flush()
                break
            except NotYet as wait:
                with trio.move_on_at(began + wait.limit):
                    await wait.changed()
            except Refused as error:
                return refusal(error.status, error.reason)
            except PulsarError as error:
                return refusal(500, str(error))
            except Exception as error:
                reason = f"a bug in the administration, please report it: {error!r}"
                return refusal(500, reason[:500])
        if self.unsent + len(answer.body) > MAX_UNSENT_BYTES:
            return refusal(503, "too many answers wait for their clients to read them")
        return answer

    async def serve(self, stream: HttpStream) -> None:
        """One connection, to its end. Raises nothing that sockets or clients cause."""
        self._connections += 1
        try:
            async with stream:
                connection = _Connection(stream, self)
                with suppress(trio.BrokenResourceError, trio.ClosedResourceError):
                    if self._connections <= MAX_CONNECTIONS:
                        await connection.run()
                    elif not isinstance(stream, trio.SSLStream):
                        await connection.refuse(503, "too many connections")
        finally:
            self._connections -= 1


class _Connection:
    def __init__(self, stream: HttpStream, listener: AdminListener) -> None:
        self._stream = stream
        self._listener = listener
        self._http = h11.Connection(h11.SERVER, max_incomplete_event_size=MAX_HEADER_BYTES)

    async def run(self) -> None:
        """Request after request, until one side has had enough."""
        while True:
            request: Request | None = None
            try:
                with trio.move_on_after(REQUEST_TIME) as time:
                    request = await self._next_request()
                if time.cancelled_caught:
                    if self._http.their_state is h11.IDLE and not self._http.trailing_data[0]:
                        return
                    await self.refuse(408, f"the request did not arrive in {REQUEST_TIME:g} s")
                    return
                if request is None:
                    return
                if not await self._answer(await self._listener.perform(request), request.method):
                    return
                if self._http.our_state is not h11.DONE or self._http.their_state is not h11.DONE:
                    await self._end()
                    return
                self._http.start_next_cycle()
            except Refused as error:
                await self.refuse(error.status, error.reason)
                return
            except h11.RemoteProtocolError as error:
                await self.refuse(error.error_status_hint, str(error))
                return

    # --- in -------------------------------------------------------------------------------------------

    async def _next_request(self) -> Request | None:
        """The next whole request; None at the end. Raises `Refused` as soon as one is seen to be too much."""
        head = await self._next_event()
        if not isinstance(head, h11.Request):
            return None
        if len(head.target) + sum(len(name) + len(value) for name, value in head.headers) > MAX_HEADER_BYTES:
            raise Refused(431, f"the head of a request may have at most {MAX_HEADER_BYTES} bytes")
        content_type = b""
        for name, value in head.headers:
            if name == b"content-length" and (len(value) > 15 or int(value) > MAX_BODY_BYTES):
                raise Refused(413, f"the body may have at most {MAX_BODY_BYTES} bytes")
            if name == b"content-type":
                content_type = value
        request = Request.parse(
            head.method.decode(), head.target.decode("latin-1"), content_type.decode("latin-1")
        )
        request.headers = {
            name.decode(): value.decode("latin-1") for name, value in head.headers if name in HEADERS
        }
        if isinstance(self._stream, trio.SSLStream):
            request.certificate = common_name(self._stream.getpeercert())
        body = bytearray()
        while True:
            if self._http.they_are_waiting_for_100_continue:
                await self._send(_CONTINUE)
            event = await self._next_event()
            if not isinstance(event, h11.Data):
                break
            body += event.data
            if len(body) > MAX_BODY_BYTES:
                raise Refused(413, f"the body may have at most {MAX_BODY_BYTES} bytes")
        if not isinstance(event, h11.EndOfMessage):
            return None
        request.body = bytes(body)
        return request

    async def _next_event(self) -> h11.Event | type[h11.PAUSED]:
        while (event := self._http.next_event()) is h11.NEED_DATA:
            self._http.receive_data(bytes(await self._stream.receive_some(READ_SIZE)))
        assert not isinstance(event, type) or event is h11.PAUSED
        return event

    # --- out ------------------------------------------------------------------------------------------

    async def _send(self, *events: h11.Event) -> None:
        await self._stream.send_all(b"".join(self._http.send(event) or b"" for event in events))

    async def _answer(self, answer: Answer, method: str) -> bool:
        """Send the answer. Returns True if the client took it in time."""
        headers = [("Date", formatdate(usegmt=True)), *answer.headers]
        if answer.body:
            headers.append(("Content-Type", answer.content_type))
        if answer.status != 204:
            headers.append(("Content-Length", str(len(answer.body))))
        head = h11.Response(status_code=answer.status, headers=headers, reason=phrase(answer.status).encode())
        events: Sequence[h11.Event] = [head, h11.EndOfMessage()]
        if answer.body and method != "HEAD":
            events = [head, h11.Data(data=answer.body), h11.EndOfMessage()]
        self._listener.unsent += len(answer.body)
        try:
            with trio.move_on_after(REQUEST_TIME) as time:
                await self._send(*events)
        finally:
            self._listener.unsent -= len(answer.body)
        return not time.cancelled_caught

    async def refuse(self, status: int, reason: str) -> None:
        """Answer, if it can still be answered, and end the connection."""
        if self._http.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            answer = refusal(status, reason)
            answer.headers.append(("Connection", "close"))
            if not await self._answer(answer, "GET"):
                return
        await self._end()

    async def _end(self) -> None:
        """End our side and let the client read: closing with bytes unread would take the answer from it.

        Bytes of TLS are dropped without decryption. The client needs no close_notify to see the end of an
        answer, because each answer has its length.
        """
        stream = self._stream
        transport = stream.transport_stream if isinstance(stream, trio.SSLStream) else stream
        with trio.move_on_after(LINGER):
            await transport.send_eof()
            while await transport.receive_some(READ_SIZE):
                pass
