"""Recordings of real clients with a real broker, replayed with this broker: its answers are equal.

The client's side is sent at its recorded moments. Message ids of the recording are mapped to this broker's by
the receipts. For each connection the test compares the type (and error) of each answer, every producer's
receipts, every consumer's messages with entry, redelivery count and ack set, and the frames that answer no
request. The order among different producers, consumers and requests is the broker's choice.
"""

import json
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from pulsar_sansio.broker import Broker
from pulsar_sansio.wire import Ack, FrameDecoder, encode_ack, encode_command, proto, unpack_payload
from tests.broker.peer import LIMIT, WALL, Peer, Type, World

CAPTURES = Path(__file__).parent.parent / "captures"
PUBLIC = "persistent://public/default/"


class Step(NamedTuple):
    at: int
    """Nanoseconds."""
    connection: int
    by_client: bool
    number: int | None
    """The command; None where that side closed the connection."""
    command: Any


def steps(name: str) -> Iterator[Step]:
    held: dict[tuple[int, bool], bytes] = {}
    for line in (CAPTURES / f"{name}.jsonl").read_text().splitlines():
        piece = json.loads(line)
        at, connection, by_client = piece["t"] * 1000, piece["c"], piece["d"] == ">"
        if piece.get("eof"):
            yield Step(at, connection, by_client, None, None)
            continue
        data = held.get((connection, by_client), b"") + bytes.fromhex(piece["x"])
        position = 0
        while (frame := FrameDecoder().decode(data, position, LIMIT)) is not None:
            number, command, position = frame
            yield Step(at, connection, by_client, number, command)
        held[connection, by_client] = data[position:]


def when(name: str) -> int:
    """The wall time (ms) of the beginning: delayed messages contain dates."""
    published = (
        (unpack_payload(step.command.payload).metadata.publish_time, step.at)
        for step in steps(name)
        if step.number == Type.SEND
    )
    publish_time, at = next(published, (WALL, 0))
    return publish_time - at // 1_000_000


REFUSED_IN_ANSWERS = (
    Type.ACK_RESPONSE,
    Type.TC_CLIENT_CONNECT_RESPONSE,
    Type.NEW_TXN_RESPONSE,
    Type.ADD_PARTITION_TO_TXN_RESPONSE,
    Type.ADD_SUBSCRIPTION_TO_TXN_RESPONSE,
    Type.END_TXN_RESPONSE,
)
"""Answers that may hold an error in place of an ERROR frame."""


class Answers:
    """The frames of one side of the comparison."""

    def __init__(self) -> None:
        self.said: dict[tuple[Any, ...], list[Any]] = {}
        self._answered: dict[int, set[int]] = {}

    def answered(self, connection: int) -> set[int]:
        """Request ids that have an answer."""
        return self._answered.get(connection, set())

    def add(
        self,
        connection: int,
        number: int,
        command: Any,
        ours: Callable[[int, int], tuple[int, int]] = lambda ledger_id, entry_id: (ledger_id, entry_id),
    ) -> None:
        """`ours`: maps an id of the recording to this broker's."""
        name = Type.Name(number)
        where: tuple[Any, ...] = (connection, name)
        what: Any = name
        if hasattr(command, "request_id"):
            self._answered.setdefault(connection, set()).add(command.request_id)
        if number == Type.MESSAGE:
            where += (command.consumer_id,)
            entry = ours(command.ledger_id, command.entry_id)
            what = (*entry, command.redelivery_count, command.ack_set)
        elif number == Type.SEND_RECEIPT:
            where += (command.producer_id,)
            what = (command.sequence_id, *ours(command.ledger_id, command.entry_id))
        elif number in (Type.CLOSE_PRODUCER, Type.CLOSE_CONSUMER):
            what = getattr(command, "producer_id", None) or getattr(command, "consumer_id", None)
        elif number == Type.ERROR:
            what = (command.request_id, proto.ServerError.Name(command.error))
        elif number == Type.ACTIVE_CONSUMER_CHANGE:
            what = (command.consumer_id, command.is_active)
        elif number in REFUSED_IN_ANSWERS and command.HasField("error"):
            what = (command.request_id, proto.ServerError.Name(command.error))
        elif hasattr(command, "request_id"):
            what = command.request_id
        self.said.setdefault(where, []).append(what)


