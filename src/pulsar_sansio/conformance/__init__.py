"""The rules of the protocol as a checker of conversations, which needs neither machine.

Given what passed between a client and a broker, it says which side broke which rule at which frame. A rule is
a function in `rules`, named by its id in docs/rules.md; `Conversation` reads one connection, `Session`
several of one client. It imports the wire formats and the model, and refuses to know how a client or a broker
works inside.
"""

from .conversation import Conversation, check
from .findings import Side, Violation
from .memory import TopicMemory
from .registry import RULES, Rule
from .session import Session

__all__ = ["RULES", "Conversation", "Rule", "Session", "Side", "TopicMemory", "Violation", "check"]
