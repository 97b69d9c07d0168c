"""Traits set a frame apart from the plain ones.

Most rules about SEND, MESSAGE and ACK are about traits that few frames have. Rules about open producers and
consumers, about requests and about PINGs seldom find anything in other frames.

This module owns the list of traits; `tracking.PREPARE` says which frame has which. A rule may name traits in
its registration. The checker then does not ask it about frames that have none of them. Such a rule must be
one that finds nothing in those frames.
"""

# --- of the entry behind SEND and MESSAGE, see `Entry.traits` --------------------------------------

UNREADABLE = 1
"""The entry's headers cannot be read, or the checksum is wrong."""
BROKER_BLOCK = 2
BATCH = 4
COMPRESSED = 8
SIZED = 16
"""The entry says how large it is uncompressed."""
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


# --- of what it is about -----------------------------------------------------------------------------

UNSETTLED = 1 << 21
"""Its producer or consumer is not simply open, or its question is none that waits for an answer."""
AGAIN = 1 << 22
"""The frame is a SEND that waits for its receipt since an earlier connection, or a redelivered MESSAGE.

The client has not acknowledged such a MESSAGE, which the broker delivered before.
"""
PINGED = 1 << 23
"""A PING waits for a PONG of its sender."""

ALL_TRAITS = -1
"""The traits of a frame whose kind `tracking.PREPARE` does not know: the checker asks every rule."""
