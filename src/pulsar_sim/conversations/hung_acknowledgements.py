"""Acknowledgements whose receipts come late, in another order, or never (ACK-12).

Owns a model of confirmed flushes. A flush ends when every acknowledgement before it is confirmed. It fails
as soon as one of these is refused or has no receipt within the operation timeout. The next flush fails, too.
"""

from typing import TYPE_CHECKING

from pulsar_sansio.client.outputs import RequestDone, RequestFailed
from pulsar_sansio.model.errors import BrokerError, TimedOut
from pulsar_sansio.wire import proto

from ..engine.clock import SECOND
from .consuming import Consuming
from .raw_broker import RawBroker, T, entry_bytes

if TYPE_CHECKING:
    from ..engine.randomness import Stream

STEPS = 60


class HungAcknowledgements:
    """One consumer that sends each acknowledgement at once, and a broker that answers when it likes."""

    def __init__(self, raw: RawBroker, stream: "Stream") -> None:
        self._raw = raw
        self._stream = stream
        self._timeout = round(raw.config.operation_timeout * SECOND)
        self._consuming = Consuming(
            raw, acknowledgement_receipts=True, acknowledgement_group_time=0.0, receiver_queue_size=1000
        )
        self._entry = 0
        self._acks: dict[int, int] = {}
        """The deadline of each ACK without a receipt, by its number on the wire."""
        self._flushes: dict[int, set[int]] = {}
        """The ACKs that each flush waits for."""
        self._is_refused = False
        self._failed = 0

    def hold(self) -> None:
        steps = ((self._acknowledge, 30), (self._flush, 15), (self._confirm, 20), (self._wait, 20))
        for _ in range(STEPS):
            self._stream.weighted(steps)()
            raw, consuming = self._raw, self._consuming
            raw.taken(T.FLOW)
            raw.nothing()
            statistics = consuming.client.consumer_statistics(consuming.handle)
            raw.agree("acknowledgements sent", statistics.acknowledgements_sent, self._entry)
            raw.agree("acknowledgements failed", statistics.acknowledgements_failed, self._failed)

    def _acknowledge(self) -> None:
        raw, consuming = self._raw, self._consuming
        consuming.deliver(self._entry, entry_bytes(b"x", self._entry))
        consuming.forget_deliverable()
        message = consuming.receive()
        raw.call(consuming.client.acknowledge, consuming.handle, message)
        command = raw.expect(T.ACK, raw.now)
        raw.agree("acknowledged", [each[:2] for each in command.message_ids], [(1, self._entry)])
        self._acks[command.request_id] = raw.now + self._timeout
        self._entry += 1

    def _flush(self) -> None:
        raw, consuming = self._raw, self._consuming
        request = raw.call(consuming.client.flush_acknowledgements, consuming.handle)
        if self._is_refused:
            self._is_refused = False
            raw.agree("a flush after a refusal", raw.output(RequestFailed).request, request)
            return
        self._flushes[request] = set(self._acks)
        self._settle()

    def _confirm(self) -> None:
        """Send the receipt of an ACK, or refuse it."""
        if not self._acks:
            return
        raw = self._raw
        number = self._stream.choice(list(self._acks))
        answer = proto.CommandAckResponse(consumer_id=self._consuming.wire_id, request_id=number)
        refuses = self._stream.chance(200)
        if refuses:
            answer.error, answer.message = proto.ServerError.MetadataError, "refused"
        raw.send(T.ACK_RESPONSE, answer)
        del self._acks[number]
        if refuses:
            self._fail(number, BrokerError)
            return
        for awaited in self._flushes.values():
            awaited.discard(number)
        self._settle()

    def _settle(self) -> None:
        for request in [request for request, awaited in self._flushes.items() if not awaited]:
            del self._flushes[request]
            self._raw.agree("a flush", self._raw.output(RequestDone), RequestDone(request, None))

    def _fail(self, number: int, kind: type[Exception]) -> None:
        """Expect that the flushes fail that wait for an ACK."""
        self._failed += 1
        self._is_refused = True
        for request in [request for request, awaited in self._flushes.items() if number in awaited]:
            del self._flushes[request]
            failed = self._raw.output(RequestFailed)
            self._raw.agree("a flush that fails", failed.request, request)
            if not isinstance(failed.error, kind):
                self._raw.fail(f"flush {request} fails because of {failed.error!r}")

    def _wait(self) -> None:
        """Let time pass, often exactly until an ACK times out, or a moment less."""
        raw, stream = self._raw, self._stream
        moment = raw.now + stream.spread(1, self._timeout)
        if self._acks:
            due = min(self._acks.values())
            moment = stream.choice((moment, due, due - 1))
        while self._acks and (due := min(self._acks.values())) <= moment:
            raw.until(due - 1)
            raw.nothing()
            raw.until(due)
            for number in [number for number, deadline in self._acks.items() if deadline == due]:
                del self._acks[number]
                self._fail(number, TimedOut)
        raw.until(moment)
