"""`AskingApp`: asks for the topics of many namespaces at once, in a world with lookups over HTTP.

A client has at most sixteen requests over HTTP at a time (INV-N16), so most of these questions wait for their
turn. Each is answered once: by the topics of the namespace, which has none, or by an error.
"""

from typing import TYPE_CHECKING

from pulsar_sansio.client.outputs import Output, RequestDone

from ..engine.clock import MILLISECOND, SECOND
from ..engine.failures import ViolationError
from .client_process import ClientProcess

if TYPE_CHECKING:
    from ..engine.surroundings import Surroundings


class AskingApp:
    """The application. `crowd`: the number of questions that it asks at once."""

    state = "idle"
    """The application has no producer or consumer, so none is to be closed."""
    handle = 0

    def __init__(self, world: "Surroundings", host: ClientProcess, crowd: int) -> None:
        self._world = world
        self.host = host
        self._crowd = crowd
        self._stream = world.streams.stream("crowd of lookups")
        self._pending: dict[int, None] = {}
        """The questions without an answer, by request."""

    @property
    def done(self) -> bool:
        return not self._pending

    def start(self) -> None:
        """Ask in a while, and again a second or more after all is answered."""
        self._ask_after(self._stream.spread(10 * MILLISECOND, SECOND))

    def _ask_after(self, wait: int) -> None:
        self._world.clock.after(wait, self._ask, self.host.incarnation)

    def lose(self) -> None:
        """The client process is lost, with its questions."""
        self._pending.clear()

    def on_output(self, output: Output) -> None:
        assert hasattr(output, "request")
        del self._pending[output.request]
        if isinstance(output, RequestDone) and output.result != []:
            raise ViolationError("INV-N16", f"a namespace without topics has {output.result}")
        if not self._pending:
            self._ask_after(SECOND + self._stream.below(SECOND))

    def _ask(self, incarnation: int) -> None:
        host, world = self.host, self._world
        if world.healed or host.closing is not None or host.incarnation != incarnation:
            return
        client = host.node.client
        for number in range(self._crowd):
            request = client.topics(world.clock.now, f"public/empty-{number}")
            self._pending[request] = None
            host.routes[request] = self
        host.node.pump()
