"""A power cut in the middle of a write: the file system has some sectors of the write and not others.

A disk writes sectors in any order between two syncs, and a sector whole or not at all. So at a cut a file
has, sector by sector, what it had at the last sync or what came later, and any length between the two. SQLite
syncs the write-ahead log before it writes to the database, and the database before it begins the log anew.
"""

from dataclasses import dataclass
from pathlib import Path
from random import Random

import pytest

from pulsar_sansio import MemoryStore, StoredState
from pulsar_sansio import broker_records as records
from pulsar_store import SqliteStore, Sync, database
from pulsar_store.database import FILE
from tests.store.reading import reloaded

TOPIC = "persistent://public/default/t"
SECTOR = 512
WRITES = 45

PAGES = 250
"""The pages after which the log goes to the database: so few that it does several times."""


@dataclass(frozen=True)
class Files:
    """These are the files of a machine that synced all, after some number of writes."""

    database: bytes
    log: bytes

    @classmethod
    def of(cls, folder: Path) -> "Files":
        log = folder / f"{FILE}-wal"
        return cls((folder / FILE).read_bytes(), log.read_bytes() if log.exists() else b"")

    @property
    def generation(self) -> bytes:
        """The salt in the header of the log, which changes when the log begins anew."""
        return self.log[16:24]

    def restored(self, folder: Path) -> StoredState:
        folder.mkdir()
        (folder / FILE).write_bytes(self.database)
        (folder / f"{FILE}-wal").write_bytes(self.log)
        return reloaded(folder)


def cut(synced: bytes, written: bytes, random: Random) -> bytes:
    """Return what a file may have where the power goes between two syncs."""
    length = random.choice([len(synced), len(written), random.randint(0, len(written))])
    length = max(len(synced), length)
    found = bytearray(synced.ljust(length, b"\0"))
    share = random.choice([0.1, 0.5, 0.98, 1.0])
    last = random.choice([length, random.randint(0, length)])
    for first in range(0, min(length, len(written)), SECTOR):
        end = min(first + SECTOR, length, len(written))
        if first < last and random.random() < share:
            found[first:end] = written[first:end]
    return bytes(found)


def batch(number: int, random: Random) -> list[records.Record]:
    """Entries in a ledger of their own, a cursor that moves, and now and then the end of an old ledger."""
    written: list[records.Record] = [records.LedgerOpened(TOPIC, number, number * 4, 7)]
    for entry_id in range(4):
        data = random.randbytes(random.choice([100, 5_000, 40_000]))
        written.append(records.EntryAdded(TOPIC, number, entry_id, 1, 9, data, last_index=entry_id))
    written.append(records.CursorSaved(TOPIC, "s", number * 4, (), ()))
    if number >= 8 and number % 3 == 0:
        written.append(records.LedgersDeleted(TOPIC, (number - 8,)))
    return written


@pytest.fixture(autouse=True)
def small_log(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "CHECKPOINT_PAGES", PAGES)


def life(folder: Path, sync: Sync) -> tuple[list[Files], list[StoredState]]:
    """Write batches; return the files and the sum of records after each of them."""
    random = Random(7)
    store, memory = SqliteStore(folder, sync=sync), MemoryStore()
    store.load()
    beginning: list[records.Record] = [records.BrokerStarted(1), records.TopicSaved(TOPIC, None, None)]
    files, states = [], []
    for each in (beginning, *(batch(number, random) for number in range(WRITES))):
        store.write(each)
        memory.write(each)
        files.append(Files.of(folder))
        states.append(memory.load())
    store.close()
    return files, states


def test_a_cut_leaves_what_was_confirmed_and_the_write_in_progress_whole_or_not_at_all(
    tmp_path: Path,
) -> None:
    """STORE-01. With `always` each write ends with a sync of the log."""
    files, states = life(tmp_path / "life", "always")
    assert len({each.generation for each in files}) >= 3, "the log began anew"
    assert len({each.database for each in files}) >= 3, "the log went to the database"
    random = Random(8)
    outcomes = []
    for number in range(1, len(files)):
        before, after = files[number - 1], files[number]
        for attempt in range(3):
            torn = Files(before.database, cut(before.log, after.log, random))
            found = torn.restored(tmp_path / f"log-{number}-{attempt}")
            assert found in (states[number - 1], states[number]), number
            outcomes.append(found == states[number])
        if after.database != before.database:
            for attempt in range(20):
                torn = Files(cut(before.database, after.database, random), after.log)
                assert torn.restored(tmp_path / f"database-{number}-{attempt}") == states[number], number
    assert {True, False} == set(outcomes)


@pytest.mark.parametrize("reach", [2, 5])
def test_a_cut_without_syncs_leaves_the_writes_up_to_some_point(reach: int, tmp_path: Path) -> None:
    """With `batch` and `none` the last writes may be lost, and never one before another that is there."""
    files, states = life(tmp_path / "life", "none")
    random = Random(9)
    kept = []
    for number in range(reach, len(files)):
        synced, last = files[number - reach], files[number]
        if (synced.generation, synced.database) != (last.generation, last.database):
            continue  # the log went to the database in between, and was synced before
        for attempt in range(3):
            torn = Files(last.database, cut(synced.log, last.log, random))
            found = torn.restored(tmp_path / f"{number}-{attempt}")
            possible = states[number - reach : number + 1]
            assert found in possible, number
            kept.append(possible.index(found))
    assert {0, reach} <= set(kept)
    assert len(set(kept)) > 2
