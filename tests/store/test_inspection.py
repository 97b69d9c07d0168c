"""A folder's description has all but payloads and the values of properties; a check finds faults."""

import sqlite3
from pathlib import Path

import pytest

from pulsar_sansio import Policies
from pulsar_sansio import broker_records as records
from pulsar_sansio.wire import pack_payload
from pulsar_store import NotAStore, SqliteStore, StoreInUse
from pulsar_store.database import FILE
from pulsar_store.inspection import check, describe

TOPIC = "persistent://public/default/t"


def entry(ledger_id: int, number: int) -> records.EntryAdded:
    data = b"".join(pack_payload(b"", b"secret payload"))
    return records.EntryAdded(TOPIC, ledger_id, number, 2, 9, data)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    store = SqliteStore(tmp_path)
    store.write(
        [
            records.BrokerStarted(3),
            records.TenantSaved("acme", ("boss",)),
            records.PoliciesSaved("acme/orders", Policies(max_producers=5)),
            records.GrantsSaved("acme/orders", (("clerk", ("consume",)),), (("s", ("clerk",)),)),
            records.PropertiesSaved(TOPIC, (("colour", "secret value"),)),
            records.PartitionsSaved("persistent://acme/orders/many", 4),
            records.SchemaSaved(TOPIC, 0, 1, "Order", b"secret definition", (("a", "secret value"),), 7),
            records.TopicSaved(TOPIC, 2, None, records.MigratedTo("pulsar://far:1", None)),
            records.LedgerOpened(TOPIC, 0, 0, 7),
            entry(0, 0),
            entry(0, 1),
            records.LedgerOpened(TOPIC, 1, 2, 8),
            entry(1, 0),
            records.CursorSaved(TOPIC, "s", 0, ((2, 2),), ((1, 2),), (("x", "secret value"),)),
            records.SequenceSaved(TOPIC, "p", 17),
            records.TopicCompacted(TOPIC, 2, 1, (1,), (entry(0, 1),)),
            records.TransactionOpened(0, 5, "clerk", 1000, 9),
            records.TransactionJoined(0, 5, (TOPIC,), ((TOPIC, "s"),)),
            records.AcknowledgedInTransaction(TOPIC, "s", (0, 5), ((1, 1),)),
        ]
    )
    store.close()
    return tmp_path


def change(folder: Path, *statements: str) -> None:
    connection = sqlite3.connect(folder / FILE, isolation_level=None)
    for statement in statements:
        connection.execute(statement)
    connection.close()


def test_a_description_has_every_kind_of_thing(folder: Path) -> None:
    found = {each.kind: each for each in describe(folder)}
    assert found["store"].values["topics"] == 1
    assert found["store"].values["starts"] == 3
    assert found["tenant"].values == {"admin_roles": ["boss"]}
    assert found["policies"].values == {"max_producers": 5}
    assert found["permissions"].values == {
        "roles": {"clerk": ["consume"]},
        "subscriptions": {"s": ["clerk"]},
    }
    assert found["properties"].values == {"names": ["colour"]}
    assert found["partitioned topic"].values == {"partitions": 4}
    assert found["schema"].values["bytes"] == len(b"secret definition")
    assert found["topic"].values == {
        "epoch": 2,
        "terminated_at": None,
        "migrated_to": ["pulsar://far:1", None],
        "producers": {"p": 17},
    }
    ledgers = [each.values for each in describe(folder) if each.kind == "ledger"]
    size = len(entry(0, 0).data)
    assert ledgers == [
        {"ledger": 0, "entries": 2, "bytes": 2 * size, "first_offset": 0, "opened_at": 7},
        {"ledger": 1, "entries": 1, "bytes": size, "first_offset": 2, "opened_at": 8},
    ]
    assert found["subscription"].values == {
        "subscription": "s",
        "acknowledged_up_to": 0,
        "acknowledged": [[2, 2]],
        "in_part": [1],
        "in_transactions": 1,
    }
    assert found["compacted"].values == {"ledger": 2, "entries": 1, "up_to_offset": 1}
    assert found["transaction"].values["topics"] == [TOPIC]


def test_entries_are_described_on_request(folder: Path) -> None:
    entries = [each.values for each in describe(folder, entries=True) if each.kind == "entry"]
    assert [(each["ledger"], each["entry"], each["messages"]) for each in entries] == [
        (0, 0, 2),
        (0, 1, 2),
        (1, 0, 2),
    ]


def test_a_description_has_no_payload_and_no_value_of_a_property(folder: Path) -> None:
    text = "".join(map(str, describe(folder, entries=True)))
    assert "colour" in text
    assert "secret" not in text


def test_a_whole_store_has_no_faults(folder: Path) -> None:
    assert check(folder) == ({"topics": 1, "entries": 3}, [])


@pytest.mark.parametrize(
    ("statement", "fault"),
    [
        ("UPDATE entry SET data = x'0e010000000041' WHERE id & 1", "0:1: its checksum is wrong"),
        ("UPDATE entry SET data = x'' WHERE id & 1", "0:1: its checksum is wrong"),
        ("UPDATE ledger SET first_offset = 9 WHERE ledger_id = 1", "begins at offset 9, not at 2"),
        ("UPDATE broker SET next_ledger_id = 1", "ledger 1: its id will be given again"),
        ("UPDATE cursor SET mark_delete = 3", "'s': it acknowledged 3, the topic ends at 3"),
        (
            "INSERT INTO entry SELECT 7, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1, x''",
            "1 rows of entry belong to no ledger",
        ),
        ("UPDATE entry SET bytes_before = 3 WHERE id & 1", "1 entries have another number of bytes before"),
        ("DELETE FROM compacted", "1 rows of compacted_entry belong to no compacted topic"),
    ],
)
def test_faults_that_are_found(statement: str, fault: str, folder: Path) -> None:
    change(folder, statement)
    _, faults = check(folder)
    assert fault in "\n".join(faults)


def test_a_folder_without_a_store_is_left_as_it_is(tmp_path: Path) -> None:
    for look in (check, lambda folder: list(describe(folder))):
        with pytest.raises(NotAStore, match=str(tmp_path)):
            look(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_store_in_use_is_not_looked_into(folder: Path) -> None:
    store = SqliteStore(folder)
    store.load()
    with pytest.raises(StoreInUse):
        check(folder)
    store.close()
