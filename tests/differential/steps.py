"""The steps of a conversation, and `Conversation`.

Frames are commands of the wire package. What only a broker knows is a symbol in them, which the player
replaces. The ledger id `SYMBOL + i` is the ledger of the receipt of the i-th SEND, and the entry id is added
to that receipt's. The most significant bits `SYMBOL + i` stand for the i-th transaction. Topics are in
`NAMESPACE`, which the player replaces by a namespace of the run.
"""

from typing import Any, NamedTuple

SYMBOL = 1 << 40

LAST_HASH = "last"
"""A hash of topics in a frame: the one that the broker has sent last."""

NAMESPACE = "public/default"


class Open(NamedTuple):
    """Open a connection."""

    connection: int


class Frame(NamedTuple):
    """Send one command."""

    connection: int
    number: int
    command: Any
    """A protobuf command, or a record of the wire package."""


class Drop(NamedTuple):
    """Break a connection."""

    connection: int


class Administer(NamedTuple):
    """Call the administration: `verb` is a method of a `Broker` of `brokers.py`."""

    verb: str
    arguments: tuple[Any, ...]


class Pause(NamedTuple):
    """Let time pass."""

    seconds: float


Step = Open | Frame | Drop | Administer | Pause


class Conversation(NamedTuple):
    name: str
    steps: tuple[Step, ...]
