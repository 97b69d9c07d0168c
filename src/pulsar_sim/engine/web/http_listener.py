"""`HttpListener`: an HTTP server of a world. It answers one request of each link, and closes the link.

Owns the links and the bytes of HTTP. A subclass owns what becomes of each answer, and what it says.
"""

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

import h11

from ..clock import SECOND
from ..failures import ViolationError
from ..network import GARBAGE, Wire
from .web_answers import WEB_PORT, WebAnswer, web_name

if TYPE_CHECKING:
    from ..surroundings import Surroundings


PATIENCE = 5 * SECOND
"""Nanoseconds after which a server ends a link that has brought no request: its client may be gone."""


class HttpListener(ABC):
    """One server. `host`: the host of its URLs."""

    def __init__(self, world: "Surroundings", host: str) -> None:
        self.world = world
        self.name = web_name(host)
        self._host = f"{host}:{WEB_PORT}"
        self._stream = world.streams.stream(f"web server of {host}")
        self._links: dict[int, tuple[Wire, h11.Connection]] = {}
        world.network.listeners[self.name] = self

    @abstractmethod
    def _accepts(self) -> bool:
        """True when the server runs."""

    @abstractmethod
    def _asked(self, link: int, target: str) -> None:
        """A whole request has come: answer it now or later, by `_answer`."""

    # --- the network ---

    def accept(self, wire: Wire) -> bool:
        if not self._accepts():
            return False
        wire.carries_no_frames()
        self._links[wire.number] = wire, h11.Connection(h11.SERVER)
        self.world.clock.after(PATIENCE, self._give_up, wire.number)
        return True

    def link_connected(self, link: int, wire: Wire) -> None:
        raise AssertionError("a web server does not connect")

    def link_data(self, link: int, data: bytes, frames: list[tuple[int, int, Any]]) -> None:
        found = self._links.get(link)
        if found is None:
            return
        wire, http = found
        if wire.to_broker.is_due(GARBAGE) or any(kind == GARBAGE for _, kind, _ in frames):
            self._close(link)  # a fault has put bytes of its own into the request
            return
        try:
            http.receive_data(data)
            while (event := http.next_event()) not in (h11.NEED_DATA, h11.PAUSED):
                if isinstance(event, h11.Request):
                    self._requested(wire, event)
        except h11.RemoteProtocolError as error:
            raise ViolationError("INV-N16", f"{wire.client.name} writes no HTTP: {error}") from error

    def _requested(self, wire: Wire, request: h11.Request) -> None:
        target = request.target.decode()
        host = next(value for name, value in request.headers if name == b"host").decode()
        self.world.trace.add(self.world.clock.now, self.name, f"wire {wire.number} GET {target}")
        if request.method != b"GET" or host != self._host:
            text = f"{wire.client.name} asks {self._host} as {host}: {request.method!r}"
            raise ViolationError("INV-N16", text)
        self._asked(wire.number, target)

    def _give_up(self, link: int) -> None:
        found = self._links.get(link)
        if found is not None and found[1].their_state is h11.IDLE:
            self._close(link)

    def link_eof(self, link: int) -> None:
        self._close(link)

    def link_lost(self, link: int, reason: str) -> None:
        self._links.pop(link, None)

    # --- answers ---

    def _answer(self, link: int, answer: WebAnswer, *, cut: bool) -> int:
        """Write the answer or, when it is `cut`, its beginning; then close the link.

        Return the number of bytes of the whole answer.
        """
        wire, http = self._links[link]
        headers = [("Content-Length", str(len(answer.body))), ("Connection", "close")]
        if answer.location:
            headers.append(("Location", answer.location))
        data = b"".join(
            http.send(event) or b""
            for event in (
                h11.Response(status_code=answer.status, headers=headers),
                h11.Data(data=answer.body),
                h11.EndOfMessage(),
            )
        )
        wire.to_client.write(data[: self._stream.below(len(data))] if cut else data)
        self._close(link)
        return len(data)

    def _close(self, link: int, *, abort: bool = False) -> None:
        found = self._links.pop(link, None)
        if found is not None:
            found[0].closed_by(client_side=False, abort=abort)
