"""Situations that a simulator worth trusting gets into.

Each coverage point is a condition on the call of one method of a machine, checked just before the call. The
function's name is the coverage point's name, and its docstring says what happened. When no seed reaches a
coverage point, a fault, a workload or a draw is missing. A condition changes nothing, and is not placed on a
method that is called for every message.

A situation that cannot happen has no coverage point. One example is a copy of a message that arrives while
the first copy is being written (BROKER-40). A broker answers PRODUCER when everything before it is durable,
and no client sends a message twice over one attachment.
"""

from . import brokers, connections, consumers, credentials, finding, producers
from .coverage_point import COVERAGE_POINTS, Condition, CoveragePoint, coverage_point

__all__ = [
    "COVERAGE_POINTS",
    "Condition",
    "CoveragePoint",
    "brokers",
    "connections",
    "consumers",
    "coverage_point",
    "credentials",
    "finding",
    "producers",
]
