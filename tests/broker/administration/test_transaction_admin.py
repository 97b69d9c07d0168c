"""`TransactionAdministration`: what it shows of coordinators, topics and subscriptions, and aborting."""

from typing import Any

import pytest

from pulsar_sansio.broker import BrokerConfig
from pulsar_sansio.broker.admin_errors import NotFound
from pulsar_sansio.broker.administration.transaction_admin import TransactionAdministration
from pulsar_sansio.model.transaction_id import TransactionId
from pulsar_sansio.wire import CUMULATIVE
from tests.broker.peer import TOPIC, WALL, Peer, SubType, Type, World
from tests.broker.transacting import InTransaction

FIRST, SECOND = TransactionId(0, 0), TransactionId(0, 1)


class Scene:
    """A broker, a client with a producer, and its messages."""

    def __init__(self, config: BrokerConfig | None = None) -> None:
        self.world = World(config)
        self.peer: Peer = self.world.connect()
        self.peer.producer()
        self.peer.inbox.clear()

    @property
    def admin(self) -> TransactionAdministration:
        return self.world.broker.transaction_administration

    def subscribe(self, kind: SubType = SubType.Shared) -> list[Any]:
        """Subscribe, publish three messages, and return them as received."""
        self.peer.subscribe(kind)
        for number in range(3):
            self.peer.publish(b"%d" % number, number)
        messages = [command for number, command in self.peer.inbox if number == Type.MESSAGE]
        self.peer.inbox.clear()
        return messages


def test_each_coordinator_has_its_stats() -> None:
    scene = Scene(BrokerConfig(transaction_coordinators=2, service_url="pulsar://h:1"))
    assert scene.admin.coordinators() == [
        {"id": 0, "brokerServiceUrl": "pulsar://h:1"},
        {"id": 1, "brokerServiceUrl": "pulsar://h:1"},
    ]
    stats = {"state": "Ready", "leastSigBits": -1, "lowWaterMark": 0, "ongoingTxnSize": 0}
    times = {"recoverStartTime": WALL, "recoverEndTime": WALL}
    assert scene.admin.coordinator_stats(1) == stats | times
    scene.world.advance(1)
    transactions = [InTransaction(scene.peer, coordinator=1) for _ in range(3)]
    opened = {"leastSigBits": 2, "lowWaterMark": -1, "ongoingTxnSize": 3}
    assert scene.admin.coordinator_stats(1) == stats | times | opened
    transactions[0].end()
    ended = {"leastSigBits": 2, "lowWaterMark": 0, "ongoingTxnSize": 2}
    assert scene.admin.coordinator_stats(1) == stats | times | ended
    assert scene.admin.coordinator_stats(0) == stats | times
    with pytest.raises(NotFound):
        scene.admin.coordinator_stats(2)
    with pytest.raises(NotFound):
        scene.admin.coordinator_stats(-1)


def test_the_metadata_of_a_transaction() -> None:
    scene = Scene()
    messages = scene.subscribe(SubType.Exclusive)
    scene.world.advance(2)
    transaction = InTransaction(scene.peer, timeout=30_000)
    found = scene.admin.transaction_metadata(FIRST)
    assert found == {
        "txnId": "(0,0)",
        "status": "OPEN",
        "openTimestamp": WALL + 2000,
        "timeoutAt": 30_000,
        "producedPartitions": {},
        "ackedPartitions": {},
    }
    transaction.join_topic("persistent://public/default/absent")
    transaction.publish(b"x", 9)
    transaction.join_subscription()
    transaction.join_subscription(subscription="absent")
    assert transaction.ack(messages[1], kind=CUMULATIVE) == ""
    found = scene.admin.transaction_metadata(FIRST)
    assert found["producedPartitions"] == {
        "persistent://public/default/absent": {"aborted": False},
        TOPIC: {"startPosition": "0:3", "aborted": False},
    }
    assert found["ackedPartitions"] == {TOPIC: {"s": {"cumulativeAckPosition": "0:1"}, "absent": {}}}
    transaction.end()
    with pytest.raises(NotFound, match=r"`\(0,0\)`not found"):
        scene.admin.transaction_metadata(FIRST)
    with pytest.raises(NotFound, match="with id 7 not found!"):
        scene.admin.transaction_metadata(TransactionId(7, 0))


def test_the_owner_of_a_transaction() -> None:
    scene = Scene()
    id_ = scene.world.broker.coordinators.begin(0, 1000, "ann")
    assert scene.admin.transaction_metadata(id_)["owner"] == "ann"


