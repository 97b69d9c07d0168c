"""Questions that a broker answers late, in another order, or never.

Owns a model of the questions for the last message: each ends exactly once, with its own answer, with the
broker's refusal, or with `TimedOut` exactly after the operation timeout. A lost connection does not end a
question, which keeps its deadline.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pulsar_sansio.client.outputs import Detached, RequestDone, RequestFailed
from pulsar_sansio.model.errors import BrokerError, TimedOut
from pulsar_sansio.model.message_id import MessageId
from pulsar_sansio.wire import proto

from ..engine.clock import SECOND
from .consuming import Consuming
from .raw_broker import RawBroker, T

if TYPE_CHECKING:
    from ..engine.randomness import Stream

STEPS = 50


@dataclass
class _Question:
    """A request of the application. `asked`: the number on the wire."""

    request: int
    deadline: int
    asked: int | None = None


class HungQuestions:
    """One consumer that asks, and a broker that answers when it likes."""

    def __init__(self, raw: RawBroker, stream: "Stream") -> None:
        self._raw = raw
        self._stream = stream
        self._client = raw.client
        self._timeout = round(raw.config.operation_timeout * SECOND)
        self._consuming = Consuming(raw)
        self._open: list[_Question] = []

    def hold(self) -> None:
        steps = (
            (self._ask, 30),
            (self._answer, 15),
            (self._refuse, 5),
            (self._wait, 25),
            (self._reattach, 2),
        )
        for _ in range(STEPS):
            self._stream.weighted(steps)()
            self._raw.taken(T.FLOW)
            self._raw.nothing()

    # --- what happens ---

    def _ask(self) -> None:
        raw = self._raw
        request = raw.call(self._client.last_message_id, self._consuming.handle)
        question = _Question(request, raw.now + self._timeout)
        question.asked = raw.expect(T.GET_LAST_MESSAGE_ID, raw.now).request_id
        self._open.append(question)

    def _answer(self) -> None:
        if not self._open:
            return
        raw, question = self._raw, self._stream.choice(self._open)
        self._open.remove(question)
        answer = proto.CommandGetLastMessageIdResponse(request_id=question.asked)
        entry, index = self._stream.below(1000), self._stream.choice((-1, 0, 3))
        answer.last_message_id.ledgerId, answer.last_message_id.entryId = 7, entry
        answer.last_message_id.batch_index = index
        raw.send(T.GET_LAST_MESSAGE_ID_RESPONSE, answer)
        done = raw.output(RequestDone)
        raw.agree("the request", done.request, question.request)
        raw.agree("the last message", (*done.result,), (*MessageId(7, entry, -1, index, index + 1),))

    def _refuse(self) -> None:
        if self._open:
            question = self._stream.choice(self._open)
            self._open.remove(question)
            error = proto.CommandError(
                request_id=question.asked, error=proto.ServerError.MetadataError, message="refused"
            )
            self._raw.send(T.ERROR, error)
            self._failed(question, BrokerError)

    def _failed(self, question: _Question, kind: type[Exception]) -> None:
        failed = self._raw.output(RequestFailed)
        self._raw.agree("the request", failed.request, question.request)
        if not isinstance(failed.error, kind):
            self._raw.fail(f"request {question.request} fails because of {failed.error!r}")

    def _wait(self) -> None:
        """Let time pass, often exactly until a question is over, or a moment less."""
        raw, stream = self._raw, self._stream
        moment = raw.now + stream.spread(1, self._timeout)
        if self._open:
            due = min(each.deadline for each in self._open)
            moment = stream.choice((moment, due, due - 1))
        while self._open and (due := min(each.deadline for each in self._open)) <= moment:
            raw.until(due - 1)
            raw.nothing()
            raw.until(due)
            over = [each for each in self._open if each.deadline == due]
            self._open = [each for each in self._open if each.deadline != due]
            self._time_out(over)
        raw.until(moment)

    def _time_out(self, over: list[_Question]) -> None:
        raw = self._raw
        requests = sorted(each.request for each in over)
        failed = [raw.output(RequestFailed) for _ in over]
        raw.agree("requests that time out", sorted(each.request for each in failed), requests)
        for each in failed:
            if not isinstance(each.error, TimedOut) or not str(each.error):
                raw.fail(f"request {each.request} times out as {each.error!r}")

    def _reattach(self) -> None:
        """Lose the connection: questions are asked once more, and acknowledgements are sent again."""
        raw = self._raw
        raw.lose()
        raw.output(Detached)
        until = min([raw.now + 2 * SECOND, *(each.deadline - 1 for each in self._open)])
        raw.until(until)
        if not any(kind == T.SUBSCRIBE for _, kind, _ in raw.frames):
            self._open = [each for each in self._open if each.deadline > raw.now + 2 * SECOND]
            raw.pass_time(2)
            raw.outputs.clear()
        self._consuming.accept()
        self._read_again()
        raw.outputs.clear()

    def _read_again(self) -> None:
        """Learn the new numbers on the wire."""
        raw = self._raw
        frames: list[Any] = raw.taken(T.GET_LAST_MESSAGE_ID)
        raw.agree("questions that are asked again", len(frames), len(self._open))
        for question, frame in zip(self._open, frames, strict=True):
            question.asked = frame.request_id
