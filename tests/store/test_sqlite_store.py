"""The store on disk: the sum of records over a close, atomic batches, its lock, and its failures."""

import os
import sqlite3
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event, Thread

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pulsar_sansio import InvalidConfiguration, MemoryStore, Policies, PulsarError, StoredState
from pulsar_sansio import broker_records as records
from pulsar_store import (
    SYNCS,
    NotAStore,
    SqliteStore,
    StoreDamaged,
    StoreError,
    StoreFull,
    StoreInUse,
    StoreNotWritable,
    StoreTooNew,
    Sync,
)
from pulsar_store.database import FILE
from pulsar_store.inspection import check
from pulsar_store.record_writer import MOST_ROWS
from pulsar_store.tables import APPLICATION_ID, ENTRY_COLUMNS
from tests.store.reading import reloaded, whole
from tests.store.written import batches

TOPIC = "persistent://public/default/t"
BEGINNING: list[records.Record] = [
    records.BrokerStarted(1),
    records.TopicSaved(TOPIC, None, None),
    records.LedgerOpened(TOPIC, 0, 0, 7),
]


def entry(number: int, data: bytes = b"data") -> records.EntryAdded:
    return records.EntryAdded(TOPIC, 0, number, 1, 9, data)


IN_MEMORY = Path("/dev/shm")
"""A file system without a disk, on some systems: for tests that open many stores."""


@settings(max_examples=100)
@given(batches(), st.integers(1, 9))
def test_what_was_written_is_loaded_after_a_close(written: list[list[records.Record]], life: int) -> None:
    """The two stores add records up alike, for every sequence that a broker may write. `life`: batches
    between two closes."""
    memory = MemoryStore()
    with TemporaryDirectory(dir=IN_MEMORY if IN_MEMORY.is_dir() else None) as folder:
        store = SqliteStore(folder, sync="none")
        for number, batch in enumerate(written):
            memory.write(batch)
            store.write(batch)
            if number % life == 0:
                store.close()
        assert whole(store) == memory.load()
        store.close()
        assert reloaded(Path(folder)) == memory.load()


@pytest.mark.parametrize("count", [1, 2, 3, MOST_ROWS - 1, MOST_ROWS, 3 * MOST_ROWS + 5])
def test_a_run_of_entries_of_any_length(count: int, tmp_path: Path) -> None:
    store = SqliteStore(tmp_path)
    batch = [*BEGINNING, *(entry(number, b"%d" % number) for number in range(count))]
    store.write(batch)
    store.close()
    memory = MemoryStore()
    memory.write(batch)
    assert reloaded(tmp_path) == memory.load()


@pytest.mark.parametrize("sync", SYNCS)
def test_what_was_written_survives_a_process_that_is_killed(sync: Sync, tmp_path: Path) -> None:
    script = f"""
import os, signal
from pulsar_store import SqliteStore
from tests.store.test_sqlite_store import BEGINNING, entry
store = SqliteStore({str(tmp_path)!r}, sync={sync!r})
store.load()
store.write([*BEGINNING, entry(0)])
store.write([entry(1)])
os.kill(os.getpid(), signal.SIGKILL)
"""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    killed = subprocess.run([sys.executable, "-c", script], env=environment, check=False)
    assert killed.returncode == -9
    assert reloaded(tmp_path).topics[TOPIC].ledgers[0].entries == [entry(0), entry(1)]


def test_a_batch_that_fails_leaves_nothing_behind(tmp_path: Path) -> None:
    """The store takes no more then, and a later one goes on from the last whole batch."""
    store = SqliteStore(tmp_path)
    store.write(BEGINNING)
    with pytest.raises(StoreError) as met:
        store.write([entry(0), entry(1), entry(1)])
    assert str(tmp_path) in str(met.value)
    with pytest.raises(StoreError, match="takes no more"):
        store.write([entry(2)])
    store.close()
    store.write([entry(0)])
    store.close()
    assert reloaded(tmp_path).topics[TOPIC].ledgers[0].entries == [entry(0)]


