"""Transactions over HTTP, and other calls for topics with transactions: both brokers give one answer."""

from collections.abc import AsyncIterator
from typing import Any, NamedTuple
from urllib.request import urlopen

import pytest
import trio

from pulsar_sansio.client.acknowledging import transactional_acks
from pulsar_sansio.client.acknowledging.transactional_acks import TransactionalAcks
from pulsar_trio import BatchingPolicy, Client, TransactionTimedOut, open_client
from pulsar_trio.client.transaction import Transaction
from tests.real_pulsar.admin import topic_path
from tests.suite.brokers import BrokerUnderTest
from tests.suite.helpers import receive, rest, until

V3 = "/admin/v3/transactions"

TIMES = ("recoverStartTime", "recoverEndTime", "lastSnapshotTimestamps", "openTimestamp")


@pytest.fixture
async def client(broker: BrokerUnderTest, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Client]:
    """A client that sends each acknowledgement of a transaction at once."""
    later = TransactionalAcks.acknowledge_cumulative

    def at_once(acks: TransactionalAcks, transaction: Any, id_: Any, size: int) -> None:
        later(acks, transaction, id_, size)
        acks.flush(transaction)

    monkeypatch.setattr(transactional_acks, "GROUP_SIZE", 1)
    monkeypatch.setattr(TransactionalAcks, "acknowledge_cumulative", at_once)
    async with open_client(broker.url, transactions=True) as client:
        yield client


def without_times(answer: Any) -> Any:
    if not isinstance(answer, dict):
        return answer
    return {name: without_times(value) for name, value in answer.items() if name not in TIMES}


class Asking:
    """The transactions' part of the administration. Moments are taken out of its answers."""

    def __init__(self, broker: BrokerUnderTest, topic: str) -> None:
        self._broker = broker
        self._topic = topic.partition("://")[2]

    async def get(self, path: str) -> tuple[int, Any]:
        """`{}` in the path is the topic."""
        status, answer = await self._broker.request("GET", f"{V3}/{path.format(self._topic)}")
        return status, without_times(answer)

    async def reads(self, path: str, expected: object) -> None:
        """Wait until the answer is the expected one. A real broker may show acknowledgements later."""

        async def there() -> bool:
            return await self.get(path) == (200, expected)

        with trio.move_on_after(PATIENCE):
            await until(there)
        assert await self.get(path) == (200, expected)


PATIENCE = 5.0
"""Seconds until a broker shows what it has done."""


