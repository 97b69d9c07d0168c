"""`WebServer`: answers lookups over HTTP for one broker, and what becomes of each answer.

Owns one half of INV-N16: each link of a client carries one request, for the host that it leads to, and a
client has at most sixteen of them. An answer is right. Before healing it may be a redirect, an error,
garbage, late, or cut in the middle. The server lives and dies with its broker.
"""

from typing import TYPE_CHECKING

from ..clock import MILLISECOND, SECOND
from ..failures import ViolationError
from ..network import Wire
from .http_listener import HttpListener
from .web_answers import WebAnswer, answer_of, redirect, refusal

if TYPE_CHECKING:
    from ..nodes.broker_node import BrokerNode
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


class WebServer(HttpListener):
    """The web server of one broker."""

    def __init__(self, node: "BrokerNode", plan: "WebPlan") -> None:
        super().__init__(node.world, node.name)
        self._node = node
        self._plan = plan

    def _accepts(self) -> bool:
        return self._node.broker is not None

    def accept(self, wire: Wire) -> bool:
        mine = [
            each
            for each in wire.network.wires.values()
            if each.client is wire.client and each.client_open and isinstance(each.broker, WebServer)
        ]
        if len(mine) > MOST_LINKS:
            raise ViolationError("INV-N16", f"{wire.client.name} has {len(mine)} requests over HTTP")
        return super().accept(wire)

    def _asked(self, link: int, target: str) -> None:
        """Choose what becomes of the answer, and when it is sent."""
        world, plan, stream = self.world, self._plan, self._stream
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
        world.clock.after(delay, self._answer_as, link, self._node.incarnation, target, fate)

    def _answer_as(self, link: int, incarnation: int, target: str, fate: str) -> None:
        node, world = self._node, self.world
        if link not in self._links:
            return
        if node.broker is None or node.incarnation != incarnation:
            self._close(link, abort=True)
            return
        if node.frozen_until:
            world.clock.at(node.frozen_until + 1, self._answer_as, link, incarnation, target, fate)
            return
        answer = self._made(target, fate)
        world.trace.add(world.clock.now, self.name, f"wire {link} answers {answer.status}: {fate}")
        self._answer(link, answer, cut=fate is CUT)

    def _made(self, target: str, fate: str) -> WebAnswer:
        node, stream = self._node, self._stream
        if fate is REDIRECTED:
            return redirect(stream.choice([each.name for each in node.cluster.nodes]), target)
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