def test_the_space_of_deleted_ledgers_is_used_again(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path, sync="none")
    store.write([records.TopicSaved(TOPIC, None, None)])
    sizes = []
    for ledger in range(6):
        opened = records.LedgerOpened(TOPIC, ledger, ledger * 500, 0)
        added = [records.EntryAdded(TOPIC, ledger, each, 1, 0, b"x" * 10_000) for each in range(500)]
        store.write([opened, *added])
        store.write([records.LedgersDeleted(TOPIC, (ledger,))])
        store.close()
        sizes.append((tmp_path / FILE).stat().st_size)
    assert max(sizes) < 1.2 * sizes[0]
    assert reloaded(tmp_path).next_ledger_id == 6


def test_nothing_of_a_deleted_topic_is_left_in_any_table(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path)
    transaction = (0, 1)
    store.write(
        [
            *BEGINNING,
            entry(0),
            records.CursorSaved(TOPIC, "s", 0, (), ()),
            records.SequenceSaved(TOPIC, "p", 1),
            records.AcknowledgedInTransaction(TOPIC, "s", transaction, ((0, 1),)),
            records.TopicCompacted(TOPIC, 1, 0, (0,), (entry(0),)),
            records.PoliciesSaved(TOPIC, Policies(max_producers=1)),
            records.TopicDeleted(TOPIC),
        ]
    )
    store.close()
    with sqlite3.connect(tmp_path / FILE) as connection:
        tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type='table'")]
        left = {
            name for name in tables if connection.execute(f"SELECT count(*) FROM {name}").fetchone() != (0,)
        }
    connection.close()
    assert left == {"broker"}


# --- failures -----------------------------------------------------------------------------------------------


def test_a_second_store_of_this_process_is_refused(tmp_path: Path) -> None:
    first, second = SqliteStore(tmp_path), SqliteStore(tmp_path)
    first.load()
    for use in (second.load, lambda: second.write([])):
        with pytest.raises(StoreInUse, match="is in use") as met:
            use()
        assert str(tmp_path) in str(met.value)
        second.close()
    first.close()
    assert second.load() == StoredState()
    second.close()


