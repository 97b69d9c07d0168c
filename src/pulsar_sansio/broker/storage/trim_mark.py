"""`TrimMark`: the moment at which a topic's first ledger can be removed.

The mark is the offset that all cursors must reach. The topic counts the cursors before it: a mark-delete
position that moves costs two comparisons, and each ledger is looked at once. The module knows offsets only.
"""

from collections.abc import Iterable

NEVER = 2**63
"""The mark of a topic with one ledger, which is being written."""


class TrimMark:
    """`position`: an offset, or `NEVER`. No ledger can be removed while a cursor is before it."""

    __slots__ = ("_before", "position")

    def __init__(self) -> None:
        self.position = NEVER
        self._before = 0

    def place(self, position: int, cursors: Iterable[int]) -> None:
        """Set the mark, and count the mark-delete positions before it."""
        self.position = position
        self._before = sum(mark_delete < position for mark_delete in cursors)

    def cursor_added(self, mark_delete: int) -> None:
        """Count a new cursor with that mark-delete position."""
        self._before += mark_delete < self.position

    def cursor_moved(self, before: int, mark_delete: int) -> bool:
        """Count a cursor that moved. Return True when it was the last one before the mark."""
        position = self.position
        self._before += (mark_delete < position) - (before < position)
        return self._before == 0 and before < position

    def cursor_deleted(self, mark_delete: int) -> bool:
        """Count a deleted cursor no more. Return True when it was the last one before the mark."""
        if mark_delete >= self.position:
            return False
        self._before -= 1
        return self._before == 0
