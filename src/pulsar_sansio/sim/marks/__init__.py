"""Situations that a simulator worth trusting gets into: the list, and where each is seen.

Each mark is a condition on the call of one method of a machine, judged just before the call. The function's
name is the mark's name, its docstring says what happened. A mark that no seed reaches means that a fault, a
workload or a draw is missing. A condition must not change anything, and must not be placed on a method that
is called for every message.
"""

from . import brokers, connections, consumers, producers
from .mark import MARKS, Condition, Mark, mark

__all__ = ["MARKS", "Condition", "Mark", "brokers", "connections", "consumers", "mark", "producers"]
