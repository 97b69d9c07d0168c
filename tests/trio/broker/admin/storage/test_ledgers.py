"""Ledgers and cursors over HTTP, without a socket: what a real Pulsar of version 4.0 does not answer."""

import pytest

from pulsar_sansio import BrokerConfig
from tests.broker.peer import TOPIC
from tests.trio.broker.admin.asking import Administrator

PATH = "/persistent/public/default/t"
WEB = "http://127.0.0.1:8080"


def filled(config: BrokerConfig, count: int = 5) -> Administrator:
    """A broker with messages in a topic, two of them in each ledger, and a subscription at its beginning."""
    administrator = Administrator(config)
    assert administrator.ask("PUT", f"{PATH}/subscription/s") == (204, None)
    peer = administrator.world.connect()
    peer.producer()
    for number in range(count):
        peer.publish(b"%d" % number, number)
    return administrator


def test_closed_ledgers_and_holes_in_acknowledgements() -> None:
    broker = filled(BrokerConfig(web_service_url=WEB, ledger_max_entries=2))
    peer = broker.world.connect()
    peer.subscribe(subscription="s")
    third = peer.messages()[2]
    peer.ack(third)
    _, info = broker.ask("GET", f"{PATH}/internal-info")
    first, second, last = info["ledgers"]
    assert (first["entries"], second["entries"]) == (2, 2)
    assert "entries" not in last, "the last ledger is open"
    ids = [ledger["ledgerId"] for ledger in info["ledgers"]]
    assert info["cursors"]["s"]["individualDeletedMessages"] == [
        {"lower": {"ledgerId": ids[0], "entryId": 1}, "upper": {"ledgerId": ids[1], "entryId": 0}}
    ]
    assert broker.ask("GET", "/persistent/public/default/none/internal-info") == (
        404,
        "Topic persistent://public/default/none not found",
    )


def test_the_backlog_of_a_topic_with_messages() -> None:
    """A real Pulsar 4.0.7 lets this request wait for ever."""
    broker = filled(BrokerConfig(web_service_url=WEB, ledger_max_entries=2))
    _, backlog = broker.ask("GET", f"{PATH}/backlog")
    assert (backlog["totalMessages"], backlog["messageBacklog"]) == (5, 5)
    assert backlog["cursorDetails"] == {"s": {"cursorBacklog": 5, "cursorLedgerId": -1}}
    assert [each["entries"] for each in backlog["dataLedgerDetails"]] == [2, 2, 1]
    assert sum(each["size"] for each in backlog["dataLedgerDetails"]) == backlog["storageSize"]
    assert backlog["brokerName"] == "127.0.0.1"
    assert broker.ask("PUT", "/persistent/public/default/p/partitions", 1) == (204, None)
    assert broker.ask("GET", "/persistent/public/default/p/backlog")[0] == 405


def test_a_message_by_its_index() -> None:
    """Pulsar has this since version 4.1. Messages in batches are counted one by one."""
    broker = filled(BrokerConfig(web_service_url=WEB, broker_entry_metadata=True, ledger_max_entries=2), 2)
    peer = broker.world.connect()
    peer.producer(name="batches")
    peer.publish_batch([b"a", b"b", b"c"])
    ids = [broker.ask("GET", f"{PATH}/getMessageIdByIndex?index={index}")[1] for index in range(5)]
    entries = [(each["ledgerId"], each["entryId"]) for each in ids]
    first, second = entries[0][0], entries[2][0]
    assert entries == [(first, 0), (first, 1), (second, 0), (second, 0), (second, 0)]
    assert broker.ask("GET", f"{PATH}/getMessageIdByIndex?index=5") == (404, "Message not found for index 5")
    assert broker.ask("GET", f"{PATH}/getMessageIdByIndex?index=-1") == (404, "Invalid message index: -1")
    assert broker.ask("GET", f"{PATH}/getMessageIdByIndex")[0] == 404
    none = broker.ask("GET", "/persistent/public/default/none/getMessageIdByIndex?index=0")
    assert none == (404, "Topic persistent://public/default/none not found")


def test_indexes_need_broker_entry_metadata() -> None:
    broker = filled(BrokerConfig(web_service_url=WEB))
    assert broker.ask("GET", f"{PATH}/getMessageIdByIndex?index=0") == (
        412,
        "GetMessageIDByIndex is not allowed when broker entry metadata is disabled",
    )


@pytest.mark.parametrize(("call", "method", "left"), [("truncate", "DELETE", 1), ("trim", "POST", 3)])
def test_retention_and_what_removes_ledgers(call: str, method: str, left: int) -> None:
    """Truncating removes what retention keeps, and trimming does not. The open ledger stays in any case."""
    broker = filled(BrokerConfig(web_service_url=WEB, ledger_max_entries=2))
    retention = {"retentionTimeInMinutes": -1, "retentionSizeInMB": -1}
    assert broker.ask("POST", f"{PATH}/retention", retention) == (204, None)
    assert broker.ask("POST", f"{PATH}/subscription/s/skip_all") == (204, None)
    assert broker.ask(method, f"{PATH}/{call}")[0] in (200, 204)
    _, stats = broker.ask("GET", f"{PATH}/internalStats")
    assert len(stats["ledgers"]) == left
    broker.world.start()
    _, stats = broker.ask("GET", f"{PATH}/internalStats")
    assert len(stats["ledgers"]) == left, "the store knows it, too"


def test_consumers_do_not_receive_what_was_truncated() -> None:
    broker = filled(BrokerConfig(web_service_url=WEB))
    assert broker.ask("DELETE", f"{PATH}/truncate") == (204, None)
    peer = broker.world.connect()
    peer.subscribe(subscription="s")
    assert peer.payloads() == []
    assert broker.machine.storage_administration.stored_backlog(TOPIC)["messageBacklog"] == 0


def test_missing_partitions_count_as_new_topics() -> None:
    broker = Administrator()
    path = "/persistent/public/default/p"
    assert broker.ask("PUT", f"{path}/partitions", 2) == (204, None)
    assert broker.ask("DELETE", f"{path}-partition-1") == (204, None)
    assert broker.ask("POST", "/namespaces/public/default/maxTopicsPerNamespace", 1) == (204, None)
    status, _ = broker.ask("POST", f"{path}/createMissedPartitions")
    assert status == 412
    assert broker.ask("POST", "/namespaces/public/default/maxTopicsPerNamespace", 2) == (204, None)
    assert broker.ask("POST", f"{path}/createMissedPartitions") == (204, None)
