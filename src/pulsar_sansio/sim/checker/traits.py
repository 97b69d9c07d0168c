"""What sets a frame apart from the plain ones: most rules about SEND, MESSAGE and ACK are about things that
few of them have.

Owns the list of such things and who has which. A rule that names them in its registration is not asked about
frames that have none of them; that it would have found nothing there is for the rule to be sure of.
"""

from typing import TYPE_CHECKING, Any

from . import commands as c

if TYPE_CHECKING:
    from collections.abc import Callable

    from .state import State

# --- of the entry behind SEND and MESSAGE, see `Entry.traits` --------------------------------------

UNREADABLE = 1
"""Its headers cannot be read, or the checksum is wrong."""
BROKER_BLOCK = 2
BATCH = 4
COMPRESSED = 8
SIZED = 16
"""It says how large it is uncompressed."""
ENCRYPTED = 32
CHUNK = 64
MARKER = 128
SCHEMA = 256
DELAYED = 512
NULL = 1024

# --- of the command ----------------------------------------------------------------------------------

TRANSACTION = 1 << 16
"""Half an id is enough."""
ACK_SET = 1 << 17
EPOCH = 1 << 18
REDELIVERED = 1 << 19
DISCARD = 1 << 20
"""An ACK that says what was wrong with the message."""


def _of_send(state: "State", send: Any) -> int:
    traits = state.entry.traits
    if send.marker:
        traits |= MARKER
    if send.is_chunk:
        traits |= CHUNK
    if send.txnid_most_bits is not None or send.txnid_least_bits is not None:
        traits |= TRANSACTION
    return traits


def _of_message(state: "State", message: Any) -> int:
    traits = state.entry.traits
    if message.ack_set is not None:
        traits |= ACK_SET
    if message.consumer_epoch is not None:
        traits |= EPOCH
    if message.redelivery_count:
        traits |= REDELIVERED
    return traits


def _of_ack(state: "State", ack: Any) -> int:
    traits = 0
    if ack.validation_error is not None:
        traits = DISCARD
    if ack.txnid_most_bits is not None or ack.txnid_least_bits is not None:
        traits |= TRANSACTION
    for _, _, ack_set in ack.message_ids:
        if ack_set is not None:
            return traits | ACK_SET
    return traits


TRAITS: "dict[int, Callable[[State, Any], int]]" = {
    c.SEND: _of_send,
    c.MESSAGE: _of_message,
    c.ACK: _of_ack,
}
"""Frames of other kinds have all traits: every rule is asked."""

ALL_TRAITS = -1
