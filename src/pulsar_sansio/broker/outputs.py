"""What the broker says to its adapter: write, close, read on, and make durable.

Edge outputs (`Transmit`, `ResumeReading`) come once per change from no to yes: data is pulled, decisions
are pushed. Nothing here knows what a socket or a database is.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from .records import Record


@dataclass(slots=True)
class Transmit:
    """`data_to_send(link)` has bytes to write."""

    link: int


CLIENT_LEFT = "the client closed the connection"
"""The reason of a `Disconnect` that only follows the client's."""


@dataclass(slots=True)
class Disconnect:
    """Write what is left of `data_to_send(link)`, then close. The last output to mention the link."""

    link: int
    reason: str


@dataclass(slots=True)
class ResumeReading:
    """`wants_read(link)` was False and is True again."""

    link: int


@dataclass(slots=True)
class Persist:
    """Hand `records` to `Store.write`; when they are durable, call `persisted(now, write)`.

    At most one is outstanding; everything that comes meanwhile goes into the next one.
    """

    write: int
    records: Sequence[Record]


@dataclass(slots=True)
class Released:
    """A topic that was to be released is: all of it is durable, and another broker may adopt it."""

    topic: str


Output = Transmit | Disconnect | ResumeReading | Persist | Released
