"""The profile of a seed: a world drawn at random, from its size to the faults that exist.

Owns every range that is drawn, one module for each concern, each with streams of its own: one more draw in
one of them changes no other. This is swarm testing: each seed has a random subset of features and fault
kinds, and densities of its own, because a world with all faults at once hides the effect of a single one.

The draws aim at a number of entries, because the time of a world depends on its entries, whatever they hold:
a producer with large batches sends more messages.
"""

from .worlds import draw

__all__ = ["draw"]