def test_the_lock_ends_with_the_process_that_has_it(tmp_path: Path) -> None:
    script = f"""
import sys
from pulsar_store import SqliteStore
store = SqliteStore({str(tmp_path)!r})
store.load()
print("loaded", flush=True)
sys.stdin.read()
"""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(
        [sys.executable, "-c", script], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"loaded\n"
        with pytest.raises(StoreInUse):
            SqliteStore(tmp_path).load()
        other.kill()
        other.wait()
        assert reloaded(tmp_path) == StoredState()


def test_a_store_of_a_later_version_is_refused(tmp_path: Path) -> None:
    reloaded(tmp_path)
    change(tmp_path, "PRAGMA user_version = 3")
    with pytest.raises(StoreTooNew, match="format 3, this version reads up to 2"):
        SqliteStore(tmp_path).load()


def change(folder: Path, statement: str) -> None:
    """Change the file of a store behind its back."""
    connection = sqlite3.connect(folder / FILE, isolation_level=None)
    connection.execute(statement)
    connection.close()


@pytest.mark.parametrize(
    ("policies", "what"),
    [
        ('{"colour":"blue"}', "colour"),
        ('{"publish_rate":{"messages":1,"burst":2}}', "burst"),
        ('{"dispatch_rates":{"by_name":[["s",{"burst":2}]]}}', "burst"),
    ],
)
def test_a_policy_of_a_later_version_is_not_left_out(policies: str, what: str, tmp_path: Path) -> None:
    reloaded(tmp_path)
    change(tmp_path, f"INSERT INTO policies VALUES ('public/default', '{policies}')")
    with pytest.raises(StoreTooNew, match=what) as met:
        SqliteStore(tmp_path).load()
    assert str(tmp_path) in str(met.value)


def make_format_1(folder: Path) -> None:
    """Bring a store to the tables of the first version, whose entries did not know the bytes before them."""
    columns = ", ".join(f"{each} BLOB" if each == "data" else each for each in ENTRY_COLUMNS.split(", "))
    change(folder, f"CREATE TABLE older (id INTEGER PRIMARY KEY, {columns})")
    change(folder, f"INSERT INTO older SELECT id, {ENTRY_COLUMNS} FROM entry")
    change(folder, "DROP TABLE entry")
    change(folder, "ALTER TABLE older RENAME TO entry")
    change(folder, "PRAGMA user_version = 1")


@settings(max_examples=30)
@given(batches())
def test_a_store_of_the_first_version_is_brought_to_the_present_one(
    written: list[list[records.Record]],
) -> None:
    with TemporaryDirectory(dir=IN_MEMORY if IN_MEMORY.is_dir() else None) as name:
        folder, memory = Path(name), MemoryStore()
        store = SqliteStore(folder, sync="none")
        for batch in written:
            memory.write(batch)
            store.write(batch)
        store.close()
        make_format_1(folder)
        assert reloaded(folder) == memory.load()
        assert reloaded(folder) == memory.load(), "the second start finds the present version"


def test_pages_are_read_while_another_thread_writes(tmp_path: Path) -> None:
    """A reader sees every batch whose write has returned, and waits for no other one."""
    store = SqliteStore(tmp_path, sync="none")
    store.load()
    store.write([*BEGINNING, entry(0)])
    done = 0
    over = Event()

    def write() -> None:
        nonlocal done
        for number in range(1, 200):
            store.write([entry(number, b"%d" % number)])
            done = number
        over.set()

    thread = Thread(target=write)
    thread.start()
    while not over.is_set():
        upto = done
        page = store.reader.read_entries(TOPIC, 0, 0, upto + 1, 10**6)
        assert [each.entry_id for each in page.entries] == list(range(upto + 1))
    thread.join()
    store.close()


def test_a_page_ends_with_the_bytes_asked_for_and_has_one_entry_at_least(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path)
    store.write([*BEGINNING, *(entry(number, b"x" * 10) for number in range(9))])
    for size, count in ((1, 1), (10, 1), (11, 2), (30, 3), (10**6, 5)):
        page = store.reader.read_entries(TOPIC, 0, 4, 5, size)
        assert (page.bytes_before, len(page.entries)) == (40, count)
        assert page.entries[0] == entry(4, b"x" * 10)
    store.write([records.LedgersDeleted(TOPIC, (0,))])
    with pytest.raises(StoreDamaged, match=f"ledger 0 of {TOPIC} is missing"):
        store.reader.read_entries(TOPIC, 0, 4, 5, 1)
    store.close()


def test_the_database_of_another_program_is_left_alone(tmp_path: Path) -> None:
    change(tmp_path, "CREATE TABLE theirs (a)")
    before = (tmp_path / FILE).read_bytes()
    with pytest.raises(NotAStore, match="give another folder"):
        SqliteStore(tmp_path).load()
    assert (tmp_path / FILE).read_bytes() == before


def test_a_file_that_is_no_database_is_damaged(tmp_path: Path) -> None:
    (tmp_path / FILE).write_bytes(b"What is this? " * 1000)
    with pytest.raises(StoreDamaged, match="restore"):
        SqliteStore(tmp_path).load()


@pytest.mark.parametrize("page", [2, 9, 30])
def test_a_damaged_page_is_found_when_it_is_read(page: int, tmp_path: Path) -> None:
    """At the start, or when it has entries, as soon as one of them is needed."""
    store = SqliteStore(tmp_path)
    store.write([*BEGINNING, *(entry(number, b"x" * 300) for number in range(500))])
    store.close()
    with (tmp_path / FILE).open("r+b") as file:
        file.seek((page - 1) * 4096)
        file.write(b"\xa5" * 4096)
    with pytest.raises(StoreDamaged, match="restore") as met:
        reloaded(tmp_path)
    assert str(tmp_path) in str(met.value)
    with pytest.raises(StoreDamaged, match="restore"):
        check(tmp_path)


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO tenant VALUES ('t', 'no JSON')",
        "INSERT INTO cursor VALUES (77, 's', 0, '[]', '[]', '[]')",
        "DELETE FROM broker",
        """INSERT INTO policies VALUES ('a/b', '{"publish_rate":{"messages":"many"}}')""",
        "DROP TABLE sequence",
    ],
)
def test_rows_that_no_record_made_are_damage(statement: str, tmp_path: Path) -> None:
    reloaded(tmp_path)
    change(tmp_path, statement)
    with pytest.raises(StoreError) as met:
        SqliteStore(tmp_path).load()
    assert str(tmp_path) in str(met.value)


