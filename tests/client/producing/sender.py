"""A producer under test, and what its outputs say."""

from typing import Any

from pulsar_sansio.client.outputs import (
    Receipts,
    SendFailed,
)
from pulsar_sansio.model.config import (
    ProducerSpec,
)
from pulsar_sansio.model.message_id import MessageId
from tests.client.script import (
    WALL,
    Command,
    Script,
    frame_producer_success,
)

UNBATCHED = ProducerSpec(topic="demo", batching=None)


class Sender:
    """An attached producer, unbatched by default."""

    def __init__(self, script: Script | None = None, spec: ProducerSpec = UNBATCHED, **options: Any) -> None:
        self.script = script or Script()
        self.handle, self.link = self.script.ready_producer(spec, **options)

    def send(self, message: Any = b"x", publish_time: int = WALL) -> int:
        return self.script.client.send(self.script.now, self.handle, message, publish_time)

    def sent(self) -> list[Any]:
        """Return the SENDs written since the last call."""
        found = self.script.commands(self.link)
        assert all(kind == Command.SEND for kind, _ in found)
        return [command for _, command in found]

    def reattach(self, **connected: Any) -> None:
        """End the link, and let the producer reconnect over a new one."""
        self.script.lose(self.link)
        self.script.advance(0.2)
        outputs = self.script.said()
        self.link = max(self.script.client.links)
        self.script.outputs = [output for output in outputs if type(output).__name__ == "Connect"]
        assert self.script.ready_link(**connected) == self.link
        self.script.find_topic(self.link)
        asked = self.script.sent(self.link, Command.PRODUCER)
        self.script.feed(self.link, frame_producer_success(asked.request_id, "other-name", 77))


def receipts(*outputs: Any) -> list[tuple[int, list[MessageId]]]:
    return [(output.first, list(output.message_ids)) for output in outputs if isinstance(output, Receipts)]


def tickets(output: Any) -> list[int]:
    if isinstance(output, Receipts):
        return list(range(output.first, output.first + len(output.message_ids)))
    if isinstance(output, SendFailed):
        return list(range(output.first, output.first + output.count))
    return []