async def test_a_transaction_from_its_beginning_to_its_end(
    broker: BrokerUnderTest, client: Client, topic: str
) -> None:
    ask = Asking(broker, topic)
    async with (
        client.create_producer(topic, batching=None) as producer,
        client.subscribe(topic, "s", "shared") as consumer,
    ):
        ledger = (await producer.send(b"plain")).ledger_id
        buffer = {
            "state": "NoSnapshot",
            "maxReadPosition": f"{ledger}:0",
            "ongoingTxnSize": 0,
            "totalAbortedTransactions": 0,
            "snapshotType": "Single",
        }
        await ask.reads("transactionBufferStats/{}", buffer)
        pending = {"state": "None", "ongoingTxnSize": 0}
        assert await ask.get("pendingAckStats/{}/s") == (200, pending)
        position = f"positionStatsInPendingAck/{{}}/s/{ledger}"
        assert await ask.get(f"{position}/0") == (200, {"state": "PendingAckNotReady"})

        with pytest.raises(TransactionTimedOut, match="or by an administrator"):
            async with client.transaction(timeout=50) as transaction:
                most, least = transaction.id
                bare = {
                    "txnId": f"({most},{least})",
                    "status": "OPEN",
                    "timeoutAt": 50_000,
                    "producedPartitions": {},
                    "ackedPartitions": {},
                }
                assert await ask.get(f"transactionMetadata/{most}/{least}") == (200, bare)
                await producer.send(b"inside", transaction=transaction)
                consumer.acknowledge(await consumer.receive(), transaction=transaction)
                begun = {"startPosition": f"{ledger}:1", "aborted": False}
                whole = bare | {"producedPartitions": {topic: begun}, "ackedPartitions": {topic: {"s": {}}}}
                await ask.reads(f"transactionMetadata/{most}/{least}", whole)
                for timeout, listed in ((-1, True), (0, True), (49_999, True), (50_000, False)):
                    for query in ("", f"?coordinatorId={most}"):
                        status, slow = await ask.get(f"slowTransactions/{timeout}{query}")
                        assert (status, slow.get(whole["txnId"])) == (200, whole if listed else None)
                used = buffer | {"state": "Ready", "ongoingTxnSize": 1}
                await ask.reads("transactionBufferStats/{}", used)
                await ask.reads("transactionBufferStats/{}?lowWaterMarks=true", used | {"lowWaterMarks": {}})
                in_buffer = f"transactionInBufferStats/{{}}/{most}"
                assert await ask.get(f"{in_buffer}/{least}") == (200, begun)
                assert await ask.get(f"{in_buffer}/999999") == (200, {"aborted": False})
                pending = {"state": "Ready", "ongoingTxnSize": 1}
                await ask.reads("pendingAckStats/{}/s", pending)
                await ask.reads("pendingAckStats/{}/s?lowWaterMarks=true", pending | {"lowWaterMarks": {}})
                assert await ask.get(f"transactionInPendingAckStats/{{}}/s/{most}/{least}") == (200, {})
                for entry, state in ((0, "PendingAck"), (1, "NotInPendingAck")):
                    assert await ask.get(f"{position}/{entry}") == (200, {"state": state})
                assert await ask.get(f"{position}/0?batchIndex=0") == (200, {"state": "InvalidPosition"})
                assert await broker.request("POST", f"{V3}/abortTransaction/{most}/{least}") == (204, None)

        await ask.reads("pendingAckStats/{}/s", pending | {"ongoingTxnSize": 0})
        ended = used | {"maxReadPosition": f"{ledger}:2", "ongoingTxnSize": 0, "totalAbortedTransactions": 1}
        await ask.reads("transactionBufferStats/{}", ended)
        assert await ask.get(f"{in_buffer}/{least}") == (200, {"aborted": True})
        absent = (404, f"The transaction with this txdID `({most},{least})`not found ")
        assert await ask.get(f"transactionMetadata/{most}/{least}") == absent
        assert (await consumer.receive()).data == b"plain"


async def test_coordinators(broker: BrokerUnderTest, client: Client, topic: str) -> None:
    ask = Asking(broker, topic)
    assert await ask.get("coordinators") == (200, [{"id": 0, "brokerServiceUrl": broker.url}])
    async with client.transaction() as transaction:
        number = transaction.id.number
        _, stats = await ask.get("coordinatorStats")
        assert stats["0"] == (await ask.get("coordinatorStats?coordinatorId=0"))[1]
        assert set(stats["0"]) == {"state", "leastSigBits", "lowWaterMark", "ongoingTxnSize"}
        assert (stats["0"]["state"], stats["0"]["leastSigBits"]) == ("Ready", number)
        assert stats["0"]["lowWaterMark"] < number
        assert stats["0"]["ongoingTxnSize"] >= 1
    absent = (404, "Transaction coordinator not found! coordinator id : 7")
    assert await ask.get("coordinatorStats?coordinatorId=7") == absent
    assert await ask.get("slowTransactions/0?coordinatorId=7") == absent
    for coordinator in (7, -1):
        words = f"Transaction coordinator with id {coordinator} not found!"
        assert await ask.get(f"transactionMetadata/{coordinator}/0") == (404, words)
    status, words = await broker.request("POST", f"{V3}/transactionCoordinator/replicas", 1)
    assert status == 406
    assert words.startswith("Number of transaction coordinators should be more than the current number")


async def test_what_is_not_there(broker: BrokerUnderTest, topic: str) -> None:
    """A Java broker answers 500 to most of what it does not find."""
    await broker.create_topic(topic)
    ask = Asking(broker, f"{topic}-none")
    for path in (
        "transactionBufferStats/{}",
        "transactionInBufferStats/{}/0/0",
        "pendingAckStats/{}/s",
        "transactionInPendingAckStats/{}/s/0/0",
        "positionStatsInPendingAck/{}/s/0/0",
    ):
        assert await ask.get(path) == (404, f"Topic not found {topic}-none")
    absent = 404 if broker.name == "ours" else 500
    there = Asking(broker, topic)
    for path in ("pendingAckStats/{}/s", "transactionInPendingAckStats/{}/s/0/0"):
        assert (await there.get(path))[0] == absent
    status, reason = await broker.request("POST", f"{V3}/abortTransaction/0/999999")
    assert status == absent
    assert "The transaction with this txdID `(0,999999)`not found " in reason


