"""`ControlService`: the web service that names the cluster to use to a client with a `ControlledFailover`.

Owns which cluster it names at each moment, and what becomes of each answer. Before healing the service may be
away or late. It may refuse, name nothing or another identity, answer with garbage, or end in the middle.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from ..clock import MILLISECOND, SECOND
from .http_listener import HttpListener
from .web_answers import WEB_PORT, WebAnswer, json_answer, redirect, refusal

if TYPE_CHECKING:
    from ..profile import ControlPlan
    from ..surroundings import Surroundings

HOST = "control"
URL = f"http://{HOST}:{WEB_PORT}/cluster"

SLOWEST = 12 * SECOND
"""Nanoseconds of the slowest answer: longer than the operation timeout of any world."""

USELESS = (b"", b"{", b"[]", b'{"serviceUrl": 7}', b'{"serviceUrl": "no url"}', b"\xff\xfe")
"""Bodies that name no cluster, and are refused."""

EMPTY = (b"{}", b'{"serviceUrl": ""}', b'{"serviceUrl": null}')
"""Bodies that change nothing."""

IDENTITIES = ("token", "tlsTrustCertsFilePath", "authPluginClassName", "authParamsString")
"""Fields of an answer that would change the client's identity, too."""

RIGHT, FAILING, REDIRECTED, GARBLED = "right", "failing", "redirected", "garbled"
EMPTIED, IDENTITY, CUT = "empty", "identity", "cut"


class ControlService(HttpListener):
    """The service. `urls`: of the primary and the secondary cluster. `home`: returns the index of the cluster
    that the service names after healing.

    `tells(wire, url, size)` is called with each answer that names a cluster: the number of its wire, the
    service URL, and the bytes of the answer.
    """

    def __init__(
        self,
        world: "Surroundings",
        plan: "ControlPlan",
        urls: tuple[str, str],
        tells: Callable[[int, str, int], None],
        home: Callable[[], int],
    ) -> None:
        super().__init__(world, HOST)
        self._plan = plan
        self._urls = urls
        self._tells = tells
        self._home = home
        self._named = 0

    def start(self) -> None:
        """The applications start: name the other cluster at each moment of the plan."""
        for after in self._plan.changes:
            self.world.clock.after(after, self._change)

    def _change(self) -> None:
        self._named = 1 - self._named

    def _accepts(self) -> bool:
        away = not self.world.healed and self._stream.chance(self._plan.away_permille)
        if away:
            self.world.count_fault("control_away")
        return not away

    def _asked(self, link: int, target: str) -> None:
        world, plan, stream = self.world, self._plan, self._stream
        fate, delay = RIGHT, 0
        if not world.healed:
            if stream.chance(plan.slow_permille):
                world.count_fault("control_slow")
                delay = stream.spread(10 * MILLISECOND, SLOWEST)
            if stream.chance(plan.wrong_permille):
                fate = stream.choice([FAILING, REDIRECTED, GARBLED, EMPTIED, IDENTITY, CUT])
                world.count_fault(f"control_{fate}")
        world.clock.after(delay, self._answer_as, link, fate)

    def _answer_as(self, link: int, fate: str) -> None:
        if link not in self._links:
            return
        world = self.world
        url = self._urls[self._home() if world.healed else self._named]
        answer = self._made(fate, url)
        world.trace.add(world.clock.now, self.name, f"wire {link} answers {fate}: {answer.body!r}")
        size = self._answer(link, answer, cut=fate is CUT)
        if fate is RIGHT:
            self._tells(link, url, size)

    def _made(self, fate: str, url: str) -> WebAnswer:
        stream = self._stream
        if fate is FAILING:
            return refusal(stream.choice([404, 429, 500, 503]), "not now")
        if fate is REDIRECTED:
            return redirect(HOST, "/elsewhere")
        if fate is GARBLED:
            return WebAnswer(200, stream.choice(USELESS))
        if fate is EMPTIED:
            return WebAnswer(200, stream.choice(EMPTY))
        if fate is IDENTITY:
            return json_answer({"serviceUrl": url, stream.choice(IDENTITIES): "another"})
        return json_answer({"serviceUrl": url})
