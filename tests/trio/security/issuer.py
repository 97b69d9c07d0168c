"""An OAuth 2.0 issuer that listens on this machine and answers as a test says."""

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from urllib.parse import parse_qs

import h11
import trio

Answer = tuple[int, object]
"""A status, and the JSON of the body."""


@dataclass
class LocalIssuer:
    """The requests that arrived, and the answer to each path; a path without an answer is not there."""

    url: str = ""
    answers: dict[str, Callable[[dict[str, str]], Answer]] = field(default_factory=dict)
    asked: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    """The path and the form of each request."""
    headers: list[tuple[str, str]] = field(default_factory=list)
    """Further headers of each answer."""
    pause: float = 0.0
    """Seconds before each answer."""

    def tokens(self, *, lifetime: int | None = 3600) -> None:
        """Give tokens "token-1", "token-2" and so on, of this lifetime."""
        life = {} if lifetime is None else {"expires_in": lifetime}
        endpoint = {"token_endpoint": f"{self.url}/token"}
        self.answers["/.well-known/openid-configuration"] = lambda form: (200, endpoint)
        self.answers["/token"] = lambda form: (200, {"access_token": f"token-{len(self.forms)}", **life})

    @property
    def forms(self) -> list[dict[str, str]]:
        """The requests for a token."""
        return [form for path, form in self.asked if path == "/token"]

    async def serve(self, stream: trio.SocketStream) -> None:
        """Answer the requests of one connection, until the client ends it."""
        async with stream:
            with suppress(trio.BrokenResourceError, h11.RemoteProtocolError):  # the client was cancelled
                await self._answer_all(stream)

    async def _answer_all(self, stream: trio.SocketStream) -> None:
        connection = h11.Connection(h11.SERVER)
        path, body = "", b""
        while True:
            event = connection.next_event()
            if event is h11.NEED_DATA:
                connection.receive_data(await stream.receive_some())
            elif isinstance(event, h11.Request):
                path, body = event.target.decode(), b""
            elif isinstance(event, h11.Data):
                body += bytes(event.data)
            elif isinstance(event, h11.EndOfMessage):
                form = {name: values[0] for name, values in parse_qs(body.decode()).items()}
                self.asked.append((path, form))
                await trio.sleep(self.pause)
                await self._answer(connection, stream, path, form)
                connection.start_next_cycle()
            else:
                return

    async def _answer(
        self, connection: h11.Connection, stream: trio.SocketStream, path: str, form: dict[str, str]
    ) -> None:
        status, value = self.answers[path](form) if path in self.answers else (404, {})
        content = value if isinstance(value, bytes) else json.dumps(value).encode()
        headers = [("Content-Length", str(len(content))), *self.headers]
        for event in (
            h11.Response(status_code=status, headers=headers),
            h11.Data(data=content),
            h11.EndOfMessage(),
        ):
            await stream.send_all(connection.send(event) or b"")


@asynccontextmanager
async def open_issuer() -> AsyncIterator[LocalIssuer]:
    issuer = LocalIssuer()
    async with trio.open_nursery() as nursery:
        listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
        issuer.url = f"http://127.0.0.1:{listeners[0].socket.getsockname()[1]}"
        nursery.start_soon(trio.serve_listeners, issuer.serve, listeners)
        yield issuer
        nursery.cancel_scope.cancel()
