"""A producer and an open transaction on one link."""

from typing import Any

from pulsar_sansio.model.config import OutgoingMessage
from pulsar_sansio.model.transaction_id import TransactionId
from pulsar_sansio.wire import unpack_payload
from tests.client.script import WALL, Command, frame_receipt
from tests.client.transactions.transaction_script import TransactionScript

DEMO = "persistent://public/default/demo"


def inside(payload: bytes, id_: TransactionId, **fields: Any) -> OutgoingMessage:
    return OutgoingMessage(payload, transaction=id_, **fields)


class Scene(TransactionScript):
    """A producer and an open transaction."""

    def __init__(self, **options: Any) -> None:
        super().__init__()
        self.handle = self.producer(**options)
        self.id = self.begin()

    def send(self, *messages: bytes | OutgoingMessage) -> None:
        for message in messages:
            self.client.send(self.now, self.handle, message, WALL)
        self.drain()

    def joined(self, error: int | None = None) -> None:
        asked = self.answer(Command.ADD_PARTITION_TO_TXN, error)
        assert list(asked.partitions) == [DEMO]

    def entries(self) -> list[tuple[int, bytes, int | None]]:
        """Return sequence id, payload and number of the transaction of the SENDs since the last call."""
        found = []
        for number, command in self.commands(self.link):
            assert number == Command.SEND
            *_, metadata, payload = unpack_payload(command.payload)
            assert metadata.txnid_least_bits == command.txnid_least_bits
            assert metadata.txnid_most_bits == command.txnid_most_bits
            found.append((command.sequence_id, bytes(payload), command.txnid_least_bits))
        return found

    def confirm(self, *sequence_ids: int) -> None:
        for each in sequence_ids:
            self.feed(self.link, frame_receipt(each))
