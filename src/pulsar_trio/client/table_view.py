"""Table views: the last value of every key of a topic, as a mapping that keeps up with it.

Reading it is reading a dictionary: it never waits. It changes between two checkpoints of trio and at no other
moment; `snapshot` is a copy that does not change any more.
"""

from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Generic

import trio

from pulsar_sansio import PulsarError, TableViewSpec, unknown_names
from pulsar_sansio import client_outputs as outputs

from .. import official_names
from ..values import K, T
from .endpoint import Endpoint

if TYPE_CHECKING:
    from .driver import Driver


class Changes:
    """The changes that one iteration over `changes()` has not taken yet: the last value of each key.

    A key that came and went in between is left out. So every key here is in the table, or the iteration
    knows it from before.
    """

    def __init__(self, known: Iterable[Any]) -> None:
        self.pending: dict[Any, bytes | None] = {}
        self.something = trio.lowlevel.ParkingLot()
        self._known = set(known)
        """Keys of the table as the iteration knows it."""

    def note(self, key: Any, value: bytes | None) -> None:
        self.pending.pop(key, None)
        if value is not None or key in self._known:
            self.pending[key] = value

    def take(self) -> tuple[Any, bytes | None]:
        """Remove and return the change that waits longest. The caller makes sure that there is one."""
        key = next(iter(self.pending))
        value = self.pending.pop(key)
        if value is None:
            self._known.discard(key)
        else:
            self._known.add(key)
        return key, value


@unknown_names(official_names.TABLE_VIEW)
class TableView(Endpoint, Mapping[K, T], Generic[K, T]):
    """Made by `client.create_table_view`. Use it from any task of the same `trio.run`.

    Keys are text, those that producers gave as bytes in Base64, or those of its schema of keys. Values are
    bytes, or those of its schema, which are decoded when they are looked at: `SchemaDecodingError` concerns
    that key alone. After the end it stays as it was.
    """

    _kind = "table view"

    def __init__(self, driver: "Driver", handle: int, spec: TableViewSpec) -> None:
        super().__init__(driver, handle)
        self._table: Mapping[Any, Any] = self._machine.table(handle)
        self._listeners: set[Changes] = set()

    # --- reading it -------------------------------------------------------------------------------------

    def __getitem__(self, key: K) -> T:
        value: T = self._table[key]
        return value

    def __iter__(self) -> Iterator[K]:
        return iter(self._table)

    def __len__(self) -> int:
        return len(self._table)

    def __hash__(self) -> int:
        return id(self)

    def __eq__(self, other: object) -> bool:
        return self is other

    def snapshot(self) -> dict[K, T]:
        """The table as it is now."""
        return dict(self._table)

    # --- keeping up -------------------------------------------------------------------------------------

    async def refresh(self) -> None:
        """Wait until everything is in the table that is in the topic now. Raises `ResourceClosed`,
        `ResourceBroken`, what the broker refuses it with, and `TimedOut` after `operation_timeout` without an
        answer."""
        await self._request(self._machine.refresh)

    async def changes(self) -> AsyncGenerator[tuple[K, T | None], None]:
        """Keys that change from now on, with their new values, None for a deleted key.

        A slow application misses values that were replaced meanwhile, but never the last one. It also misses
        keys that came and went. Raises `ResourceClosed` or `ResourceBroken` when the view ends.
        """
        changes = Changes(self._table)
        self._listeners.add(changes)
        try:
            while True:
                while changes.pending:
                    key, payload = changes.take()
                    yield key, None if payload is None else self[key]
                if self._ended is not None:
                    self._refuse()
                await changes.something.park()
        finally:
            self._listeners.discard(changes)

    # --- the driver's side ------------------------------------------------------------------------------

    def _on_output(self, output: Any) -> None:
        match output:
            case outputs.TableViewReady(_, topic):
                self.topic = topic
                self.connected = True
                self._ready.set(None)
            case outputs.TableViewFailed(_, error):
                self._ready.set(None, error)
            case outputs.TableChanged(_, changed):
                for changes in self._listeners:
                    for key, value in changed:
                        changes.note(key, value)
                    changes.something.unpark_all()
            case _:
                super()._on_output(output)

    def _on_end(self, error: PulsarError) -> None:
        for changes in self._listeners:
            changes.something.unpark_all()

    def __repr__(self) -> str:
        state = "closed" if self._ended else "connected" if self.connected else "not connected"
        return f"<TableView of {self.topic}, {len(self)} keys, {state}>"
