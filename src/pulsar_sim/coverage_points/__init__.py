"""Situations that a simulator worth trusting gets into: the list, and where each is seen.

Each mark is a condition on the call of one method of a machine, judged just before the call. The function's
name is the mark's name, its docstring says what happened. A mark that no seed reaches means that a fault, a
workload or a draw is missing. A condition must not change anything, and must not be placed on a method that
is called for every message.

What cannot happen has no mark. That a copy of a message comes while the first one is on its way to the disk
(BROKER-40) is such a thing: a broker answers PRODUCER when everything before it is durable, and nobody sends
a message twice over one attachment.
"""

from . import brokers, connections, consumers, producers
from .coverage_point import MARKS, Condition, Mark, mark

__all__ = ["MARKS", "Condition", "Mark", "brokers", "connections", "consumers", "mark", "producers"]
