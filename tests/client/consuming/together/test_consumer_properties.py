"""Random histories: non-durable subscriptions get everything once, and permits are conserved."""

from hypothesis import given, settings
from hypothesis import strategies as st

from pulsar_sansio.model.config import SubscriptionType
from pulsar_sansio.model.message import Message
from pulsar_sansio.model.message_id import MessageId
from pulsar_sansio.wire import EncryptionKey
from tests.client.broker_script import SECOND, ConsumerScript, entry_bytes
from tests.client.consuming.consumer_script import started


@settings(max_examples=60)
@given(
    st.lists(st.integers(0, 3), min_size=1, max_size=6),
    st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4), st.booleans()), max_size=6),
)
def test_a_subscription_that_is_not_durable_gets_everything_once_over_any_reconnects(
    sizes: list[int], rounds: list[tuple[int, int, bool]]
) -> None:
    """CONS-16, INV-C3, against a broker that begins with the entry it is told to begin with."""
    s = started(durable=False, start_message_id=MessageId(1, -1), receiver_queue_size=100)
    received: list[tuple[int, int]] = []

    def deliver(first: int, count: int) -> None:
        for entry in range(max(first, 0), min(first + count, len(sizes))):
            if sizes[entry]:
                s.batch(entry, sizes[entry])
            else:
                s.message(entry)

    def take(count: int) -> None:
        received.extend((message.message_id.entry_id, message.batch_index) for message in s.take(count))

    following = 0
    for arriving, taken, twice in rounds:
        deliver(following, arriving)
        take(taken)
        s.lose()
        take(1)
        s.pass_time(SECOND)
        if twice:  # an attempt that comes to nothing
            s.lose()
            s.pass_time(SECOND)
        start = s.accept().start_message_id.entryId
        following = 0 if start == 2**64 - 1 else start
    deliver(following, len(sizes) + 1)
    take(1000)
    assert received == [
        (entry, index) for entry, size in enumerate(sizes) for index in (range(size) if size else [-1])
    ]


steps = st.lists(
    st.tuples(
        st.sampled_from(
            [
                *("single", "batch", "partial", "corrupt", "encrypted", "again"),
                *("receive", "take", "acknowledge", "nack", "redeliver", "time", "reconnect", "unload"),
            ]
        ),
        st.integers(0, 9),
    ),
    max_size=50,
)


class PermitBroker:
    """The broker's count of one consumer's permits: FLOW adds, every entry costs its messages."""

    def __init__(self, s: ConsumerScript) -> None:
        self.s = s
        self.permits = 0
        self.next_entry = 0
        self.sent: list[tuple[int, int]] = []

    def read(self) -> None:
        for name, command in self.s.frames():
            if name == "FLOW":
                assert command.message_permits > 0  # FLOW-08
                self.permits += command.message_permits

    def send(self, kind: str, number: int) -> None:
        if self.permits <= 0:
            return
        s, entry = self.s, self.next_entry
        if kind == "again" and self.sent:
            entry, number = self.sent[number % len(self.sent)]
            kind = "batch" if number else "single"
        else:
            self.next_entry += 1
        if kind == "batch" and number:
            s.batch(entry, number)
            self.permits -= number
            self.sent.append((entry, number))
        elif kind == "partial" and number:
            bits = 0b0110100101 & ((1 << number) - 1)
            s.batch(entry, number, ack_set=bits)
            self.permits -= bits.bit_count()
        elif kind == "corrupt":
            s.deliver(entry, entry_bytes(b"x")[:-1] + b"y")
            self.permits -= 1
        elif kind == "encrypted":
            keys = [EncryptionKey("k", b"v")]
            s.deliver(entry, entry_bytes(b"x", encryption_keys=keys, num_messages_in_batch=4))
            self.permits -= 4
        else:
            s.message(entry)
            self.permits -= 1
            self.sent.append((entry, 0))


@settings(max_examples=60)
@given(st.sampled_from(list(SubscriptionType)), st.integers(1, 12), st.booleans(), steps)
def test_permits_are_conserved(
    kind: SubscriptionType, queue_size: int, index_acknowledgement: bool, moves: list[tuple[str, int]]
) -> None:
    """INV-C6: whatever happens to messages, the broker may send as many as the queue has room for. Rule
    FLOW-11."""
    s = started(
        subscription_type=kind,
        receiver_queue_size=queue_size,
        batch_index_acknowledgement=index_acknowledgement,
        negative_acknowledgement_delay=0.5,
    )
    broker = PermitBroker(s)
    broker.permits = queue_size
    held: list[Message] = []
    for move, number in moves:
        if move == "receive":
            message = s.receive()
            held += [message] if message else []
        elif move == "take":
            held += s.take(number)
        elif move == "acknowledge" and held:
            s.acknowledge(held.pop(number % len(held)))
        elif move == "nack" and held:
            s.negative_acknowledge(held[number % len(held)])
        elif move == "redeliver":
            s.redeliver()
        elif move == "time":
            s.pass_time(SECOND)
        elif move in ("reconnect", "unload"):
            broker.permits = 0
            if move == "reconnect":
                s.lose()
            else:
                s.close_by_broker()
            s.pass_time(2 * SECOND)
            s.accept()
        else:
            broker.send(move, number)
        broker.read()
        permits = s.machine.permits
        assert permits.at_broker == broker.permits
        assert broker.permits + s.client.available(s.consumer) <= queue_size
    held += s.take()
    broker.read()
    assert broker.permits + permits.unreported == queue_size if moves else True
    assert broker.permits > 0
