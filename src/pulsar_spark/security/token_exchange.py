"""`TokenExchange`: the requests for one token of OAuth 2.0, within one time for all of them.

The library's timeouts are for one read each, so that a peer could hold the caller for ever by single bytes.
The requests are made in a thread, and the caller leaves it behind when the time is over.
"""

import os
import socket
import ssl
import threading
import time
from concurrent.futures import Future
from contextlib import suppress
from typing import Any

from pulsar_security import (
    HEADERS,
    MAX_ANSWER,
    REQUEST_TIME,
    HttpFailure,
    HttpRequest,
    Issued,
    IssuerAnswer,
    OAuth2Issuer,
    Pause,
    TokenRequest,
)


class TokenExchange:
    """One exchange with an issuer, for one call of `token`."""

    def __init__(self, issuer: OAuth2Issuer, request: TokenRequest, context: ssl.SSLContext) -> None:
        self._issuer = issuer
        self._request = request
        self._context = context
        self._outcome: Future[Issued] = Future()
        self._deadline = 0.0
        """The moment of `time.monotonic()` when nothing is sent any more."""
        self._reason: str | None = None
        """The reason of the last failure that may pass."""
        self._over = threading.Event()
        """Set when no caller waits any more."""
        self._sockets: list[socket.socket] = []
        """Sockets of their own for the connections that were made, as TLS takes the library's away."""

    def token(self, seconds: float) -> Issued:
        """Return a new token. Raises `CredentialsFailed`, after so many seconds at the latest."""
        self._deadline = time.monotonic() + seconds
        threading.Thread(target=self._run, name="pulsar OAuth 2.0", daemon=True).start()
        try:
            return self._outcome.result(seconds)
        except TimeoutError:  # of the thread, too
            raise self._issuer.too_late(seconds, self._reason) from None
        finally:
            self._over.set()
            self._end_connections()

    # --- in the thread ---

    def _run(self) -> None:
        try:
            self._outcome.set_result(self._ask())
        except BaseException as error:  # raised where the caller waits; after that it is of no interest
            self._outcome.set_exception(error)
        finally:
            for each in self._sockets:
                each.close()

    def _ask(self) -> Issued:
        steps, told = self._issuer.steps(self._request), None
        with self._issuer.http.Client(verify=self._context) as client:
            while True:
                try:
                    step = steps.send(told)
                except StopIteration as end:
                    issued: Issued = end.value
                    return issued
                late = time.monotonic() >= self._deadline
                if isinstance(step, Pause):
                    if self._reason is None or not late:  # a late step only says that the time is over
                        self._reason = step.reason
                    told = None
                    self._over.wait(step.seconds)
                elif late:
                    raise TimeoutError
                else:
                    told = self._send(client, step)

    def _send(self, client: Any, request: HttpRequest) -> IssuerAnswer | HttpFailure:
        timeout = max(0.001, min(REQUEST_TIME, self._deadline - time.monotonic()))
        deadline = time.monotonic() + timeout
        content = b""
        try:
            with client.stream(
                request.method,
                request.url,
                data=request.form,
                headers=HEADERS,
                timeout=timeout,
                extensions={"trace": self._trace},
            ) as response:
                for part in response.iter_raw():
                    content += part if len(content) <= MAX_ANSWER else b""
                    if time.monotonic() > deadline:
                        return HttpFailure(f"{request.url}: the answer was not whole in time", may_pass=True)
                return IssuerAnswer(response.status_code, content)
        except self._issuer.failures as error:
            return self._issuer.failure_of(request.url, error)

    def _trace(self, event: str, info: dict[str, Any]) -> None:
        """The library tells what it does: keep a second socket for each new connection."""
        if event == "connection.connect_tcp.complete":
            connected = info["return_value"].get_extra_info("socket")
            self._sockets.append(socket.socket(fileno=os.dup(connected.fileno())))
            if self._over.is_set():
                self._end_connections()

    def _end_connections(self) -> None:
        """Wake the thread where it reads or writes; it then ends."""
        for each in self._sockets:
            with suppress(OSError):  # closed by the thread
                each.shutdown(socket.SHUT_RDWR)
