"""`HttpExchange`: one GET over one link, from the request to connect until the answer is complete.

Each exchange has a link of its own and asks the server to close it afterwards. So no request meets a link
that the server is about to close. Lookups are rare: one for each attempt to attach a producer or consumer.
h11 writes and parses HTTP. The user of the exchange knows the meaning of the answer. `http_exchange_states`
has the states.
"""

from base64 import b64encode
from collections.abc import Callable, Sequence

import h11

from ...model.errors import (
    ConnectionLost,
    CredentialsFailed,
    LocalProtocolError,
    NotSupported,
    PulsarError,
    RemoteProtocolError,
    TimedOut,
)
from ...model.http_url import HttpUrl
from ...model.secret import Secret
from ..connecting.connection import CLIENT_VERSION
from ..connecting.services import Services
from ..outputs import Connect, Disconnect, RequestAnswered, RequestSent, Transmit
from ..security.credential_exchange import CredentialExchange
from . import http_exchange_states as states
from .http_answer import HttpAnswer
from .http_exchange_states import TRANSITIONS, HttpExchangeInput, HttpExchangeState

MAX_HEADERS = 64 * 1024
"""Bytes of the largest head of an answer, and of the largest incomplete line."""


_WITHOUT_HEADER = (None, "tls")
"""Methods that add nothing to a request: none, and the client's certificate."""

_WITH_HEADER = ("token", "basic")
"""Methods that Pulsar defines over HTTP by an Authorization header."""


def check_method(method: str | None) -> None:
    """Raise `NotSupported` for an authentication method without a form over HTTP."""
    if method not in (*_WITHOUT_HEADER, *_WITH_HEADER):
        raise NotSupported(
            f"authentication method {method!r} over HTTP: there are token, basic and tls; "
            "use a service URL of pulsar:// or pulsar+ssl://"
        )


