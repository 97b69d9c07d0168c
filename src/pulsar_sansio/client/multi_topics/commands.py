"""`MultiTopicsCommands`: what an application asks of a consumer of several topics, and what that is for each.

Everything is the same for all topics: asked of every consumer, and put together. Which consumers there are,
and when the whole is open, is the group's business.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from ...model.config import ConsumerSpec
from ...model.errors import ClosedError, LocalProtocolError
from ...model.message_id import MessageId, TopicMessageId
from ...model.processing import AckHandler
from ..connecting.services import ClientContext, Services
from ..consuming.consumer import Consumer, called
from ..consuming.seeking import SeekTarget
from ..delivery.batch_receive import BatchReceive
from ..delivery.explaining import subscription
from ..delivery.merged_queue import MergedQueue
from ..explanation import Part, several
from ..letter_topics.letter_topics import Later
from ..outputs import RequestFailed
from ..statistics import ConsumerStatistics
from .ack_commands import MultiTopicsAckCommands
from .gathered_requests import GatheredRequests, nothing
from .member import Member
from .positions import anything, last_ids, seek_places


class MultiTopicsCommands(ABC):
    """What is between here and the members is the group's, which sets all of this."""

    queue: MergedQueue
    verdicts: MultiTopicsAckCommands
    _context: ClientContext
    _collecting: BatchReceive | None
    _member_spec: ConsumerSpec
    """What members that join are opened with."""
    _members: dict[str, Member]
    """Those that are subscribed, or will be again, by the names of their topics."""
    _alive: dict[Member, None]
    """All that have not ended."""
    _judge: AckHandler | None
    _former: ConsumerStatistics
    """Of those that have ended."""
    _requests: GatheredRequests
    _services: Services

    @abstractmethod
    def check_open(self) -> None:
        """Raise `ClosedError` once it is closing."""

    @abstractmethod
    def _describe(self) -> str:
        """The topics, in words."""

    def available(self) -> int:
        """Messages that `take` would give now."""
        return self.queue.available

    def explain(self) -> list[str]:
        """Say why nothing moves, if nothing does: each topic and partition has a line, up to a limit."""
        parts = [
            Part(each.name, each.ready and each.detached is None, each.consumer.explain())
            for each in self._alive
        ]
        return several(parts, "topics and partitions")

    @property
    def described(self) -> str:
        """The machine in words: for texts."""
        return called(self._member_spec, self._describe()) + subscription(self._member_spec)

    @property
    def subscribed(self) -> list[str]:
        """The topics and partitions it is subscribed to, or is again as soon as it is connected."""
        return sorted(member.name for member in self._members.values() if member.ready)

    def statistics(self) -> ConsumerStatistics:
        """Of all topics together, those included that have left (MULTI-35)."""
        return sum((member.consumer.statistics() for member in self._alive), self._former)

    def checkpoint(self) -> dict[str, MessageId]:
        """See `Consumer`; of every topic."""
        places: dict[str, MessageId] = {}
        for member in self._members.values():
            places.update(member.consumer.checkpoint())
        return places

    def check_collecting(self) -> None:
        """See `Consumer`."""
        self.check_open()
        if self._collecting is None:
            raise LocalProtocolError(f"the consumer on {self._describe()} has no batch_receive policy")

    def collect(self, request: int) -> None:
        """See `Consumer`; of all topics together."""
        assert self._collecting is not None
        self._collecting.ask(request)

    def set_ack_handler(self, judge: AckHandler) -> None:
        """See `Consumer`."""
        self._judge = judge
        for member in self._alive:
            member.consumer.set_ack_handler(judge)

    def pause(self) -> None:
        """See `Consumer`; all topics, and those that join (MULTI-28)."""
        self.check_open()
        self._member_spec = replace(self._member_spec, start_paused=True)
        for member in self._members.values():
            member.consumer.pause()

    def resume(self) -> None:
        """See `Consumer`; all topics."""
        self.check_open()
        self._member_spec = replace(self._member_spec, start_paused=False)
        for member in self._members.values():
            member.consumer.resume()

    def redeliver_unacknowledged(self) -> None:
        """See `Consumer`; in all topics (MULTI-27)."""
        self.check_open()
        for member in self._members.values():
            member.consumer.redeliver_unacknowledged()

    def flush_acknowledgements(self, request: int) -> None:
        """See `Consumer`; done when all topics' are."""
        self.ask_all(request, lambda consumer: consumer.flush_acknowledgements(request))

    def ask_all(
        self,
        request: int,
        question: Callable[[Consumer], None],
        together: Callable[[Mapping[str, Any]], Any] = nothing,
        of_its_place: bool = False,
    ) -> None:
        """Ask every consumer under this request id; the application is told what `together` makes of the
        results by topic, or the first error. `question` raises before it has changed anything, or not at
        all. `of_its_place`: an answer says something of where the consumer is."""
        self.check_open()
        names = list(self._members)

        def ask_one(name: str) -> None:
            question(self._members[name].consumer)

        def ask() -> None:
            for name in names:
                ask_one(name)

        again = ask_one if of_its_place else None
        self._requests.ask(request, names, ask, together, self._context.emit, again)

    def reconsume_later(self, request: int, what: Later) -> None:
        """See `Consumer`; all before it are those of one topic, or partition (ACK-25)."""
        for consumer, _ in self.verdicts.spread_one(what.message):
            ask = partial(consumer.reconsume_later, request, what)

            self._requests.ask(request, [str(consumer.topic)], ask, nothing, self._context.emit)
            return
        gone = ClosedError(f"the consumer is not subscribed to {what.message.topic} any more")
        self._context.emit(RequestFailed(request, gone))

    def prepare_seek(self, target: SeekTarget | TopicMessageId, inclusive: bool) -> Callable[[int], None]:
        """See `Consumer`, and `seek_places`; gives what begins it, to be called with the request's id."""
        self.check_open()
        places = seek_places(self._members.values(), self.verdicts, target)

        def begin(request: int) -> None:
            def ask() -> None:
                if self._collecting is not None:
                    self._collecting.over = False
                for name, (consumer, place) in places.items():
                    self._members[name].end_of_topic = False
                    consumer.seek(request, place, inclusive)
                    self._requests.moved(name)

            self._requests.ask(request, list(places), ask, nothing, self._context.emit)

        return begin

    def check_last_message(self) -> None:
        """Raise where one of the topics has no such thing as a last message."""
        self.check_open()
        for member in self._members.values():
            member.consumer.check_last_message()

    def last_message_id(self, request: int) -> None:
        """`RequestDone` with a list of `TopicMessageId`, by the names of the topics."""
        self.ask_all(request, lambda consumer: consumer.last_message_id(request), last_ids)

    def last_position(self, request: int) -> None:
        """`RequestDone` with a `LastPosition` for each topic, by their names."""
        self._ask_places(request, Consumer.last_position, dict)

    def has_message_available(self, request: int) -> None:
        """`RequestDone` with whether any topic has a message after those handed out."""
        self._ask_places(request, Consumer.has_message_available, anything)

    def _ask_places(
        self,
        request: int,
        question: Callable[[Consumer, int, int], None],
        together: Callable[[Mapping[str, Any]], Any],
    ) -> None:
        """Ask about where every consumer is. One that is moved before all have answered is asked anew, and
        has what is left of the time (CONN-12)."""
        deadline = self._context.now + self._services.durations.operation_timeout
        self.ask_all(
            request, lambda consumer: question(consumer, request, deadline), together, of_its_place=True
        )
