"""A line that breaks by itself, at a piece of data that is then lost: a question, or its answer."""

from random import Random

import trio

from tests.suite.brokers import BrokerUnderTest
from tests.suite.line import Line


class BrittleLine(Line):
    """A line that passes everything until `break_often` or `die`."""

    def __init__(self, broker: BrokerUnderTest) -> None:
        super().__init__(broker)
        self._rng = Random(1)
        self._pieces = 0
        self._least = self._most = 0
        self._is_dead = False
        self.breaks = 0
        """The number of times that it broke."""
        self.broke = trio.Event()
        """Set when it breaks for the first time."""

    def break_often(self, least: int, most: int) -> None:
        """Break again and again, after `least` to `most` pieces; never with 0."""
        self._least, self._most = least, most
        self._pieces = self._rng.randint(least, most)

    def die(self) -> None:
        """End everything, also what comes later: neither side hears of the other any more."""
        self._is_dead = True
        self.cut()

    def passes(self, connection: object, from_client: bool, data: bytes) -> bool:
        if self._is_dead:
            return False
        if not self._most:
            return True
        self._pieces -= 1
        if self._pieces > 0:
            return True
        self.breaks += 1
        self.broke.set()
        self._pieces = self._rng.randint(self._least, self._most)
        self.cut()
        return False


async def brittle_line(broker: BrokerUnderTest, nursery: trio.Nursery) -> BrittleLine:
    line = await nursery.start(BrittleLine(broker).run)
    assert isinstance(line, BrittleLine)
    return line
