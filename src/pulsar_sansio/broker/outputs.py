"""The outputs of the broker to its adapter: write, close, resume reading, and make durable.

`Transmit` and `ResumeReading` announce a change from no to yes, once per change: data is pulled, decisions
are pushed. The module knows no socket and no database.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from .records import Record


@dataclass(slots=True)
class Transmit:
    """`data_to_send(link)` has bytes to write."""

    link: int


CLIENT_LEFT = "the client closed the connection"
"""The reason of a `Disconnect` that follows the client's own."""


@dataclass(slots=True)
class Disconnect:
    """Write the rest of `data_to_send(link)`, then close. No later output mentions the link."""

    link: int
    reason: str


@dataclass(slots=True)
class ResumeReading:
    """`wants_read(link)` was False and is True again."""

    link: int


@dataclass(slots=True)
class Persist:
    """Pass `records` to `Store.write`; when they are durable, call `persisted(now, write)`.

    At most one is outstanding; later records go into the next one.
    """

    write: int
    records: Sequence[Record]


@dataclass(slots=True)
class Released:
    """The release of a topic is complete: all of it is durable, and another broker may adopt it."""

    topic: str


Output = Transmit | Disconnect | ResumeReading | Persist | Released
