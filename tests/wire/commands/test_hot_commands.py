"""The decoders of one connection: one for each hot command, and no other."""

import pytest

from pulsar_sansio.wire import proto
from pulsar_sansio.wire.commands.hot_commands import (
    HOT_NUMBERS,
    Ack,
    DeliveryDecoder,
    Flow,
    MessageCommand,
    ReceiptDecoder,
    Send,
    SendReceipt,
    hot_decoders,
)

ID = proto.MessageIdData(ledgerId=3, entryId=4)

COMMANDS = {
    "SEND": (Send, proto.CommandSend(producer_id=1, sequence_id=2)),
    "SEND_RECEIPT": (SendReceipt, proto.CommandSendReceipt(producer_id=1, sequence_id=2, message_id=ID)),
    "MESSAGE": (
        MessageCommand,
        proto.CommandMessage(consumer_id=1, message_id=ID),
    ),
    "ACK": (
        Ack,
        proto.CommandAck(
            consumer_id=1,
            ack_type=proto.CommandAck.Individual,
            message_id=[ID],
        ),
    ),
    "FLOW": (Flow, proto.CommandFlow(consumer_id=1, messagePermits=5)),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_each_number_has_the_decoder_of_its_command(name: str) -> None:
    kind, command = COMMANDS[name]
    body = command.SerializeToString()
    decoder = hot_decoders(DeliveryDecoder(), ReceiptDecoder())[proto.BaseCommand.Type.Value(name)]
    assert isinstance(decoder(body, 0, len(body), len(body)), kind)


def test_there_is_a_decoder_for_each_hot_number() -> None:
    numbers = {proto.BaseCommand.Type.Value(name) for name in COMMANDS}
    assert set(hot_decoders(DeliveryDecoder(), ReceiptDecoder())) == HOT_NUMBERS == numbers