async def test_cumulative_acknowledgements(broker: BrokerUnderTest, client: Client, topic: str) -> None:
    """The answer names the last message of a batch that is acknowledged, unless all of them are."""
    ask = Asking(broker, topic)
    batching = BatchingPolicy(max_messages=4, max_delay=10)
    async with (
        client.create_producer(topic, batching=batching) as producer,
        client.subscribe(topic, "s", "exclusive", batch_index_acknowledgement=True) as consumer,
    ):
        await producer.send_many(b"%d" % number for number in range(4))
        messages = await receive(consumer, 4)
        ledger = messages[0].message_id.ledger_id
        for message, index in ((messages[1], ":1"), (messages[3], "")):
            async with client.transaction() as transaction:
                consumer.acknowledge_cumulative(message, transaction=transaction)
                most, least = transaction.id
                shown = {"cumulativeAckPosition": f"{ledger}:0{index}"}
                await ask.reads(f"transactionInPendingAckStats/{{}}/s/{most}/{least}", shown)
                _, metadata = await ask.get(f"transactionMetadata/{most}/{least}")
                assert metadata["ackedPartitions"] == {topic: {"s": shown}}
                assert (await ask.get("pendingAckStats/{}/s"))[1] == {"state": "Ready", "ongoingTxnSize": 0}


async def test_messages_of_a_batch(broker: BrokerUnderTest, client: Client, topic: str) -> None:
    ask = Asking(broker, topic)
    batching = BatchingPolicy(max_messages=4, max_delay=10)
    async with (
        client.create_producer(topic, batching=batching) as producer,
        client.subscribe(topic, "s", "shared", batch_index_acknowledgement=True) as consumer,
    ):
        await producer.send_many(b"%d" % number for number in range(4))
        messages = await receive(consumer, 4)
        async with client.transaction() as transaction:
            consumer.acknowledge(messages[1], transaction=transaction)
            position = f"positionStatsInPendingAck/{{}}/s/{messages[0].message_id.ledger_id}/0"
            await ask.reads(position, {"state": "PendingAck"})
            found = [(await ask.get(f"{position}?batchIndex={index}"))[1]["state"] for index in range(5)]
        assert found == ["NotInPendingAck", "PendingAck", *["NotInPendingAck"] * 2, "InvalidPosition"]


# --- other calls for topics with transactions ---------------------------------------------------------


class Entry(NamedTuple):
    payload: bytes
    marker: bool
    aborted: str | None
    uncommitted: str | None


def read_entry(broker: BrokerUnderTest, path: str) -> Entry:
    """Return an entry, and what its headers say of transactions."""
    with urlopen(f"{broker.admin.url}{path}") as response:
        marker, aborted, uncommitted = (
            response.headers.get(f"X-Pulsar-{name}")
            for name in ("marker-type", "txn-aborted", "txn-uncommitted")
        )
        return Entry(response.read(), marker is not None, aborted, uncommitted)


@pytest.fixture
async def mixed(broker: BrokerUnderTest, client: Client, topic: str) -> AsyncIterator[Transaction]:
    """The topic has a plain entry, one that was aborted, the marker, one of an open transaction, a plain one.

    Its subscriptions `a` to `e` have received nothing.
    """
    await broker.create_topic(topic)
    for name in "abcde":
        status, _ = await broker.request("PUT", f"{topic_path(topic)}/subscription/{name}", "earliest")
        assert status == 204
    async with client.create_producer(topic, batching=None) as producer:
        await producer.send(b"first")
        with pytest.raises(ZeroDivisionError):
            async with client.transaction() as aborted:
                await producer.send(b"aborted", transaction=aborted)
                raise ZeroDivisionError
        async with client.transaction() as transaction:
            await producer.send(b"open", transaction=transaction)
            await producer.send(b"last")
            yield transaction


ENTRIES = [
    Entry(b"first", False, None, "false"),
    Entry(b"aborted", False, "true", "false"),
    Entry(b"", True, "true", "false"),
    Entry(b"open", False, "false", "true"),
    Entry(b"last", False, None, "true"),
]


