"""`TableCommands`: the commands of `Client` about table views.

A table view stands among the consumers as the one it reads with, under the view's handle. So the client
closes, counts and ends it as a consumer.
"""

from collections.abc import Mapping
from functools import partial
from operator import setitem
from typing import Any

from ...model.config import TableViewSpec
from ...model.errors import InvalidConfiguration
from ..connecting.services import Services
from ..table_view import TableView
from .open_handles import OpenHandles


class TableCommands:
    """Opens table views, and passes commands to them."""

    __slots__ = ("_context", "_handles", "_services")

    def __init__(self, services: Services, handles: OpenHandles) -> None:
        self._context = services.context
        self._services = services
        self._handles = handles

    def open_table_view(self, now: int, spec: TableViewSpec) -> int:
        """Return the handle of a new table view; `TableViewReady` or `TableViewFailed` follows. Raises
        `ClosedError` when the client is closed."""
        handles = self._handles
        handles.check_open()
        if not isinstance(spec, TableViewSpec):
            raise InvalidConfiguration(f"open_table_view takes a TableViewSpec, not {type(spec).__name__}")
        self._context.now = now
        handle = self._context.new_id()
        register = partial(setitem, handles.consumers, handle)
        handles.views[handle] = TableView(self._services, handle, spec, register)
        return handle

    def table(self, view: int) -> Mapping[Any, Any]:
        """Return the table: the last value of every key.

        The table is always one object. It changes with the topic, and keeps its content when the view ends.
        Before `TableViewReady` some keys may be missing.
        """
        return self._handles.view(view).table

    def refresh(self, now: int, view: int) -> int:
        """`RequestDone` follows when everything that is in the topic now is in the table."""
        machine = self._handles.view(view)
        self._context.now = now
        request = self._context.new_id()
        machine.refresh(request)
        return request
