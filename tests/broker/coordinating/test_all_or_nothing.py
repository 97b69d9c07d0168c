"""Transactions against a model: all or nothing, in order, over restarts, with every type of subscription."""

from hypothesis import given, settings
from hypothesis import strategies as st

from pulsar_sansio.wire import proto, unpack_payload
from tests.broker.peer import Peer, SubType, Type, World
from tests.broker.transacting import InTransaction

KINDS = [SubType.Exclusive, SubType.Failover, SubType.Shared, SubType.Key_Shared]
OUTSIDE = 3
"""The number that stands for no transaction."""

Step = tuple[str, int, int]
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["publish", "acknowledge", "acknowledge", "commit", "abort", "restart", "redeliver"]),
        st.integers(0, OUTSIDE),
        st.integers(0, 20),
    ),
    max_size=30,
)


class Play:
    """A broker and the model of what it must do."""

    def __init__(self, kind: SubType) -> None:
        self.kind = kind
        self.world = World()
        self.published: list[bytes] = []
        self.unsettled: dict[bytes, int] = {}
        """Message -> its open transaction."""
        self.aborted: set[bytes] = set()
        self.acknowledged: set[bytes] = set()
        self.taken: dict[bytes, int] = {}
        """Message -> the open transaction that acknowledged it."""
        self.delivered: dict[bytes, tuple[int, int]] = {}
        self.open: dict[int, InTransaction] = {}
        self.peer = self.connect()

    def connect(self) -> Peer:
        peer = self.world.connect()
        peer.producer()
        peer.subscribe(self.kind)
        self.world.advance(1)
        for transaction in self.open.values():
            transaction.peer = peer
        return peer

    def transaction(self, number: int) -> InTransaction:
        if number not in self.open:
            transaction = self.open[number] = InTransaction(self.peer, timeout=3_600_000)
            transaction.join_topic()
            transaction.join_subscription()
        return self.open[number]

    def take(self) -> list[bytes]:
        """Take deliveries; none may be of a message that is hidden, acknowledged or withheld."""
        found = []
        for number, frame in self.peer.inbox:
            if number == Type.MESSAGE:
                payload = unpack_payload(frame.payload).payload
                self.delivered[payload] = frame.ledger_id, frame.entry_id
                found.append(payload)
        self.peer.inbox.clear()
        assert not set(found) - set(self.deliverable())
        return found

    def visible(self) -> list[bytes]:
        """The messages before the first one of an open transaction, without those that were aborted."""
        first = next((at for at, each in enumerate(self.published) if each in self.unsettled), None)
        return [each for each in self.published[:first] if each not in self.aborted]

    def deliverable(self) -> list[bytes]:
        return [each for each in self.visible() if each not in self.acknowledged and each not in self.taken]

    def step(self, action: str, number: int, choice: int) -> None:
        match action:
            case "publish":
                self.publish(number)
            case "acknowledge":
                self.acknowledge(number, choice)
            case "redeliver":
                self.peer.redeliver()
            case "restart":
                self.restart()
            case _ if number in self.open:
                self.end(number, action == "commit")
        self.take()

    def publish(self, number: int) -> None:
        payload = b"%d" % len(self.published)
        if number == OUTSIDE:
            self.peer.publish(payload, len(self.published), partition_key=payload.decode())
        else:
            transaction = self.transaction(number)
            transaction.send(payload, len(self.published), partition_key=payload.decode())
            self.unsettled[payload] = number
        self.published.append(payload)

    def acknowledge(self, number: int, choice: int) -> None:
        if not self.delivered:
            return
        payload = list(self.delivered)[choice % len(self.delivered)]
        message = (*self.delivered[payload], None)
        if number == OUTSIDE:
            self.peer.ack(message)
            self.acknowledged.add(payload)
            return
        conflict = payload in self.acknowledged or payload in self.taken
        assert self.transaction(number).ack(message) == ("TransactionConflict" if conflict else "")
        if not conflict:
            self.taken[payload] = number

    def end(self, number: int, commits: bool) -> None:
        settled = [each for each, by in self.unsettled.items() if by == number]
        ended = [each for each, by in self.taken.items() if by == number]
        for each in settled:
            del self.unsettled[each]
        for each in ended:
            del self.taken[each]
        if commits:
            self.acknowledged.update(ended)
        else:
            self.aborted.update(settled)
        assert self.open.pop(number).end(proto.COMMIT if commits else proto.ABORT) == ""

    def restart(self) -> None:
        """Start the broker again: exactly the deliverable messages come, in order."""
        self.take()
        self.world.advance(60)  # Acknowledgements without a request become durable.
        self.world.start()
        self.peer = self.connect()
        assert self.take() == self.deliverable()


@settings(max_examples=60)
@given(st.sampled_from(KINDS), STEPS)
def test_transactions_are_all_or_nothing(kind: SubType, steps: list[Step]) -> None:
    play = Play(kind)
    for step in steps:
        play.step(*step)
    play.restart()
    for number in list(play.open):
        play.end(number, commits=False)
    play.take()
    play.restart()
    late = play.world.connect()
    late.subscribe(subscription="late")
    assert late.payloads() == play.visible()