async def test_entries_tell_of_their_transactions(
    broker: BrokerUnderTest, topic: str, mixed: Transaction
) -> None:
    """Markers and entries that no consumer receives are counted."""
    path = topic_path(topic)

    async def read(path: str) -> Entry:
        return await trio.to_thread.run_sync(read_entry, broker, path)

    assert [await read(f"{path}/subscription/a/position/{number}") for number in range(1, 6)] == ENTRIES
    examine = f"{path}/examinemessage?initialPosition=earliest&messagePosition="
    assert [await read(f"{examine}{number}") for number in range(1, 6)] == ENTRIES
    _, stats = await broker.request("GET", f"{path}/internalStats")
    ledger = stats["ledgers"][-1]["ledgerId"]
    assert [await read(f"{path}/ledger/{ledger}/entry/{number}") for number in range(5)] == ENTRIES
    _, found = await broker.request("POST", f"{path}/subscription/a/analyzeBacklog")
    assert (found["entries"], found["messages"]) == (5, 5)
    _, last = await broker.request("GET", f"{path}/lastMessageId")
    assert last["entryId"] == 4
    _, stats = await broker.request("GET", f"{path}/stats")
    counts = ("msgInCounter", "ongoingTxnCount", "abortedTxnCount", "committedTxnCount")
    assert [stats[name] for name in counts] == [4, 1, 1, 0]
    assert stats["subscriptions"]["a"]["msgBacklog"] == 5


async def test_what_is_skipped_or_expired_is_gone(
    broker: BrokerUnderTest, client: Client, topic: str, mixed: Transaction
) -> None:
    """An administrator's command holds, whatever an open transaction does later."""
    path = f"{topic_path(topic)}/subscription"
    _, stats = await broker.request("GET", f"{topic_path(topic)}/internalStats")
    ledger = stats["ledgers"][-1]["ledgerId"]
    for call, body in (
        ("a/skip_all", None),
        ("b/skip/2", None),
        ("c/skip/4", None),
        ("d/expireMessages", {"ledgerId": ledger, "entryId": 4}),
        ("e/resetcursor", "latest"),
    ):
        assert await broker.request("POST", f"{path}/{call}", body) == (204, None)
    await mixed.commit()
    expected = {"a": [], "b": [b"open", b"last"], "c": [b"last"], "d": [], "e": []}
    for name, payloads in expected.items():
        async with client.subscribe(topic, name) as consumer:
            assert [each.data for each in await rest(consumer)] == payloads


async def test_a_backlog_is_cleared(
    broker: BrokerUnderTest, client: Client, local_name: str, topic: str
) -> None:
    namespace = f"public/{local_name}"
    assert await broker.request("PUT", f"/admin/v2/namespaces/{namespace}") == (204, None)
    name = f"persistent://{namespace}/t"
    async with (
        client.create_producer(name) as producer,
        client.subscribe(name, "s", "shared") as consumer,
    ):
        async with client.transaction() as transaction:
            await producer.send(b"gone", transaction=transaction)
            path = f"/admin/v2/namespaces/{namespace}/clearBacklog"
            assert await broker.request("POST", path) == (204, None)
        await producer.send(b"next")
        assert (await consumer.receive()).data == b"next"


async def test_an_acknowledged_message_of_a_compacted_topic(
    broker: BrokerUnderTest, client: Client, topic: str
) -> None:
    """TXN-01: until its transaction ends it is not delivered again."""
    async with client.create_producer(topic, batching=None) as producer:
        for key in ("a", "b"):
            await producer.send(key.encode(), key=key)
        path = f"{topic_path(topic)}/compaction"
        assert await broker.request("PUT", path) == (204, None)

        async def done() -> bool:
            return bool((await broker.request("GET", path))[1]["status"] == "SUCCESS")

        await until(done)
    options: dict[str, Any] = {"read_compacted": True, "initial_position": "earliest"}
    async with client.subscribe(topic, "s", "exclusive", **options) as consumer:
        first, _ = await receive(consumer, 2)
        ask = Asking(broker, topic)
        with pytest.raises(ZeroDivisionError):
            async with client.transaction() as transaction:
                consumer.acknowledge(first, transaction=transaction)
                await ask.reads("pendingAckStats/{}/s", {"state": "Ready", "ongoingTxnSize": 1})
                consumer.redeliver_unacknowledged()
                assert [each.data for each in await rest(consumer)] == [b"b"]
                raise ZeroDivisionError
        assert [each.data for each in await receive(consumer, 2)] == [b"a", b"b"]
