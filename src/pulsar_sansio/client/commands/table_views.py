"""`TableCommands`: the commands of `Client` about table views.

A table view stands in the root as the consumer it reads with, under the same handle: so it is closed, and
counted, and ended with the client.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import partial
from operator import setitem
from typing import TYPE_CHECKING

from ...model.config import TableViewSpec
from ...model.errors import InvalidConfiguration, LocalProtocolError
from ..connecting.services import ClientContext, Services
from ..table_view import TableView

if TYPE_CHECKING:
    from ..multi_topics.open_consumer import AnyConsumer


class TableCommands(ABC):
    """What is between here and the machines is `Client`'s."""

    _context: ClientContext
    _services: Services
    _consumers: "dict[int, AnyConsumer]"
    _views: dict[int, TableView]

    @abstractmethod
    def _check_open(self) -> None: ...

    @abstractmethod
    def _unknown(self, kind: str, handle: int) -> LocalProtocolError: ...

    def open_table_view(self, now: int, spec: TableViewSpec) -> int:
        """Returns the view's handle; `TableViewReady` or `TableViewFailed` follows. Raises `ClosedError` when
        the client is closed."""
        self._check_open()
        if not isinstance(spec, TableViewSpec):
            raise InvalidConfiguration(f"open_table_view takes a TableViewSpec, not {type(spec).__name__}")
        self._context.now = now
        handle = self._context.new_id()
        register = partial(setitem, self._consumers, handle)
        self._views[handle] = TableView(self._context, self._services, handle, spec, register)
        return handle

    def table(self, view: int) -> Mapping[str, bytes]:
        """The table: of every key the last value. Always the same object; it changes with the topic, and
        stays as it was when the view ends. Before `TableViewReady` some of it may be missing."""
        return self._view(view).table

    def refresh(self, now: int, view: int) -> int:
        """`RequestDone` follows when everything that is in the topic now is in the table."""
        machine = self._view(view)
        self._context.now = now
        request = self._context.new_id()
        machine.refresh(request)
        return request

    def _view(self, handle: int) -> TableView:
        view = self._views.get(handle)
        if view is None:
            raise self._unknown("table view", handle)
        return view
