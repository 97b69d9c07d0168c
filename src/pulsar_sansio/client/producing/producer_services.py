"""`ProducerServices`: what all parts of one producer of one topic share.

`Producer` makes the record before it makes its parts. A part keeps what it uses for every message as
attributes of its own.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from ...model.config import ProducerSpec
from ...model.errors import PulsarError
from ...model.message_id import EntryPosition
from ...model.topic_name import TopicName
from ..connecting.services import ClientContext, Services
from ..encryption.entry_encryption import EntryEncryption
from ..outputs import Output


class ProducerListener(Protocol):
    """The receiver of a producer's outputs in place of the application: see `partition_producer`."""

    def on_output(self, output: Output) -> None:
        """Receive an output, other than the receipts that `confirmed` receives."""
        ...

    def confirmed(
        self, ticket: int, count: int, ledger_id: int, entry_id: int, first_chunk: EntryPosition | None
    ) -> int:
        """Tickets `ticket` to `ticket + count - 1`, the messages of one entry, are confirmed.

        Returns the application's ticket of the first message, or -1 if the listener reported the receipts.
        Every lower ticket is settled. Otherwise, and for parts of an entry, `on_output` gets `Receipts`.
        """
        ...

    def ended(self, handle: int, error: PulsarError | None) -> None:
        """The producer ended permanently, which an output reported before."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class ProducerServices:
    """The producer's names, its way out, and the services of the client."""

    client: Services
    handle: int
    wire_id: int
    spec: ProducerSpec
    topic: TopicName
    listener: ProducerListener | None
    """The receiver of the outputs; None for the application."""
    encryption: EntryEncryption | None
    """This is None for a producer whose entries are not encrypted."""

    @property
    def context(self) -> ClientContext:
        return self.client.context

    @property
    def emit(self) -> Callable[[Output], None]:
        """Takes the outputs."""
        return self.context.emit if self.listener is None else self.listener.on_output
