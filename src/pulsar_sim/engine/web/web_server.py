"""`WebServer`: answers lookups over HTTP for one broker, and what becomes of each answer.

Owns one half of INV-N16: each link of a client carries one request, for the host that it leads to, and a
client has at most sixteen of them. An answer is right. Before healing it may be a redirect, an error,
garbage, late, or cut in the middle. The server lives and dies with its broker.
"""

from typing import TYPE_CHECKING, Any

import h11

from ..clock import MILLISECOND, SECOND
from ..failures import ViolationError
from ..network import GARBAGE, Wire
from .web_answers import WEB_PORT, WebAnswer, answer_of, redirect, refusal, web_name

if TYPE_CHECKING:
    from ..broker_node import BrokerNode
    from ..profile import WebPlan

MOST_LINKS = 16
"""Requests that one client has open at a time, at most."""

SLOWEST = 12 * SECOND
"""Nanoseconds of the slowest answer: longer than the operation timeout of any world."""

ERRORS = (500, 503, 429, 408, 409, 412)
"""Statuses after which a client asks again."""

USELESS = (b"", b"{", b"null", b"[7]", b'{"brokerUrl": 7}', b'{"partitions": -1}', b"\xff\xfe")
"""Bodies that answer no request."""

RIGHT, REDIRECTED, FAILING = "right", "redirected", "failing"
MISSING, GARBLED, CUT = "missing", "garbled", "cut"


class WebServer:
    """The web server of one broker. It closes each link after its answer."""

    def __init__(self, node: "BrokerNode", plan: "WebPlan") -> None:
        self.name = web_name(node.name)
        self._node = node
        self._plan = plan
        self._stream = node.world.streams.stream(f"web server of {node.name}")
        self._links: dict[int, tuple[Wire, h11.Connection]] = {}
        node.world.network.listeners[self.name] = self

    # --- the network ---

    def accept(self, wire: Wire) -> bool:
        if self._node.broker is None:
            return False
        wire.carries_no_frames()
        mine = [
            each
            for each in wire.network.wires.values()
            if each.client is wire.client and each.client_open and isinstance(each.broker, WebServer)
        ]
        if len(mine) > MOST_LINKS:
            raise ViolationError("INV-N16", f"{wire.client.name} has {len(mine)} requests over HTTP")
        self._links[wire.number] = wire, h11.Connection(h11.SERVER)
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
                    self._asked(wire, http, event)
        except h11.RemoteProtocolError as error:
            raise ViolationError("INV-N16", f"{wire.client.name} writes no HTTP: {error}") from error

    def link_eof(self, link: int) -> None:
        self._close(link)

    def link_lost(self, link: int, reason: str) -> None:
        self._links.pop(link, None)

    # --- requests and answers ---

    def _asked(self, wire: Wire, http: h11.Connection, request: h11.Request) -> None:
        """Choose what becomes of the answer, and when it is sent."""
        node, plan, stream = self._node, self._plan, self._stream
        world = node.world
        target = request.target.decode()
        host = next(value for name, value in request.headers if name == b"host").decode()
        world.trace.add(world.clock.now, self.name, f"wire {wire.number} GET {target}")
        if request.method != b"GET" or host != f"{node.name}:{WEB_PORT}":
            raise ViolationError(
                "INV-N16", f"{wire.client.name} asks {node.name} as {host}: {request.method!r}"
            )
        fate, delay = RIGHT, 0
        if not world.healed:
            if stream.chance(plan.slow_permille):
                world.count_fault("http_slow")
                delay = stream.spread(10 * MILLISECOND, SLOWEST)
            for kind, permille in (
                (REDIRECTED, plan.redirect_permille),
                (FAILING, plan.failing_permille),
                (MISSING, plan.missing_permille),
                (GARBLED, plan.garbage_permille),
                (CUT, plan.cut_permille),
            ):
                if fate is RIGHT and stream.chance(permille):
                    world.count_fault(f"http_{kind}")
                    fate = kind
        world.clock.after(delay, self._answer, wire.number, node.incarnation, target, fate)

    def _answer(self, link: int, incarnation: int, target: str, fate: str) -> None:
        node = self._node
        if link not in self._links:
            return
        if node.broker is None or node.incarnation != incarnation:
            self._close(link, abort=True)
            return
        if node.frozen_until:
            node.world.clock.at(node.frozen_until + 1, self._answer, link, incarnation, target, fate)
            return
        answer = self._made(target, fate)
        wire, http = self._links[link]
        world = node.world
        world.trace.add(world.clock.now, self.name, f"wire {link} answers {answer.status}: {fate}")
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
        wire.to_client.write(data[: self._stream.below(len(data))] if fate is CUT else data)
        self._close(link)

    def _made(self, target: str, fate: str) -> WebAnswer:
        node, stream = self._node, self._stream
        if fate is REDIRECTED:
            other = stream.choice([each.name for each in node.cluster.nodes])
            return redirect(other, target)
        if fate is FAILING:
            return refusal(stream.choice(ERRORS), "not now")
        if fate is MISSING:
            return refusal(404, "there is no such topic")
        if fate is GARBLED:
            return WebAnswer(200, stream.choice(USELESS))
        assert node.broker is not None
        answer = answer_of(node.broker, target)
        node.pump()  # a request may have created partitions
        return answer

    def _close(self, link: int, *, abort: bool = False) -> None:
        found = self._links.pop(link, None)
        if found is not None:
            found[0].closed_by(client_side=False, abort=abort)
