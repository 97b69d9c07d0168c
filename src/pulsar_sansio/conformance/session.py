"""`Session`: the connections of one client, checked together.

A producer that registers again on another connection keeps its name and raises its epoch. It sends
unconfirmed messages again. A consumer may acknowledge messages that were delivered before. A client follows a
redirect of one connection on another. Each connection is a `Conversation` of its own over one `Memory`.
"""

from collections.abc import Iterable
from typing import Any

from .conversation import Conversation
from .findings import Side, Violation
from .memory import Memory, TopicMemory
from .registry import Selection


class Session:
    """All connections of one client, in one order of passing."""

    def __init__(self, checks: Iterable[str] | None = None, topics: TopicMemory | None = None) -> None:
        """`checks`: as for `Conversation`. `topics`: what is known of topics, where several clients share
        it."""
        self._selection = None if checks is None else Selection(checks)
        self._memory = Memory(topics)
        self.conversations: dict[int, Conversation] = {}
        """The conversations that have not ended, by the numbers of their connections."""

    def feed(self, connection: int, side: Side, data: bytes) -> list[Violation]:
        """Bytes on one connection; a number that is new is a new connection."""
        return self.conversation(connection).feed(side, data)

    def frame(self, connection: int, side: Side, kind: int, command: Any) -> list[Violation]:
        """A decoded frame on one connection, see `Conversation.frame`."""
        return self.conversation(connection).frame(side, kind, command)

    def end(self, connection: int) -> None:
        """The connection is over, and its number may be given to another. What the client remembers stays."""
        self.conversations.pop(connection, None)

    def conversation(self, connection: int) -> Conversation:
        """The conversation of a connection, a new one where the number is new."""
        conversation = self.conversations.get(connection)
        if conversation is None:
            conversation = Conversation(self._selection, self._memory, connection)
            self.conversations[connection] = conversation
        return conversation
