"""The sequence ids of each producer name of a topic, so that no message is stored twice."""

from ....model.errors import PersistenceError


class Deduplication:
    """The sequence ids of each producer name: highest accepted, and highest stored (BROKER-39).

    Clients choose names, and their sequence ids outlive their producers. So at most `limit` names without a
    producer are kept, and the name absent longest is discarded first. `now` in nanoseconds.
    """

    def __init__(self, stored: dict[str, int], now: int, limit: int) -> None:
        self.pushed: dict[str, int] = dict(stored)
        self.persisted: dict[str, int] = dict(stored)
        self._limit = limit
        self._absent_since: dict[str, int] = dict.fromkeys(stored, now)
        """Name without a producer -> the moment its producer was detached (ns), the earliest first."""

    def last_sequence_id(self, name: str) -> int:
        return self.pushed.get(name, -1)

    def is_duplicate(self, name: str, sequence_id: int, highest: int) -> bool:
        """Return True when the message is stored already, False when it is new.

        Raises `PersistenceError` while an equal or later message is accepted and not yet durable.
        """
        pushed = self.pushed.get(name)
        if pushed is None or sequence_id > pushed:
            self.pushed[name] = max(sequence_id, highest)
            return False
        if sequence_id <= self.persisted.get(name, -1):
            return True
        raise PersistenceError("Cannot determine whether the message is a duplicate at this time")

    def stored(self, name: str, highest: int) -> None:
        """Record that a message is durable."""
        if name in self.pushed and highest > self.persisted.get(name, -1):
            self.persisted[name] = highest

    def attached(self, name: str) -> None:
        """Record that a producer of that name is attached."""
        self._absent_since.pop(name, None)

    def detached(self, name: str, now: int) -> None:
        """Record that no producer of that name is attached."""
        self._absent_since.pop(name, None)
        if name in self.pushed:
            self._absent_since[name] = now

    def purge(self, before: int) -> list[str]:
        """Discard and return the names absent since before `before`, and those beyond the limit."""
        absent = self._absent_since
        discarded: list[str] = []
        for name, since in absent.items():
            if since >= before and len(absent) - len(discarded) <= self._limit:
                break
            discarded.append(name)
        for name in discarded:
            del absent[name]
            self.pushed.pop(name, None)
            self.persisted.pop(name, None)
        return discarded
