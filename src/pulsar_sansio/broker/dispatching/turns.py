"""`Turns`: the round robin of the consumers of a Shared subscription (rule SUBT-07).

The best priority level with an available consumer is served, in the order of arrival. A consumer that was
found unavailable sleeps until `wake`. So a choice does not look at thousands of consumers without permits,
and a FLOW looks at one.
"""

from bisect import bisect_left, insort
from collections import Counter
from itertools import count

from .consumer import Consumer

TurnRank = tuple[int, int]
"""Priority level, and number of arrival."""


class Turns:
    """Consumers by level and arrival. `wake` must be called for each that may be available again."""

    def __init__(self) -> None:
        self._arrivals = count()
        self._ranks: dict[Consumer, TurnRank] = {}
        self._awake: dict[TurnRank, Consumer] = {}
        self._order: list[TurnRank] = []
        """The ranks of consumers that are awake, in order."""
        self._next: dict[int, int] = {}
        """Level that has consumers -> the number of arrival from which its next one is looked for."""
        self._levels: Counter[int] = Counter()
        """Level -> the number of its consumers."""

    def add(self, consumer: Consumer) -> None:
        """Add a consumer, which is the last of its level."""
        self._ranks[consumer] = consumer.priority, next(self._arrivals)
        self._levels[consumer.priority] += 1
        self.wake(consumer)

    def remove(self, consumer: Consumer) -> None:
        """Remove a consumer; the turn of the others stays."""
        rank = self._ranks.pop(consumer)
        if self._awake.pop(rank, None) is not None:
            del self._order[bisect_left(self._order, rank)]
        level = rank[0]
        self._levels[level] -= 1
        if not self._levels[level]:
            del self._levels[level]
            self._next.pop(level, None)

    def wake(self, consumer: Consumer) -> None:
        """The consumer may be available again."""
        rank = self._ranks.get(consumer)
        if rank is not None and rank not in self._awake:
            self._awake[rank] = consumer
            insort(self._order, rank)

    def next(self) -> Consumer | None:
        """Return the available consumer whose turn it is; None where none is available."""
        order = self._order
        while order:
            level = order[0][0]
            index = bisect_left(order, (level, self._next.get(level, 0)))
            if index == len(order) or order[index][0] != level:
                index = 0
            rank = order[index]
            consumer = self._awake[rank]
            if consumer.available:
                self._next[level] = rank[1] + 1
                return consumer
            del order[index], self._awake[rank]
        return None

    def any_available(self) -> bool:
        """True when a consumer is available; no turn passes."""
        order = self._order
        while order:
            if self._awake[order[-1]].available:
                return True
            del self._awake[order.pop()]
        return False