class HttpExchange:
    """One exchange. Exactly one of `on_answer` and `on_failed` is called, once, unless it is abandoned.

    `method`: the authentication method whose credentials the request carries; None for none. `limit`: bytes
    of the largest body. `headers`: further headers of the request.
    """

    def __init__(
        self,
        services: Services,
        url: HttpUrl,
        on_answer: Callable[[HttpAnswer], None],
        on_failed: Callable[[PulsarError], None],
        *,
        method: str | None,
        limit: int,
        headers: Sequence[tuple[str, Secret]] = (),
    ) -> None:
        self._services = services
        self._context = context = services.context
        self._url = url
        self._on_answer = on_answer
        self._on_failed = on_failed
        self._limit = limit
        self._headers = headers
        self.link = context.new_link()
        self.physical = url.address
        self.ready = False
        self.state: HttpExchangeState = states.Opening()
        with_credentials = None if method in _WITHOUT_HEADER else method
        self.credentials = CredentialExchange(context, self.link, url.address, with_credentials)
        self._http = h11.Connection(h11.CLIENT, max_incomplete_event_size=MAX_HEADERS)
        self._unwritten: list[bytes] = []
        self._room = 2 * limit + MAX_HEADERS
        """The bytes that may still come. Chunks are larger than their data, and early answers have no end."""
        self._has_received = False
        self._status = 0
        self._location = ""
        self._body = bytearray()
        self._timer = context.deadlines.slot(self._timed_out)
        self._timer.set(context.now + services.durations.connect_timeout)
        services.links.open[self.link] = self
        context.emit(Connect(self.link, url.address, url.address.host if url.tls else None))

    def abandon(self, cause: PulsarError) -> None:
        """End without calling either callback."""
        self._report_no_answer(cause)
        self._end(str(cause), already_gone=False)

    # --- facts from the driver ---

    def opened(self) -> None:
        """The link is open: ask, once the credentials are there."""
        if not isinstance(self.state, states.Opening):
            raise LocalProtocolError(f"link {self.link} was reported connected twice")
        if self.credentials.method is None:
            self._ask(None)
        else:
            self._move(HttpExchangeInput.CREDENTIALS_WANTED, states.Authenticating())
            self.credentials.begin(self._ask)

    def receive(self, data: bytes) -> None:
        """Bytes came. Raises `LocalProtocolError` when the link was not reported as connected."""
        if isinstance(self.state, states.Opening):
            raise LocalProtocolError(f"link {self.link} received data before it was reported connected")
        if isinstance(self.state, states.Authenticating):
            self.close(RemoteProtocolError(f"{self.physical} sent bytes before the request"))
        elif data:
            self._has_received = True
            self._room -= len(data)
            if self._room < 0:
                self._refuse_size()
            else:
                self._parse(data)

    def receive_eof(self) -> None:
        """The peer will send nothing more, which may be the end of the body."""
        if isinstance(self.state, states.Asking) and self._has_received:
            self._parse(b"")
        else:
            hint = "" if self._url.tls else " (a port for https:// does that)"
            self.close(ConnectionLost(f"{self.physical} closed the connection without an answer{hint}"))

    def close(self, cause: PulsarError, *, already_gone: bool = False) -> None:
        """End the exchange with this error as its outcome; a second call does nothing."""
        if not isinstance(self.state, states.Ended):
            self._report_no_answer(cause)
            self._end(str(cause), already_gone=already_gone)
            self._on_failed(cause)

    def data_to_send(self) -> list[bytes]:
        """Return the chunks to write, each once."""
        chunks, self._unwritten = self._unwritten, []
        return chunks

    # --- inside ---

    def _ask(self, credentials: Secret | None) -> None:
        headers: list[tuple[bytes, bytes]] = [
            (b"Host", str(self.physical).encode()),
            (b"User-Agent", CLIENT_VERSION.encode()),
            (b"Accept", b"application/json"),
            (b"Connection", b"close"),
            *((name.encode(), value.reveal()) for name, value in self._headers),
        ]
        if credentials is not None:
            value = credentials.reveal()
            token = self.credentials.method == "token"
            headers.append((b"Authorization", b"Bearer " + value if token else b"Basic " + b64encode(value)))
        try:
            request = h11.Request(method="GET", target=self._url.target, headers=headers)
        except h11.LocalProtocolError:  # its text may show the credentials
            text = "the credentials or the host have characters that no HTTP header can carry"
            self.close(CredentialsFailed(text))
            return
        self._move(HttpExchangeInput.ASK, states.Asking())
        self.ready = True
        self._unwritten = [self._http.send(request) or b"", self._http.send(h11.EndOfMessage()) or b""]
        self._timer.set(self._context.now + self._services.durations.operation_timeout)
        self._context.emit(Transmit(self.link))
        if self._services.requests.reported:
            path = self._url.target.partition("?")[0]  # a query may hold a credential of the web service
            self._context.emit(RequestSent(self.link, 0, f"GET {path}"))

    def _report_no_answer(self, cause: PulsarError) -> None:
        if isinstance(self.state, states.Asking):
            self._report_answer("nothing", cause)

    def _report_answer(self, command: str, error: PulsarError | None) -> None:
        if self._services.requests.reported:
            self._context.emit(RequestAnswered(self.link, 0, command, error))

    def _parse(self, data: bytes) -> None:
        try:
            self._http.receive_data(data)
            while isinstance(self.state, states.Asking):
                event = self._http.next_event()
                if event in (h11.NEED_DATA, h11.PAUSED):
                    return
                self._on_event(event)
        except h11.RemoteProtocolError as error:
            text = f"{self.physical} sent no usable HTTP answer: {str(error)[:200]}"
            self.close(RemoteProtocolError(text))

    def _on_event(self, event: object) -> None:
        """Take a part of the answer. h11 raises an error for a connection that ends within an answer."""
        match event:
            case h11.Response():
                self._status = event.status_code
                for name, value in event.headers:
                    if name == b"location":
                        self._location = value.decode("latin-1")
                    elif name == b"content-length" and (len(value) > 15 or int(value) > self._limit):
                        self._refuse_size()
            case h11.Data():
                self._body += event.data
                if len(self._body) > self._limit:
                    self._refuse_size()
            case h11.EndOfMessage():
                answer = HttpAnswer(self._url, self._status, self._location, bytes(self._body))
                refused = None if answer.status == 200 or answer.redirects else answer.refusal()
                self._report_answer(f"HTTP {answer.status}", refused)
                self._end(
                    "the answer is complete",
                    already_gone=False,
                    credentials_refused=answer.refuses_credentials,
                )
                self._on_answer(answer)

    def _refuse_size(self) -> None:
        self.close(RemoteProtocolError(f"{self.physical} sent an answer of more than {self._limit} bytes"))

    def _timed_out(self) -> None:
        config = self._services.config
        if isinstance(self.state, states.Asking):
            text = f"no answer of {self.physical} within {config.operation_timeout:g} s"
            self.close(TimedOut(text))
        elif isinstance(self.state, states.Authenticating):
            self.close(self.credentials.not_in_time(self.physical, config.connect_timeout))
        else:
            text = f"no connection to {self.physical} within {config.connect_timeout:g} s"
            self.close(TimedOut(text))

    def _end(self, reason: str, *, already_gone: bool, credentials_refused: bool = False) -> None:
        self._move(HttpExchangeInput.END, states.Ended())
        self.ready = False
        self._timer.clear()
        self.credentials.cleared()
        if not already_gone:
            self._context.emit(Disconnect(self.link, reason, credentials_refused))
        self._services.links.ended(self, already_gone=already_gone)

    def _move(self, event: HttpExchangeInput, following: HttpExchangeState) -> None:
        TRANSITIONS.check(self.state, event, following)
        self.state = following