class Replay:
    """Sends the client's side of a recording to this broker."""

    def __init__(
        self,
        name: str,
        prepare: Callable[[Broker], None] | None,
        by_administrator: Callable[[World], object] | None,
    ) -> None:
        self.world = World(wall=when(name))
        if prepare is not None:
            prepare(self.world.broker)
            self.world.pump()
        self.theirs, self.ours = Answers(), Answers()
        self._peers: dict[int, Peer] = {}
        self._ids: dict[tuple[int, int], tuple[int, int]] = {}
        """(ledger, entry) of the recording -> this broker's."""
        self._receipts: dict[tuple[int, int], deque[tuple[int, int]]] = {}
        """(connection, producer) -> this broker's ids that the recording's receipts have not reached yet."""
        self._name = name
        self._by_administrator = by_administrator
        self.asked: dict[int, set[int]] = {}
        """Request ids of each connection."""

    def run(self) -> None:
        for step in steps(self._name):
            if step.at > self.world.now:
                self.world.advance((step.at - self.world.now) / 1e9)
            if step.by_client:
                self._say(step)
            else:
                self._note(step)
            self._collect()
        self.world.advance(2)
        self._collect()

    def _say(self, step: Step) -> None:
        peer = self._peers.get(step.connection)
        if peer is None:
            peer = self._peers[step.connection] = self.world.raw()
        if peer.closed is not None:
            return
        if step.number is None:
            self._peers[step.connection].drop()
            return
        request_id = getattr(step.command, "request_id", None)
        if request_id is not None:
            self.asked.setdefault(step.connection, set()).add(request_id)
        peer.feed(self._translated(step.number, step.command))

    def closed(self, connection: int) -> bool:
        """True when this broker ended the connection."""
        return self._peers[connection].closed is not None

    def _note(self, step: Step) -> None:
        sent_away = step.number in (Type.CLOSE_PRODUCER, Type.CLOSE_CONSUMER)
        if sent_away and self._by_administrator is not None:
            self._by_administrator(self.world)
            self.world.pump()
            self._by_administrator = None
        if step.number == Type.SEND_RECEIPT and (
            waiting := self._receipts.get((step.connection, step.command.producer_id))
        ):
            self._ids[step.command.ledger_id, step.command.entry_id] = waiting.popleft()
        if step.number is not None:
            self.theirs.add(step.connection, step.number, step.command, self._id)

    def _collect(self) -> None:
        for connection, peer in self._peers.items():
            while peer.inbox:
                number, command = peer.inbox.popleft()
                self.ours.add(connection, number, command)
                if number == Type.SEND_RECEIPT:
                    waiting = self._receipts.setdefault((connection, command.producer_id), deque())
                    waiting.append((command.ledger_id, command.entry_id))

    # --- ids of the broker ----------------------------------------------------------------------------

    def _id(self, ledger_id: int, entry_id: int) -> tuple[int, int]:
        """Map an id of the recording: by its receipt, or by its ledger for the position before a ledger."""
        if (ledger_id, entry_id) in self._ids:
            return self._ids[ledger_id, entry_id]
        same_ledger = [ours for theirs, ours in self._ids.items() if theirs[0] == ledger_id]
        return (same_ledger[0][0], entry_id) if same_ledger else (ledger_id, entry_id)

    def _translated(self, number: int, command: Any) -> bytes:
        if isinstance(command, Ack):
            ids = [(*self._id(ledger, entry), bits) for ledger, entry, bits in command.message_ids]
            return encode_ack(
                command.consumer_id,
                command.ack_type,
                ids,
                validation_error=command.validation_error,
                request_id=command.request_id,
                txnid_least_bits=command.txnid_least_bits,
                txnid_most_bits=command.txnid_most_bits,
            )
        if isinstance(command, tuple):
            data: bytes = command.encode()  # type: ignore[attr-defined]
            return data
        for message_id in self._message_ids(command):
            message_id.ledgerId, message_id.entryId = self._id(message_id.ledgerId, message_id.entryId)
        return encode_command(number, command)

    @staticmethod
    def _message_ids(command: Any) -> list[Any]:
        fields = {field.name: value for field, value in command.ListFields()}
        found = list(fields.get("message_ids", ()))
        return found + [fields[name] for name in ("message_id", "start_message_id") if name in fields]


