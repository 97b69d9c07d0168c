"""Worlds whose broker has a store that blocks: writes take virtual time, and may be lost with the broker."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from random import Random
from typing import Any
from unittest.mock import patch

import pytest
import trio

from pulsar_sansio import MemoryStore, broker_outputs, broker_records
from pulsar_trio.broker.store_writer import StoreWriter
from tests.triosim.world import run_seed

SEEDS = range(12)

FOUND_IN = (35, 49)
"""Seeds in which a receipt before its write was found; others may be needed when worlds change."""

SLOWEST = 0.02
"""Seconds before a write is done, and from then until the broker knows it, at most."""


class SlowStore(MemoryStore):
    blocking = True


@contextmanager
def slow_stores(seed: int) -> Iterator[list[int]]:
    """Gives the numbers of records of all writes."""
    drawn = Random(seed)
    writes: list[int] = []

    async def run_sync(call: Callable[..., Any], *arguments: Any) -> Any:
        """Call in no thread. A broker that is killed dies before the call, or after it."""
        await trio.sleep(drawn.uniform(0, SLOWEST))
        result = call(*arguments)
        writes.append(len(arguments[0]))
        await trio.sleep(drawn.uniform(0, SLOWEST))
        return result

    with (
        patch("pulsar_trio.broker.store_writer.run_sync", run_sync),
        patch("tests.triosim.world.MemoryStore", SlowStore),
    ):
        yield writes


def test_nothing_is_lost_or_stuck_over_a_slow_store() -> None:
    gathered = 0
    for seed in SEEDS:
        with slow_stores(seed) as writes:
            report = run_seed(seed)
        assert report.failure == "", (seed, report.failure)
        gathered += sum(count > 1 for count in writes)
    assert gathered, "no write had more than one record"


def test_a_seed_gives_the_same_world() -> None:
    hashes = []
    for _ in range(2):
        with slow_stores(3):
            hashes.append(run_seed(3).trace_hash)
    assert hashes[0] == hashes[1]


def test_a_receipt_before_its_write_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each write is confirmed at once, and done with the next one: a broker that is killed loses the last."""
    late: dict[StoreWriter, Sequence[broker_records.Record]] = {}

    def confirm_and_wait(self: StoreWriter, output: broker_outputs.Persist) -> None:
        self._store.write(late.get(self, ()))
        late[self] = output.records
        self._persisted(output.write)

    monkeypatch.setattr(StoreWriter, "begin", confirm_and_wait)
    for seed in (*FOUND_IN, *range(60)):
        with slow_stores(seed):
            if run_seed(seed).failure:
                return
    pytest.fail("not found in 60 seeds")
