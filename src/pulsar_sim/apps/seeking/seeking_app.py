"""Applications that seek in one topic or in several, and ask whether more messages are available.

Owns their steps, and that every seek and every request ends in time. `single_topic_seeker` and
`multi_topics_seeker` own the targets, and which messages and answers are allowed.
"""

from abc import abstractmethod
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from pulsar_sansio.model.message import Message
from pulsar_sansio.model.message_id import MessageId

from ...engine.clock import SECOND
from ...engine.failures import ViolationError
from ...model.records.message_position import MessagePosition
from ..transient_app import RecordT, SteppingApp

if TYPE_CHECKING:
    from ...engine.surroundings import Surroundings

MEMORY = 200
"""Messages remembered as targets of seeks, at most."""

SLACK = 3 * SECOND
"""Nanoseconds by which an answer may exceed the operation timeout: timers may be late."""


class SeekerPlan(Protocol):
    """The plan of a seeking application; rates are per thousand steps."""

    client: int
    take: int
    pause: int
    seek_permille: int
    ask_permille: int
    close_permille: int


PlanT = TypeVar("PlanT", bound=SeekerPlan)


class Seeker(SteppingApp[RecordT], Generic[RecordT, PlanT]):
    """One seeking application, through as many handles as it opens."""

    def __init__(self, world: "Surroundings", kind: str, index: int, plan: PlanT, seeks: int) -> None:
        super().__init__(world, kind, index, plan.client, plan.pause)
        self.plan = plan
        self._seeks: dict[int, Any] = {}
        """Seek requests, each with its target, in the order of the requests."""
        self._asked: dict[int, Any] = {}
        """Requests whether more is available, each with what was known at the time."""
        self._last_asked: dict[int, Any] = {}
        """Requests for the last message, each with what was known at the time."""
        self._left = seeks
        """Seeks left before healing: each may redeliver everything."""
        self._made_last_seek = False
        """The application has made its last seek after healing."""

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
            self._act_at_random()
        else:
            self._finish()
        node = self.host.node
        node.pump()
        if self.state == "open" and (self._left or node.client.available(self.handle)):
            self._later()
        else:
            self._rest()

    def _take(self) -> list[Message] | None:
        """Take what is available; None when the consumer has ended."""
        return list(self.host.node.client.take(self.world.clock.now, self.handle, self.plan.take))

    @abstractmethod
    def _took(self, messages: list[Message]) -> None: ...

    def _act_at_random(self) -> None:
        """Do random steps, before or after healing."""
        stream, plan = self.stream, self.plan
        if self._left and stream.chance(plan.seek_permille):
            self._seek_somewhere()
            while stream.chance(300):  # the next seek is sent before the first one is done
                self._seek_somewhere()
        if stream.chance(plan.ask_permille):
            self.ask()
        self._end_at_random()

    def _end_at_random(self) -> None:
        if self.stream.chance(self.plan.close_permille):
            self.close_and_reopen()

    @abstractmethod
    def _finish(self) -> None:
        """After healing, seek once more, and read everything from there on."""

    def _rest(self) -> None:
        """Do nothing: nothing is available and no seek is left."""

    @abstractmethod
    def _seek_somewhere(self) -> None: ...

    @abstractmethod
    def ask(self) -> None:
        """Ask whether more is available, or for the last message."""

    # --- answers --------------------------------------------------------------------------------------------

    def _expect(self, request: int, text: str = "") -> None:
        """INV-C7, INV-C15: the request ends in time, whatever happens."""
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
        """Allow the next seek after this one has timed out."""
        if incarnation == self.incarnation and request in self._seeks:
            self.world.rules.excuse(self.host.node.name, "SEEK-01")

    def _check_answered(self, request: int, incarnation: int) -> None:
        if incarnation == self.incarnation and self._awaits(request):
            rule = "INV-C7" if request in self._seeks else "INV-C15"
            raise ViolationError(rule, f"request {request} of {self.handle} is not answered in time")

    def _awaits(self, request: int) -> bool:
        return request in self._waiting

    def _check_all_answered(self) -> None:
        """INV-C14. The answer that a subscription is removed comes after the end of the consumer, and is a
        part of it."""
        if self._waiting:
            raise ViolationError("INV-C14", f"{self.handle} has ended; {self._waiting} were never answered")

    def _forget_waiting(self) -> None:
        self._seeks.clear()
        self._asked.clear()
        self._last_asked.clear()
        self._made_last_seek = False

    def _is_attached_again(self) -> None:
        if self.world.healed:
            self._later()


def message_position_of(message_id: MessageId) -> MessagePosition:
    ledger, entry, _, index = message_id[:4]
    return (ledger, entry, max(index, 0))
