"""What sets a frame apart from the plain ones: most rules about SEND, MESSAGE and ACK are about things that
few of them have, and those about what is open, about questions and about PINGs are seldom of any use.

Owns the list of such things; `tracking.PREPARE` says which frame has which. A rule that names them in its
registration is not asked about frames that have none of them; that it would have found nothing there is for
the rule to be sure of.
"""

# --- of the entry behind SEND and MESSAGE, see `Entry.traits` --------------------------------------

UNREADABLE = 1
"""The entry's headers cannot be read, or the checksum is wrong."""
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


# --- of what it is about -----------------------------------------------------------------------------

UNSETTLED = 1 << 21
"""Its producer or consumer is not simply open, or its question is none that waits for an answer."""
AGAIN = 1 << 22
"""A SEND that waits for its receipt since an earlier connection; a MESSAGE that came before and is not
acknowledged."""
PINGED = 1 << 23
"""A PING waits for a PONG of its sender."""

ALL_TRAITS = -1
"""Of frames of all kinds that `tracking.PREPARE` does not know: every rule is asked."""
