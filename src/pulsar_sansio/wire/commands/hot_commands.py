"""The five commands that come with every message and are therefore encoded and decoded by hand."""

from collections.abc import Callable

from .command_frame import ACK, FLOW, MESSAGE, SEND, SEND_RECEIPT
from .delivery_commands import MessageCommand, decode_message, encode_message
from .publish_commands import (
    Send,
    SendReceipt,
    decode_send,
    decode_send_receipt,
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

HOT_DECODERS: dict[int, Callable[[bytes, int, int, int], HotCommand]] = {
    SEND: decode_send,
    MESSAGE: decode_message,
    SEND_RECEIPT: decode_send_receipt,
    ACK: decode_ack,
    FLOW: decode_flow,
}
"""Number of a command -> its decoder, called with data, the command's start and end, and its frame's end.

The decoders raise `FrameError` for a malformed or incomplete command. They raise `IndexError` where `data`
ends early.
"""

__all__ = [
    "ACK",
    "CUMULATIVE",
    "FLOW",
    "HOT_DECODERS",
    "INDIVIDUAL",
    "MESSAGE",
    "SEND",
    "SEND_RECEIPT",
    "Ack",
    "Flow",
    "HotCommand",
    "MessageCommand",
    "PositionAck",
    "Send",
    "SendReceipt",
    "encode_ack",
    "encode_flow",
    "encode_message",
    "encode_send",
    "encode_send_receipt",
]