def one_transaction(broker: Broker) -> None:
    """The recorded broker had opened a transaction before."""
    broker.coordinators.begin(0, 30_000, "")


def deduplication(broker: Broker) -> None:
    broker.administration.create_namespace(0, "public/dedup")
    broker.administration.set_policy(0, "public/dedup", "deduplication", True)


def partitions(topic: str, count: int) -> Callable[[Broker], None]:
    return lambda broker: broker.topic_administration.create_partitioned_topic(0, PUBLIC + topic, count)


PREPARE: dict[str, Callable[[Broker], None]] = {
    "java-deduplication": deduplication,
    "java-partitioned": partitions("partitioned", 3),
    "java-transaction-abort": one_transaction,
    "java-partitioned-murmur3": partitions("partitioned-murmur3", 4),
    "cpp-partitioned": partitions("cpp-partitioned", 3),
}

BY_ADMINISTRATOR: dict[str, Callable[[World], object]] = {
    "java-terminate": lambda world: world.broker.topic_administration.terminate(
        world.now, PUBLIC + "terminate"
    ),
    "java-unload": lambda world: world.broker.topic_administration.unload(world.now, PUBLIC + "unload"),
    "java-delete-topic-forced": lambda world: world.broker.topic_administration.delete_topic(
        world.now, PUBLIC + "delete-topic-forced", force=True
    ),
}
"""Recording -> the command of an administrator just before the real broker disconnected clients."""

NOT_BUILT = {
    "java-compaction": "an administrator compacts in the middle",
}
"""Recordings that this broker answers otherwise, and what it lacks or what the replay leaves out."""

SPREAD = ("java-shared-two", "java-key-shared", "cpp-key-shared")
"""Recordings in which the broker is free to choose the consumer of each entry."""

ALIKE = sorted(path.stem for path in CAPTURES.glob("*.jsonl") if path.stem not in NOT_BUILT)


@pytest.mark.parametrize("name", ALIKE)
def test_our_broker_answers_as_the_real_one(name: str) -> None:
    replay = Replay(name, PREPARE.get(name), BY_ADMINISTRATOR.get(name))
    replay.run()
    ours, theirs = replay.ours.said, replay.theirs.said
    for where, what in theirs.items():
        if where[1] == "MESSAGE" and name in SPREAD:
            continue
        if where[1] in ("MESSAGE", "SEND_RECEIPT", "ACTIVE_CONSUMER_CHANGE"):
            # This broker is faster: a client that disconnected midway may have received more.
            assert ours.get(where, [])[: len(what)] == what, where
        else:
            assert not set(map(repr, what)) - set(map(repr, ours.get(where, []))), where
    answered = {request for where, what in theirs.items() for request in what if where[1] not in PUSHED}
    for where, what in ours.items():
        if where[1] not in PUSHED:
            again = [each for each in what if each in answered and each not in theirs.get(where, [])]
            assert not again, f"{where} answers in another way"
    if name in SPREAD:
        assert entries(ours) >= entries(theirs)


PUSHED = (
    "MESSAGE",
    "SEND_RECEIPT",
    "ACTIVE_CONSUMER_CHANGE",
    "CLOSE_PRODUCER",
    "CLOSE_CONSUMER",
    "WATCH_TOPIC_UPDATE",
    "PING",
)
"""Frames that answer no request."""


def entries(said: dict[tuple[Any, ...], list[Any]]) -> int:
    """The number of different entries delivered."""
    return len(
        {(where[0], *each[:2]) for where, what in said.items() if where[1] == "MESSAGE" for each in what}
    )


@pytest.mark.parametrize(("name", "what"), NOT_BUILT.items())
def test_what_is_not_built_is_refused_and_not_left_hanging(name: str, what: str) -> None:
    """Every request of the recording has an answer, unless the client disconnected because of a refusal."""
    replay = Replay(name, None, None)
    replay.run()
    assert any(where[1] != "CONNECTED" for where in replay.ours.said)
    for connection, asked in replay.asked.items():
        answered = replay.ours.answered(connection)
        assert replay.closed(connection) or asked <= answered, what
