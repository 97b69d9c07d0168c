"""A line on which the end of a transaction is lost: the question, or its answer."""

from pulsar_sansio.wire import FrameDecoder, max_frame_size, proto
from tests.suite.brokers import BrokerUnderTest
from tests.suite.line import Line

LIMIT = max_frame_size(5 * 1024 * 1024)


class DeafLine(Line):
    """A line that passes everything until the first END_TXN after `lose`. Nothing more passes on the
    connection of that END_TXN, in either direction; other connections go on."""

    def __init__(self, broker: BrokerUnderTest) -> None:
        super().__init__(broker)
        self._deaf: set[object] = set()
        self._streams: dict[object, bytes] = {}
        self._loses: str | None = None

    def lose(self, what: str) -> None:
        """Lose the next END_TXN, "question", or let it pass and lose its "answer"."""
        self._loses = what

    @property
    def has_lost(self) -> bool:
        """True once END_TXN was sent."""
        return self._loses is None

    def passes(self, connection: object, from_client: bool, data: bytes) -> bool:
        if connection in self._deaf:
            return False
        if not from_client or not self._has_end(connection, data) or self._loses is None:
            return True
        self._deaf.add(connection)
        lost, self._loses = self._loses, None
        return lost == "answer"

    def _has_end(self, connection: object, data: bytes) -> bool:
        data = self._streams.get(connection, b"") + data
        position = 0
        has_end = False
        decoder = FrameDecoder()
        while (frame := decoder.decode(data, position, LIMIT)) is not None:
            kind, _, position = frame
            has_end |= kind == proto.BaseCommand.END_TXN
        self._streams[connection] = data[position:]
        return has_end
