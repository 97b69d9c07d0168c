"""A consumer in conversation with a raw broker."""

from typing import Any

from pulsar_sansio.client.outputs import ConsumerReady, Deliverable
from pulsar_sansio.model.config import ConsumerSpec
from pulsar_sansio.model.message import Message

from .raw_broker import RawBroker, T

TOPIC = "persistent://public/default/raw"


class Consuming:
    """One consumer of one topic, and the broker's end of it."""

    def __init__(self, raw: RawBroker, **spec: Any) -> None:
        self.raw = raw
        self.client = raw.client
        self.spec = ConsumerSpec(topic=TOPIC, subscription="raw", **spec)
        self.began = raw.now
        """The moment at which the consumer was opened."""
        self.handle: int = raw.call(self.client.subscribe, self.spec)
        self.wire_id = 0
        self.accept()
        self.expect_grant()
        raw.said(ConsumerReady(self.handle, TOPIC))

    def accept(self) -> None:
        """Accept SUBSCRIBE."""
        command = self.raw.expect(T.SUBSCRIBE)
        self.wire_id = command.consumer_id
        self.raw.succeed(command)

    def expect_grant(self) -> None:
        """FLOW-02: the first permits are as many as the receiver queue holds."""
        granted = self.raw.expect(T.FLOW, self.raw.now).message_permits
        self.raw.agree("the first grant", granted, self.spec.receiver_queue_size)

    def reattach(self) -> None:
        """Lose the connection, and accept the consumer on another one."""
        raw = self.raw
        raw.lose()
        raw.frames.clear()
        raw.pass_time(2)
        self.accept()
        raw.outputs.clear()

    def deliver(self, entry: int, stored: bytes, redelivery_count: int = 0, **fields: Any) -> None:
        """Deliver an entry of ledger 1."""
        self.raw.message(self.wire_id, entry, stored, redelivery_count=redelivery_count, **fields)

    def receive(self) -> Message | None:
        message: Message | None = self.raw.call(self.client.receive, self.handle)
        return message

    def take_all(self) -> list[Message]:
        """Take what is in the queue, and forget that the client has told of it."""
        messages = list(self.raw.call(self.client.take, self.handle, 1_000_000))
        self.forget_deliverable()
        return messages

    def forget_deliverable(self) -> None:
        """Expect no output but `Deliverable`."""
        outputs = self.raw.outputs
        while outputs and outputs[0] == Deliverable(self.handle):
            outputs.popleft()

    def acknowledged(self) -> set[tuple[int, int]]:
        """Return the positions in the ACKs that have come, which name whole entries."""
        return {each[:2] for ack in self.raw.taken(T.ACK) for each in ack.message_ids}

    def requested(self) -> list[tuple[int, set[tuple[int, int]]]]:
        """Return the moment and the positions of each request for redelivery that has come."""
        raw = self.raw
        kind = T.REDELIVER_UNACKNOWLEDGED_MESSAGES
        found = [
            (at, {(each.ledgerId, each.entryId) for each in command.message_ids})
            for at, each_kind, command in raw.frames
            if each_kind == kind
        ]
        raw.taken(kind)
        return found

    def check_counters(self, **expected: Any) -> None:
        """Expect these counters of arrivals, and 0 in all others that count."""
        counters = self.client.arrival_counters(self.handle)
        for name in counters.__slots__:
            found = getattr(counters, name)
            if name in expected or type(found) is int:
                self.raw.agree(name, found, expected.get(name, 0))