def test_slow_transactions_have_a_longer_timeout() -> None:
    """As in a Java broker, the timeout that a transaction was opened with counts, not its age."""
    scene = Scene(BrokerConfig(transaction_coordinators=2))
    for coordinator, timeout in ((0, 1000), (0, 2000), (1, 3000)):
        InTransaction(scene.peer, timeout, coordinator)
    assert list(scene.admin.slow_transactions(999)) == ["(0,0)", "(0,1)", "(1,0)"]
    assert list(scene.admin.slow_transactions(1000)) == ["(0,1)", "(1,0)"]
    assert list(scene.admin.slow_transactions(0, 1)) == ["(1,0)"]
    assert scene.admin.slow_transactions(3000) == {}
    assert scene.admin.slow_transactions(0)["(0,1)"]["timeoutAt"] == 2000
    with pytest.raises(NotFound):
        scene.admin.slow_transactions(0, 2)


def test_an_aborted_transaction_leaves_nothing() -> None:
    """TXN-01: messages are never delivered, and acknowledgements are undone."""
    scene = Scene()
    messages = scene.subscribe()
    transaction = InTransaction(scene.peer)
    transaction.publish(b"x", 9)
    transaction.join_subscription()
    assert transaction.ack(messages[0]) == ""
    scene.peer.inbox.clear()
    scene.admin.abort_transaction(scene.world.now, FIRST)
    scene.world.pump()
    assert scene.peer.payloads() == [b"0"]
    assert transaction.end() == "TransactionNotFound"
    with pytest.raises(NotFound):
        scene.admin.abort_transaction(scene.world.now, FIRST)
    with pytest.raises(NotFound):
        scene.admin.abort_transaction(scene.world.now, TransactionId(1, 0))
    scene.world.start()
    assert scene.admin.slow_transactions(0) == {}


# --- topics -------------------------------------------------------------------------------------------


def test_the_transactions_of_a_topic() -> None:
    scene = Scene()
    scene.world.advance(1)
    stats = {
        "state": "NoSnapshot",
        "maxReadPosition": "0:-1",
        "lastSnapshotTimestamps": 0,
        "ongoingTxnSize": 0,
        "recoverStartTime": WALL,
        "recoverEndTime": WALL,
        "totalAbortedTransactions": 0,
        "snapshotType": "Single",
    }
    assert scene.admin.transaction_buffer_stats(TOPIC) == stats
    scene.peer.publish(b"plain", 0)
    assert scene.admin.transaction_buffer_stats("t") == stats | {"maxReadPosition": "0:0"}
    first, second = InTransaction(scene.peer), InTransaction(scene.peer)
    scene.peer.inbox.clear()
    first.publish(b"x", 1)
    second.publish(b"y", 2)
    used = stats | {"state": "Ready", "maxReadPosition": "0:0", "ongoingTxnSize": 2}
    assert scene.admin.transaction_buffer_stats("t") == used
    first.abort()
    aborted = used | {"maxReadPosition": "0:1", "ongoingTxnSize": 1, "totalAbortedTransactions": 1}
    assert scene.admin.transaction_buffer_stats("t") == aborted
    second.end()
    ended = aborted | {"maxReadPosition": "0:4", "ongoingTxnSize": 0}
    assert scene.admin.transaction_buffer_stats("t") == ended
    scene.world.advance(5)
    scene.world.start()
    again = {"recoverStartTime": WALL + 6000, "recoverEndTime": WALL + 6000}
    assert scene.admin.transaction_buffer_stats("t") == ended | again


def test_a_transaction_in_a_topic() -> None:
    scene = Scene()
    scene.peer.publish(b"plain", 0)
    first, second = InTransaction(scene.peer), InTransaction(scene.peer)
    first.join_topic()
    scene.peer.inbox.clear()
    assert scene.admin.transaction_in_buffer_stats(TOPIC, FIRST) == {"aborted": False}
    first.publish(b"x", 1)
    first.publish(b"y", 2)
    second.publish(b"z", 3)
    open_ = {"startPosition": "0:1", "aborted": False}
    assert scene.admin.transaction_in_buffer_stats(TOPIC, FIRST) == open_
    first.abort()
    second.end()
    for _ in range(2):
        assert scene.admin.transaction_in_buffer_stats(TOPIC, FIRST) == {"aborted": True}
        assert scene.admin.transaction_in_buffer_stats(TOPIC, SECOND) == {"aborted": False}
        assert scene.admin.transaction_in_buffer_stats(TOPIC, TransactionId(0, 5)) == {"aborted": False}
        scene.world.start()


def test_an_abort_counts_once_it_is_durable() -> None:
    scene = Scene()
    transaction = InTransaction(scene.peer)
    transaction.publish(b"x", 0)
    scene.world.hold_writes = True
    scene.admin.abort_transaction(scene.world.now, FIRST)
    scene.world.pump()
    assert scene.admin.transaction_in_buffer_stats(TOPIC, FIRST)["aborted"] is False
    assert scene.admin.transaction_buffer_stats(TOPIC)["totalAbortedTransactions"] == 0
    scene.world.sync()
    assert scene.admin.transaction_in_buffer_stats(TOPIC, FIRST) == {"aborted": True}
    assert scene.admin.transaction_buffer_stats(TOPIC)["totalAbortedTransactions"] == 1


