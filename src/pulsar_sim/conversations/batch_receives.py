"""Applications that wait for several messages at once (CONS-41).

Owns a model of the requests: each is answered at the moment when messages are enough for it, in the order of
asking, and one at a time. What is taken then stays within the policy.
"""

from typing import TYPE_CHECKING

from pulsar_sansio.client.outputs import Deliverable, EndOfTopic, RequestDone
from pulsar_sansio.model.config import BatchReceivePolicy
from pulsar_sansio.wire import proto

from ..engine.clock import SECOND
from .consuming import Consuming
from .raw_broker import RawBroker, T, batch_bytes, entry_bytes

if TYPE_CHECKING:
    from ..engine.randomness import Stream

STEPS = 50


class BatchReceives:
    """One consumer with a policy."""

    def __init__(self, raw: RawBroker, stream: "Stream") -> None:
        self._raw = raw
        self._stream = stream
        self._most = stream.choice((None, 1, 3, 5))
        self._bytes = stream.choice((None, 1, 12, 30))
        self._timeout = stream.choice((0, SECOND // 10, 3 * SECOND)) if self._most or self._bytes else SECOND
        policy = BatchReceivePolicy(self._most, self._bytes, self._timeout / SECOND)
        self._consuming = Consuming(raw, receiver_queue_size=stream.choice((1, 4, 100)), batch_receive=policy)
        self._at_broker = self._consuming.spec.receiver_queue_size
        self._entry = 0
        self._queue: list[bytes] = []
        self._items: list[list[bytes]] = []
        """The entries in the queue, with the messages of each. The bytes of an entry count until its last
        message is taken."""
        self._waiting: list[tuple[int, int | None]] = []
        """Each request and its deadline."""
        self._announced: int | None = None
        """The request that was answered, until messages are taken."""
        self._is_over = False

    def hold(self) -> None:
        steps = ((self._deliver, 30), (self._ask, 20), (self._take, 20), (self._abandon, 5), (self._wait, 20))
        for _ in range(STEPS):
            self._stream.weighted(steps)()
            self._check()
        self._end_topic()

    # --- what happens ---

    def _deliver(self) -> None:
        stream = self._stream
        if self._at_broker <= 0:
            return
        payloads = [b"x" * stream.below(12) for _ in range(stream.choice((1, 1, 3)))]
        self._at_broker -= len(payloads)
        self._queue += payloads
        self._items.append(payloads)
        if len(payloads) == 1:
            stored = entry_bytes(payloads[0], self._entry)
        else:
            stored = batch_bytes(payloads, self._entry)
        self._consuming.deliver(self._entry, stored)
        self._entry += 1
        self._look(self._raw.now)

    def _ask(self) -> None:
        raw = self._raw
        request = raw.call(self._consuming.client.batch_receive, self._consuming.handle)
        self._waiting.append((request, raw.now + self._timeout if self._timeout else None))
        self._look(raw.now)

    def _take(self) -> None:
        raw, consuming = self._raw, self._consuming
        messages = list(raw.call(consuming.client.take, consuming.handle, 1000))
        if not self._queue:
            raw.agree("messages of an empty queue", messages, [])
        count = min(len(self._queue), self._most or 1000)
        while self._bytes and count > 1 and sum(map(len, self._queue[:count])) > self._bytes:
            count -= 1
        raw.agree("messages", [each.payload for each in messages], self._queue[:count])
        del self._queue[:count]
        while sum(map(len, self._items[1:])) >= len(self._queue) and self._items:
            del self._items[0]
        self._announced = None
        for command in raw.taken(T.FLOW):
            self._at_broker += command.message_permits
        self._look(raw.now)

    def _abandon(self) -> None:
        requests = [request for request, _ in self._waiting]
        requests += [self._announced] if self._announced is not None else []
        if not requests:
            return
        raw = self._raw
        request = self._stream.choice(requests)
        self._waiting = [each for each in self._waiting if each[0] != request]
        if request == self._announced:
            self._announced = None
        raw.call(self._consuming.client.abandon, request)
        self._look(raw.now)

    def _wait(self) -> None:
        """Let time pass, often exactly until the first request is answered, or a moment less."""
        raw, stream = self._raw, self._stream
        moment = raw.now + stream.spread(1, SECOND)
        due = self._waiting[0][1] if self._waiting else None
        if due is not None and due > raw.now:
            moment = stream.choice((moment, due, due - 1))
        if due is not None and raw.now < due <= moment:
            raw.until(due)
            self._look(due)
        raw.until(moment)

    def _end_topic(self) -> None:
        """Expect that every request is answered, because no more messages come."""
        raw, consuming = self._raw, self._consuming
        raw.send(T.REACHED_END_OF_TOPIC, proto.CommandReachedEndOfTopic(consumer_id=consuming.wire_id))
        self._is_over = True
        while not any(isinstance(each, EndOfTopic) for each in raw.outputs):
            if not self._queue:
                raw.fail("the topic has ended, and the client does not say it")
            self._take()
        answered = [each.request for each in raw.outputs if isinstance(each, RequestDone)]
        raw.agree("requests at the end of the topic", answered, [request for request, _ in self._waiting])
        self._waiting.clear()

    # --- the model ---

    def _look(self, now: int) -> None:
        """Expect the answer of the first request, if messages are enough for it."""
        raw = self._raw
        while raw.outputs and raw.outputs[0] == Deliverable(self._consuming.handle):
            raw.outputs.popleft()
        if self._is_over or not self._waiting or self._announced is not None:
            return
        request, due = self._waiting[0]
        if not self._queue:
            return
        is_enough = (
            (due is not None and due <= now)
            or self._at_broker <= 0
            or (self._most is not None and len(self._queue) >= self._most)
            or (self._bytes is not None and self._bytes_waiting >= self._bytes)
        )
        if is_enough:
            del self._waiting[0]
            self._announced = request
            raw.agree("an answer", raw.output(RequestDone), RequestDone(request, None))
            self._consuming.forget_deliverable()

    @property
    def _bytes_waiting(self) -> int:
        return sum(len(payload) for item in self._items for payload in item)

    def _check(self) -> None:
        raw = self._raw
        self._consuming.forget_deliverable()
        raw.nothing()
        raw.agree("available", self._consuming.client.available(self._consuming.handle), len(self._queue))
