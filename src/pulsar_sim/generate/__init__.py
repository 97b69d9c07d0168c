"""The profile of a seed: a world drawn at random, from its size to which faults exist.

Owns every range that is drawn, one module for each concern, and each of those from streams of its own: one
more draw in one of them leaves the others as they were. Swarm testing: each seed has a random subset of the
features and the fault kinds, and its own densities, because a world in which everything goes wrong at once
hides what one thing alone would show.

What is drawn is about how many entries there will be, because an entry is what costs time, whatever it holds:
who makes large batches sends more messages.
"""

from .worlds import draw

__all__ = ["draw"]
