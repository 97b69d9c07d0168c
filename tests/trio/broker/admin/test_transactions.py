"""Transactions over HTTP: coordinators, open transactions, participants and aborting, in Pulsar's words."""

from typing import Any

import pytest

from pulsar_sansio import BrokerConfig
from tests.broker.peer import WALL, SubType, Type
from tests.broker.transacting import InTransaction
from tests.trio.broker.admin.asking import Administrator

V3 = "/admin/v3/transactions"
T = "public/default/t"


class Scene(Administrator):
    """A broker with one open transaction, which has sent a message and acknowledged another one."""

    def __init__(self) -> None:
        super().__init__()
        peer = self.world.connect()
        peer.producer()
        peer.subscribe(SubType.Shared)
        peer.publish(b"plain", 0)
        message = next(command for number, command in peer.inbox if number == Type.MESSAGE)
        peer.inbox.clear()
        self.transaction = InTransaction(peer, 30_000)
        self.transaction.publish(b"inside", 1)
        self.transaction.join_subscription()
        assert self.transaction.ack(message) == ""

    def get(self, path: str) -> tuple[int, Any]:
        return self.ask("GET", f"{V3}/{path}")


METADATA = {
    "txnId": "(0,0)",
    "status": "OPEN",
    "openTimestamp": WALL,
    "timeoutAt": 30_000,
    "producedPartitions": {f"persistent://{T}": {"startPosition": "0:1", "aborted": False}},
    "ackedPartitions": {f"persistent://{T}": {"s": {}}},
}


def test_coordinators() -> None:
    scene = Scene()
    url = scene.machine.config.service_url
    assert scene.get("coordinators") == (200, [{"id": 0, "brokerServiceUrl": url}])
    stats = {
        "state": "Ready",
        "leastSigBits": 0,
        "lowWaterMark": -1,
        "ongoingTxnSize": 1,
        "recoverStartTime": WALL,
        "recoverEndTime": WALL,
    }
    assert scene.get("coordinatorStats") == (200, {"0": stats})
    assert scene.get("coordinatorStats?coordinatorId=0") == (200, stats)
    absent = (404, "Transaction coordinator not found! coordinator id : 7")
    assert scene.get("coordinatorStats?coordinatorId=7") == absent
    assert scene.get("slowTransactions/0?coordinatorId=7") == absent
    assert scene.get("coordinatorStats?coordinatorId=x")[0] == 404


def test_open_transactions() -> None:
    scene = Scene()
    assert scene.get("transactionMetadata/0/0") == (200, METADATA)
    assert scene.get("slowTransactions/29999") == (200, {"(0,0)": METADATA})
    assert scene.get("slowTransactions/-1?coordinatorId=0") == (200, {"(0,0)": METADATA})
    assert scene.get("slowTransactions/30000") == (200, {})
    absent = (404, "The transaction with this txdID `(0,1)`not found ")
    assert scene.get("transactionMetadata/0/1") == absent
    assert scene.get("transactionMetadata/7/0") == (404, "Transaction coordinator with id 7 not found!")
    assert scene.get("transactionMetadata/-1/0") == (404, "Transaction coordinator with id -1 not found!")
    assert scene.get("transactionMetadata/x/0") == (404, "Not Found")


def test_a_transaction_is_aborted() -> None:
    scene = Scene()
    assert scene.ask("POST", f"{V3}/abortTransaction/0/0") == (204, None)
    absent = (404, "The transaction with this txdID `(0,0)`not found ")
    assert scene.ask("POST", f"{V3}/abortTransaction/0/0") == absent
    assert scene.ask("POST", f"{V3}/abortTransaction/7/0")[0] == 404
    assert scene.get("transactionMetadata/0/0") == absent
    assert scene.get(f"transactionInBufferStats/{T}/0/0") == (200, {"aborted": True})
    assert scene.transaction.end() == "TransactionNotFound"
    scene.world.start()
    assert scene.get("slowTransactions/0") == (200, {}), "the abort was durable when it was answered"


