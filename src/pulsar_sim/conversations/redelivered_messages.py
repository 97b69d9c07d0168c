"""Messages that are acknowledged, negatively acknowledged, or left alone: when each request is made.

Owns a model of one Shared consumer with exact moments. Acknowledgement timeouts go in ticks (UNACK-02,
UNACK-05), delays of negative acknowledgements in tenths of the delay (NACK-01, NACK-02), and
acknowledgements in groups (ACK-12, ACK-15). Messages arrive again while an earlier delivery is acknowledged
(ACK-18). Every entry has one message.
"""

from typing import TYPE_CHECKING

from pulsar_sansio.model.config import RedeliveryBackoff
from pulsar_sansio.model.message import Message
from pulsar_sansio.wire import proto

from ..engine.clock import MILLISECOND, SECOND
from .consuming import Consuming
from .raw_broker import RawBroker, T, entry_bytes

if TYPE_CHECKING:
    from ..engine.randomness import Stream

STEPS = 60
BACKOFF = RedeliveryBackoff(0.25, 1.0, 2.0)
BACKOFF_DELAYS = (SECOND // 4, SECOND // 2, SECOND)
"""By redelivery count."""

LONGEST_TICK = 100 * MILLISECOND

Position = tuple[int, int]


class RedeliveredMessages:
    """One consumer that receives, decides and waits at random."""

    def __init__(self, raw: RawBroker, stream: "Stream") -> None:
        self._raw = raw
        self._stream = stream
        self._timeout = stream.choice((0, SECOND, 5 * SECOND // 2))
        self._tick = stream.choice((SECOND // 2, SECOND))
        self._delays = stream.choice(((MILLISECOND,), (SECOND // 2,), (3 * SECOND,), BACKOFF_DELAYS))
        self._extra = BACKOFF_DELAYS if self._timeout and stream.chance(400) else (0,)
        self._group_time = stream.choice((0, SECOND // 3))
        self._group_size = stream.between(1, 4)
        self._has_receipts = stream.chance(500)
        self._consuming = Consuming(
            raw,
            receiver_queue_size=1000,
            acknowledgement_timeout=self._timeout / SECOND,
            acknowledgement_timeout_tick=self._tick / SECOND,
            acknowledgement_timeout_backoff=BACKOFF if self._extra is BACKOFF_DELAYS else None,
            negative_acknowledgement_delay=self._delays[0] / SECOND,
            negative_acknowledgement_backoff=BACKOFF if self._delays is BACKOFF_DELAYS else None,
            acknowledgement_group_time=self._group_time / SECOND,
            acknowledgement_group_size=self._group_size,
            acknowledgement_receipts=self._has_receipts,
        )
        self._counts: dict[Position, int] = {}
        """Every entry that was delivered, with its redelivery count."""
        self._requested: list[Position] = []
        """Entries that are going to be delivered again."""
        self._queue: list[Position] = []
        self._held: list[Message] = []
        """Messages that the application has received and not acknowledged."""
        self._acknowledged: set[Position] = set()
        self._expired: set[Position] = set()
        """Entries that have timed out."""
        self._connections = 0
        self._received_on: dict[int, int] = {}
        """The connection on which each message was received, by its id in Python."""
        self._times_out: dict[Position, int] = {}
        self._refused: dict[Position, int] = {}
        self._waiting: list[Position] = []
        """Acknowledgements that are not sent."""
        self._sent_at = 0
        """The moment at which the waiting acknowledgements are sent."""
        self._duplicates = 0
        self._received = 0

    def hold(self) -> None:
        steps = (
            (self._deliver, 30),
            (self._deliver_again, 20),
            (self._receive, 35),
            (self._acknowledge, 15),
            (self._refuse, 15),
            (self._wait, 30),
            (self._reattach, 2),
            (self._redeliver_all, 2),
        )
        for _ in range(STEPS):
            self._stream.weighted(steps)()
            self._check()

    # --- what happens ---

    def _deliver(self) -> None:
        position = (1, len(self._counts))
        self._counts[position] = 0
        self._bring(position)

    def _deliver_again(self) -> None:
        """Deliver an entry that was requested, unless the broker has its acknowledgement."""
        if not self._requested:
            return
        position = self._requested.pop(self._stream.below(len(self._requested)))
        if position not in self._acknowledged or position in self._waiting:
            self._counts[position] += 1
            self._bring(position)

    def _bring(self, position: Position) -> None:
        if position in self._acknowledged:
            self._duplicates += 1
        else:
            self._queue.append(position)
        stored = entry_bytes(b"%d" % position[1], position[1])
        self._consuming.deliver(position[1], stored, self._counts[position])
        self._consuming.forget_deliverable()

    def _receive(self) -> None:
        message = self._consuming.receive()
        self._consuming.forget_deliverable()
        if not self._queue:
            self._raw.agree("a message of an empty queue", message, None)
            return
        position = self._queue.pop(0)
        if message is None or message.entry.position != position or message.payload != b"%d" % position[1]:
            self._raw.fail(f"{position} is expected, and {message} comes")
            return
        self._raw.agree("redeliveries", message.redelivery_count, self._counts[position])
        self._received += 1
        self._held.append(message)
        self._received_on[id(message)] = self._connections
        if self._timeout:
            self._times_out[position] = self._expiry(self._counts[position])

    def _expiry(self, count: int) -> int:
        tick, began = self._tick, self._consuming.began
        extra = self._extra[min(count, len(self._extra) - 1)]
        ticks = (self._raw.now - began) // tick + -(-self._timeout // tick) + 1 + -(-extra // tick)
        return began + ticks * tick

    def _acknowledge(self) -> None:
        if not self._held:
            return
        raw, client, handle = self._raw, self._consuming.client, self._consuming.handle
        message = self._stream.choice(self._held)
        position = message.entry.position
        self._held = [each for each in self._held if each.entry.position != position]
        self._acknowledged.add(position)
        if position not in self._waiting:  # a later delivery of it was in the queue
            self._waiting.append(position)
        if not self._sent_at:
            self._sent_at = raw.now + self._group_time
        self._times_out.pop(position, None)
        self._refused.pop(position, None)
        form = self._stream.below(3)
        is_old = self._received_on.pop(id(message)) < self._connections and form != 2
        if position in self._queue and (is_old or position in self._expired):
            self._queue.remove(position)
            self._duplicates += 1
        self._expired.discard(position)
        if form == 0:
            raw.call(client.acknowledge, handle, message)
        elif form == 1:
            raw.call(client.acknowledge, handle, [message])
        else:
            raw.call(client.acknowledge, handle, message.message_id)
        if not self._group_time or len(self._waiting) >= self._group_size:
            self._expect_acknowledgements(raw.now)

    def _refuse(self) -> None:
        if not self._held:
            return
        raw = self._raw
        message = self._stream.choice(self._held)
        position = message.entry.position
        self._times_out.pop(position, None)
        delay = self._delays[min(message.redelivery_count, len(self._delays) - 1)]
        tick = max(1, min(delay // 10, LONGEST_TICK))
        due = -(-(raw.now + delay) // tick) * tick
        if position not in self._waiting:  # else it was acknowledged while a later delivery was in the queue
            self._refused[position] = min(due, self._refused.get(position, due))
        raw.call(self._consuming.client.negative_acknowledge, self._consuming.handle, message)

    def _wait(self) -> None:
        """Let time pass, often exactly until something is due or a moment less."""
        raw, stream = self._raw, self._stream
        moment = raw.now + stream.spread(1, 2 * SECOND)
        dues = [*self._times_out.values(), *self._refused.values()] + [self._sent_at] * bool(self._sent_at)
        if dues:
            moment = stream.choice((moment, min(dues), min(dues) - 1))
        raw.until(moment)
        while dues := sorted(self._due_moments()):
            if dues[0] > raw.now:
                break
            self._expire(dues[0])

    def _due_moments(self) -> set[int]:
        found = {*self._times_out.values(), *self._refused.values()}
        return found | ({self._sent_at} if self._sent_at else set())

    def _expire(self, moment: int) -> None:
        """Expect everything that is due at that moment."""
        wanted: set[Position] = set()
        for dues in (self._times_out, self._refused):
            for position in [each for each, due in dues.items() if due == moment]:
                dues.pop(position, None)
                if position not in self._queue:
                    wanted.add(position)
                    if dues is self._times_out:
                        self._expired.add(position)
        if self._sent_at == moment or (wanted and self._waiting):
            self._expect_acknowledgements(moment)
        if wanted:
            self._expect_requests(moment, wanted)

    def _expect_acknowledgements(self, at: int) -> None:
        found: list[tuple[int, int]] = []
        while len(found) < len(self._waiting):
            command = self._raw.expect(T.ACK, at)
            found += [each[:2] for each in command.message_ids]
            self._raw.agree("a receipt is wanted", command.request_id is not None, self._has_receipts)
            if command.request_id is not None:
                answer = proto.CommandAckResponse(
                    consumer_id=self._consuming.wire_id, request_id=command.request_id
                )
                self._raw.send(T.ACK_RESPONSE, answer)
        self._raw.agree("acknowledged", sorted(found), sorted(self._waiting))
        self._waiting.clear()
        self._sent_at = 0

    def _expect_requests(self, at: int, wanted: set[Position]) -> None:
        for position in wanted:
            self._times_out.pop(position, None)
            self._refused.pop(position, None)
        self._requested += sorted(wanted.difference(self._requested))
        while wanted:
            command = self._raw.expect(T.REDELIVER_UNACKNOWLEDGED_MESSAGES, at)
            found = {(each.ledgerId, each.entryId) for each in command.message_ids}
            if not found or not found <= wanted:
                self._raw.fail(f"{found} is requested, and {wanted} expected")
            wanted = wanted - found

    def _reattach(self) -> None:
        raw = self._raw
        waiting, self._waiting, self._sent_at = self._waiting, [], 0
        self._forget()
        self._connections += 1
        raw.lose()
        raw.pass_time(2)
        self._consuming.accept()
        self._waiting = waiting
        self._expect_acknowledgements(raw.now)
        self._consuming.expect_grant()
        raw.outputs.clear()

    def _redeliver_all(self) -> None:
        raw = self._raw
        self._forget()
        raw.call(self._consuming.client.redeliver_unacknowledged, self._consuming.handle)
        self._consuming.forget_deliverable()
        self._expect_acknowledgements(raw.now)
        command = raw.expect(T.REDELIVER_UNACKNOWLEDGED_MESSAGES, raw.now)
        raw.agree("positions in a request for everything", len(command.message_ids), 0)

    def _forget(self) -> None:
        """Everything that is not acknowledged is going to be delivered again unasked."""
        self._queue.clear()
        self._expired.clear()
        self._times_out.clear()
        self._refused.clear()
        self._requested = [each for each in self._counts if each not in self._acknowledged]

    # --- the rest ---

    def _check(self) -> None:
        raw, consuming = self._raw, self._consuming
        raw.taken(T.FLOW)
        raw.nothing()
        raw.agree("available", consuming.client.available(consuming.handle), len(self._queue))
        consuming.check_counters(duplicates=self._duplicates)
        statistics = consuming.client.consumer_statistics(consuming.handle)
        raw.agree("messages received", statistics.messages_received, self._received)
        raw.agree("available", statistics.available, len(self._queue))