def test_an_entry_that_is_missing_is_damage(tmp_path: Path) -> None:
    """STORE-01: a consumer would get a later entry by the id of the missing one."""
    store = SqliteStore(tmp_path)
    store.write([*BEGINNING, *map(entry, range(5))])
    store.close()
    change(tmp_path, "DELETE FROM entry WHERE id % 4294967296 = 2")
    with pytest.raises(StoreDamaged, match="entry 2 of ledger 0 is missing"):
        reloaded(tmp_path)


def test_a_store_that_could_not_be_loaded_is_not_locked(tmp_path: Path) -> None:
    reloaded(tmp_path)
    change(tmp_path, "INSERT INTO tenant VALUES ('t', 'no JSON')")
    store = SqliteStore(tmp_path)
    with pytest.raises(StoreDamaged):
        store.load()
    change(tmp_path, "DELETE FROM tenant")
    assert store.load() == StoredState()
    store.close()


def test_a_full_disk(tmp_path: Path) -> None:
    """SQLite refuses to let the file grow, as it does when the system has no space left."""
    store = SqliteStore(tmp_path)
    store.write(BEGINNING)
    assert store._connection is not None
    store._connection.execute("PRAGMA max_page_count = 60")
    with pytest.raises(StoreFull, match="make room") as met:
        for number in range(100):
            store.write([entry(number, b"x" * 20_000)])
    assert str(tmp_path) in str(met.value)
    store.close()
    kept = reloaded(tmp_path).topics[TOPIC].ledgers[0].entries
    assert kept == [entry(number, b"x" * 20_000) for number in range(len(kept))]
    assert 0 < len(kept) < 100


WITHOUT_RIGHTS = """
import os, sys
from pulsar_store import SqliteStore, StoreNotWritable
if os.getuid() == 0:  # the superuser may write everywhere
    os.setuid(65534)
try:
    SqliteStore(sys.argv[1]).load()
except StoreNotWritable as error:
    print(error)
"""


@pytest.mark.parametrize("present", [True, False], ids=["a store", "no store"])
def test_a_folder_that_cannot_be_written(present: bool, tmp_path: Path) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    if present:
        reloaded(folder)
    folder.chmod(0o555)
    if present:
        (folder / FILE).chmod(0o444)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    for above in (tmp_path, *tmp_path.parents[:3]):
        if above.stat().st_uid == os.getuid():
            above.chmod(above.stat().st_mode | 0o055)
    said = subprocess.run(
        [sys.executable, "-c", WITHOUT_RIGHTS, str(folder)],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    folder.chmod(0o755)
    assert str(folder) in said.stdout, said
    assert "right to write" in said.stdout


def test_a_file_in_place_of_the_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for folder in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(StoreNotWritable, match="cannot be used as a store"):
            SqliteStore(folder).load()


def test_a_sync_that_there_is_not(tmp_path: Path) -> None:
    with pytest.raises(InvalidConfiguration, match="one of always, batch, none, not 'sometimes'"):
        SqliteStore(tmp_path, sync="sometimes")  # type: ignore[arg-type]


def test_every_error_is_one_of_pulsars() -> None:
    assert issubclass(StoreError, PulsarError)
    assert APPLICATION_ID.to_bytes(4, "big") == b"PuTr"