def test_the_transactions_of_a_topic() -> None:
    scene = Scene()
    status, stats = scene.get(f"transactionBufferStats/{T}")
    assert (status, stats["state"], stats["maxReadPosition"], stats["ongoingTxnSize"]) == (
        *(200, "Ready", "0:0"),
        1,
    )
    with_marks = (200, stats | {"lowWaterMarks": {}})
    assert scene.get(f"transactionBufferStats/{T}?lowWaterMarks=true") == with_marks
    begun = {"startPosition": "0:1", "aborted": False}
    assert scene.get(f"transactionInBufferStats/{T}/0/0") == (200, begun)
    assert scene.get(f"transactionInBufferStats/{T}/0/1") == (200, {"aborted": False})
    assert scene.get(f"transactionInBufferStats/{T}/x/1") == (404, "Not Found")


def test_the_transactions_of_a_subscription() -> None:
    scene = Scene()
    stats = {"state": "Ready", "ongoingTxnSize": 1, "recoverStartTime": WALL, "recoverEndTime": WALL}
    assert scene.get(f"pendingAckStats/{T}/s") == (200, stats)
    with_marks = (200, stats | {"lowWaterMarks": {}})
    assert scene.get(f"pendingAckStats/{T}/s?lowWaterMarks=true") == with_marks
    assert scene.get(f"transactionInPendingAckStats/{T}/s/0/0") == (200, {})
    for path, state in (
        ("0/0", "PendingAck"),
        ("0/1", "NotInPendingAck"),
        ("0/-1", "MarkDelete"),
        ("0/0?batchIndex=0", "InvalidPosition"),
    ):
        assert scene.get(f"positionStatsInPendingAck/{T}/s/{path}") == (200, {"state": state})
    absent = (404, f"Subscription none not found for topic persistent://{T}")
    for path in (f"pendingAckStats/{T}/none", f"transactionInPendingAckStats/{T}/none/0/0"):
        assert scene.get(path) == absent


@pytest.mark.parametrize(
    "path",
    [
        "transactionBufferStats/{}",
        "transactionInBufferStats/{}/0/0",
        "pendingAckStats/{}/s",
        "transactionInPendingAckStats/{}/s/0/0",
        "positionStatsInPendingAck/{}/s/0/0",
    ],
)
def test_a_topic_that_is_not_there(path: str) -> None:
    scene = Administrator()
    for topic in ("public/default/none", "public/none/t", "none/default/t"):
        absent = (404, f"Topic not found persistent://{topic}")
        assert scene.ask("GET", f"{V3}/{path.format(topic)}") == absent
    assert scene.ask("GET", f"{V3}/{path.format('public/default/%20')}") == (412, "Topic name is not valid")


def test_the_number_of_coordinators_stays() -> None:
    scene = Administrator()
    path = f"{V3}/transactionCoordinator/replicas"
    status, reason = scene.ask("POST", path, 1)
    assert (status, reason[:51]) == (406, "Number of transaction coordinators should be more t")
    status, reason = scene.ask("POST", path, 2)
    assert status == 501
    assert "adding transaction coordinators is not implemented" in reason
    assert scene.ask("POST", path, "x")[0] == 400


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "coordinators"),
        ("GET", "coordinatorStats"),
        ("GET", "transactionMetadata/0/0"),
        ("GET", f"transactionBufferStats/{T}"),
        ("POST", "abortTransaction/0/0"),
    ],
)
def test_a_broker_without_transactions(method: str, path: str) -> None:
    scene = Administrator(BrokerConfig(transaction_coordinators=0))
    disabled = (503, "This Broker is not configured with transactionCoordinatorEnabled=true.")
    assert scene.ask(method, f"{V3}/{path}") == disabled


@pytest.mark.parametrize("count", [0, 1, 3])
def test_coordinators_are_looked_up(count: int) -> None:
    """GAP-40: clients with an http:// service URL look for the partitions of a topic that does not exist."""
    scene = Administrator(BrokerConfig(transaction_coordinators=count, web_service_url="http://h:1"))
    name = "persistent/pulsar/system/transaction_coordinator_assign"
    for query in ("", "?checkAllowAutoCreation=true"):
        found = scene.ask("GET", f"/{name}/partitions{query}")
        assert found == (200, {"partitions": count, "deleted": False})
    for partition in range(count):
        status, found = scene.ask("GET", f"/lookup/v2/topic/{name}-partition-{partition}")
        assert (status, found["brokerUrl"]) == (200, scene.machine.config.service_url)
    assert scene.ask("GET", "/persistent/pulsar/system") == (200, [])
