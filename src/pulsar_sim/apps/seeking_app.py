"""Seekers: guests who move about, in one topic or in several, and ask whether there is more.

Owns their steps, and that every seek and every question ends in time. Where they go, what may come then, and
what they may be told is `roamer`'s and `tourist`'s.
"""

from abc import abstractmethod
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from pulsar_sansio.model.message import Message
from pulsar_sansio.model.message_id import MessageId

from ..engine.clock import SECOND
from ..engine.failures import ViolationError
from ..model.records import Place
from .transient_app import RecordT, Restless

if TYPE_CHECKING:
    from ..world.world import World

MEMORY = 200
"""Messages that are remembered as places to go to, at most."""

SLACK = 3 * SECOND
"""How much longer than the operation timeout an answer may take: timers may be late."""


class SeekerPlan(Protocol):
    """What one of them does, and how often: of a thousand steps."""

    client: int
    take: int
    pause: int
    seek_permille: int
    ask_permille: int
    close_permille: int


PlanT = TypeVar("PlanT", bound=SeekerPlan)


class Seeker(Restless[RecordT], Generic[RecordT, PlanT]):
    """One of them, through as many handles as it takes."""

    def __init__(self, world: "World", kind: str, index: int, plan: PlanT, seeks: int) -> None:
        super().__init__(world, kind, index, plan.client, plan.pause)
        self.plan = plan
        self._seeks: dict[int, Any] = {}
        """Request -> where it goes; in the order in which they were asked for."""
        self._asked: dict[int, Any] = {}
        """Questions for more -> what was known when they were asked."""
        self._last_asked: dict[int, Any] = {}
        """Questions for the last message, likewise."""
        self._left = seeks
        """Seeks in any weather, at most: each may bring everything again."""
        self._came_home = False
        """In good weather it has sought a place for the last time."""

    @property
    def _waiting(self) -> list[int]:
        return [*self._seeks, *self._asked, *self._last_asked]

    # --- steps ----------------------------------------------------------------------------------------------

    def wake(self) -> None:
        self._left = 0
        super().wake()

    def _step(self, turn: int) -> None:
        if not self._may_step(turn):
            return
        messages = self._take()
        if messages is None:
            return
        if messages:
            self._took(messages)
        if self.world.rash:
            self._wander()
        else:
            self._finish()
        node = self.host.node
        node.pump()
        if self.state == "open" and (self._left or node.client.available(self.handle)):
            self._later()
        else:
            self._rest()

    def _take(self) -> list[Message] | None:
        """What there is; None where there is nobody any more to ask."""
        return list(self.host.node.client.take(self.world.clock.now, self.handle, self.plan.take))

    @abstractmethod
    def _took(self, messages: list[Message]) -> None: ...

    def _wander(self) -> None:
        """In any weather."""
        stream, plan = self.stream, self.plan
        if self._left and stream.chance(plan.seek_permille):
            self._seek_somewhere()
            while stream.chance(300):  # and then somewhere else, before it is there
                self._seek_somewhere()
        if stream.chance(plan.ask_permille):
            self.ask()
        self._perhaps_end()

    def _perhaps_end(self) -> None:
        if self.stream.chance(self.plan.close_permille):
            self.close_and_reopen()

    @abstractmethod
    def _finish(self) -> None:
        """In good weather: go back once more, and read everything from there on."""

    def _rest(self) -> None:
        """There is nothing to take now, and nothing to seek."""

    @abstractmethod
    def _seek_somewhere(self) -> None: ...

    @abstractmethod
    def ask(self) -> None:
        """Whether there is more, or what the last message is."""

    # --- answers --------------------------------------------------------------------------------------------

    def _expect(self, request: int, text: str = "") -> None:
        """INV-C7, INV-C15: whatever happens, it ends in time."""
        world = self.world
        if text:
            world.trace.add(world.clock.now, self.host.node.name, text)
        self.host.routes[request] = self
        limit = round(world.profile.operation_timeout * SECOND)
        world.clock.after(limit + SLACK, self._check_answered, request, self.incarnation)
        if request in self._seeks:
            world.clock.after(limit - 1, self._waits_no_longer, request, self.incarnation)
        self.host.node.pump()

    def _waits_no_longer(self, request: int, incarnation: int) -> None:
        """Who has waited for a seek in vain may ask for the next one."""
        if incarnation == self.incarnation and request in self._seeks:
            self.world.rules.excuse(self.host.node.name, "SEEK-01")

    def _check_answered(self, request: int, incarnation: int) -> None:
        if incarnation == self.incarnation and self._awaits(request):
            rule = "INV-C7" if request in self._seeks else "INV-C15"
            raise ViolationError(rule, f"request {request} of {self.handle} is not answered in time")

    def _awaits(self, request: int) -> bool:
        return request in self._waiting

    def _check_nobody_waits(self) -> None:
        """INV-C14; that a subscription is removed is said after the end, which is a part of it."""
        if self._waiting:
            raise ViolationError("INV-C14", f"{self.handle} has ended; {self._waiting} were never answered")

    def _forget_waiting(self) -> None:
        self._seeks.clear()
        self._asked.clear()
        self._last_asked.clear()
        self._came_home = False

    def _is_attached_again(self) -> None:
        if self.world.healed:
            self._later()


def place_of(message_id: MessageId) -> Place:
    ledger, entry, _, index = message_id[:4]
    return (ledger, entry, max(index, 0))
