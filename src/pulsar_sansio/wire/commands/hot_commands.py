"""The five commands that come with every message and are therefore encoded and decoded by hand."""

from collections.abc import Callable

from ..command_frame import ACK, FLOW, MESSAGE, SEND, SEND_RECEIPT
from .delivery_commands import DeliveryDecoder, MessageCommand, encode_message
from .publish_commands import (
    ReceiptDecoder,
    Send,
    SendReceipt,
    decode_send,
    encode_send,
    encode_send_receipt,
)
from .receiver_commands import (
    CUMULATIVE,
    INDIVIDUAL,
    Ack,
    Flow,
    PositionAck,
    decode_ack,
    decode_flow,
    encode_ack,
    encode_flow,
)

HotCommand = Send | MessageCommand | SendReceipt | Ack | Flow

Decoder = Callable[[bytes, int, int, int], HotCommand]
"""Called with data, the command's start and end, and its frame's end.

It raises `FrameError` for a malformed or incomplete command, and `IndexError` where `data` ends early.
"""

HOT_NUMBERS = frozenset((SEND, MESSAGE, SEND_RECEIPT, ACK, FLOW))


def hot_decoders(deliveries: DeliveryDecoder, receipts: ReceiptDecoder) -> dict[int, Decoder]:
    """Give the decoders of one connection, by the number of the command. Those of its arguments learn."""
    return {
        SEND: decode_send,
        MESSAGE: deliveries.decode,
        SEND_RECEIPT: receipts.decode,
        ACK: decode_ack,
        FLOW: decode_flow,
    }


__all__ = [
    "ACK",
    "CUMULATIVE",
    "FLOW",
    "HOT_NUMBERS",
    "INDIVIDUAL",
    "MESSAGE",
    "SEND",
    "SEND_RECEIPT",
    "Ack",
    "Decoder",
    "DeliveryDecoder",
    "Flow",
    "HotCommand",
    "MessageCommand",
    "PositionAck",
    "ReceiptDecoder",
    "Send",
    "SendReceipt",
    "encode_ack",
    "encode_flow",
    "encode_message",
    "encode_send",
    "encode_send_receipt",
    "hot_decoders",
]
