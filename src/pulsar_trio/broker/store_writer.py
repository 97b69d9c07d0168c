"""`StoreWriter`: hands a broker's writes to its store, in a thread where the store waits for a disk.

The machine asks for one write at a time, and gathers what it records meanwhile for the next one. So there is
no queue here, and group commit is the machine's. The event loop never waits for the disk. A write that has
begun is never abandoned.
"""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

import trio
from trio.to_thread import run_sync

from pulsar_sansio import Store, StoredState, broker_outputs, broker_records

from ..errors import StoreFailed


class StoreWriter:
    """The writes of one broker. `persisted`: told the number of each write that a thread has done."""

    def __init__(self, store: Store, persisted: Callable[[int], None]) -> None:
        self._store = store
        self._persisted = persisted
        self.blocking = store.blocking
        self._asked: broker_outputs.Persist | None = None
        """The write that is outstanding, with a store that blocks."""
        self._done = 0
        """The number of writes that a thread has done."""
        self._ended = False
        self._begin = trio.Event()
        self._waiting = trio.lowlevel.ParkingLot()

    def write_now(self, records: Sequence[broker_records.Record]) -> None:
        """Write to the store, and wait for it. Raises `StoreFailed`."""
        try:
            self._store.write(records)
        except Exception as error:
            raise StoreFailed(f"the broker's store cannot write: {error}") from error

    def begin(self, output: broker_outputs.Persist) -> None:
        """Let `run` write these records."""
        assert self._asked is None, "the machine asks for one write at a time"
        self._asked = output
        self._begin.set()

    async def run(self) -> None:
        """Write in a thread what is asked for. Raises `StoreFailed`, and reports nothing then."""
        while True:
            await self._begin.wait()
            self._begin = trio.Event()
            output = self._asked
            assert output is not None
            await run_sync(self.write_now, output.records)
            self._asked = None
            self._done += 1
            self._persisted(output.write)
            self._waiting.unpark_all()

    async def flush(self) -> bool:
        """Wait until everything recorded so far is in the store. Return False where the broker ended before.

        That is part of the outstanding write, or of the one after it.
        """
        upto = self._done + 2
        while self._asked is not None and self._done < upto:
            if self._ended:
                return False
            await self._waiting.park()
        return True

    def end(self) -> None:
        """Let `flush` wait no more: the broker has ended."""
        self._ended = True
        self._waiting.unpark_all()


@asynccontextmanager
async def loaded(store: Store) -> AsyncIterator[list[StoredState]]:
    """Load a store for the block, and close it after the block; in threads where the store blocks.

    The state is in a list, from which a broker takes it: nothing else keeps it in memory.
    """
    state = [await run_sync(store.load) if store.blocking else store.load()]
    try:
        yield state
    finally:
        if store.blocking:
            with trio.CancelScope(shield=True):
                await run_sync(store.close)
        else:
            store.close()