@pytest.mark.parametrize("topic", ["absent", "parts", "non-persistent://public/default/v"])
def test_a_topic_without_transactions(topic: str) -> None:
    scene = Scene()
    scene.world.broker.topic_administration.create_partitioned_topic(scene.world.now, "parts", 2)
    scene.peer.producer("non-persistent://public/default/v", 1)
    not_found = r"^Topic not found (non-)?persistent://public/default/"
    with pytest.raises(NotFound, match=not_found):
        scene.admin.transaction_buffer_stats(topic)
    with pytest.raises(NotFound, match=not_found):
        scene.admin.transaction_in_buffer_stats(topic, FIRST)
    with pytest.raises(NotFound, match=not_found):
        scene.admin.pending_ack_stats(topic, "s")


# --- subscriptions ------------------------------------------------------------------------------------


def test_pending_acknowledgements_of_a_subscription() -> None:
    scene = Scene()
    messages = scene.subscribe()
    unused = {"state": "None", "ongoingTxnSize": 0, "recoverStartTime": 0, "recoverEndTime": 0}
    assert scene.admin.pending_ack_stats(TOPIC, "s") == unused
    transaction = InTransaction(scene.peer)
    transaction.join_subscription()
    assert transaction.ack(messages[0], messages[2]) == ""
    used = {"state": "Ready", "ongoingTxnSize": 1, "recoverStartTime": WALL, "recoverEndTime": WALL}
    assert scene.admin.pending_ack_stats(TOPIC, "s") == used
    scene.world.start()
    assert scene.admin.pending_ack_stats(TOPIC, "s") == used
    scene.admin.abort_transaction(scene.world.now, FIRST)
    assert scene.admin.pending_ack_stats(TOPIC, "s") == used | {"ongoingTxnSize": 0}
    with pytest.raises(NotFound, match=f"Subscription absent not found for topic {TOPIC}"):
        scene.admin.pending_ack_stats(TOPIC, "absent")


@pytest.mark.parametrize(
    ("remaining", "position"), [(None, "0:3"), (0b0000, "0:3"), (0b1110, "0:3:0"), (0b1000, "0:3:2")]
)
def test_the_position_of_a_cumulative_acknowledgement(remaining: int | None, position: str) -> None:
    """The position names the last message of a batch that is acknowledged, unless all of them are. As in a
    Java broker, only transactions that acknowledge individually are counted."""
    scene = Scene()
    scene.subscribe(SubType.Exclusive)
    scene.peer.publish_batch([b"a", b"b", b"c", b"d"], 3)
    transaction = InTransaction(scene.peer)
    transaction.join_subscription()
    assert scene.admin.transaction_in_pending_ack_stats(TOPIC, "s", FIRST) == {}
    assert transaction.ack((0, 3, remaining), kind=CUMULATIVE) == ""
    shown = {"cumulativeAckPosition": position}
    assert scene.admin.transaction_in_pending_ack_stats(TOPIC, "s", FIRST) == shown
    assert scene.admin.transaction_in_pending_ack_stats(TOPIC, "s", SECOND) == {}
    assert scene.admin.pending_ack_stats(TOPIC, "s")["ongoingTxnSize"] == 0
    with pytest.raises(NotFound):
        scene.admin.transaction_in_pending_ack_stats(TOPIC, "absent", FIRST)


def test_the_state_of_one_message() -> None:
    scene = Scene()
    messages = scene.subscribe()
    scene.peer.publish_batch([b"a", b"b"], 3)
    ask = scene.admin.position_in_pending_acks
    assert ask(TOPIC, "s", 0, 1) == "PendingAckNotReady"
    transaction = InTransaction(scene.peer)
    transaction.join_subscription()
    assert transaction.ack(messages[1], (0, 3, 0b01)) == ""
    scene.peer.ack(messages[0])
    assert [ask(TOPIC, "s", 0, entry) for entry in range(-1, 5)] == [
        *("MarkDelete", "MarkDelete"),
        *("PendingAck", "NotInPendingAck", "PendingAck", "NotInPendingAck"),
    ]
    assert ask(TOPIC, "s", 7, 0) == "NotInPendingAck"
    assert [ask(TOPIC, "s", 0, 3, index) for index in range(-1, 3)] == [
        *("InvalidPosition", "NotInPendingAck", "PendingAck", "InvalidPosition"),
    ]
    assert ask(TOPIC, "s", 0, 1, 0) == "InvalidPosition", "an entry that is no batch has no index"
    with pytest.raises(NotFound):
        ask(TOPIC, "absent", 0, 0)
