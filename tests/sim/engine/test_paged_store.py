"""A broker that reads entries back behaves as one that has all of them in memory, to the last byte."""

import pytest

from pulsar_sim import World
from pulsar_sim.engine.nodes.cluster import Cluster

SEEDS = range(700, 712)


def run(seed: int, reads_back: bool, monkeypatch: pytest.MonkeyPatch) -> tuple[World, str]:
    original = Cluster.__init__

    def init(self: Cluster, *arguments: object) -> None:
        original(self, *arguments)  # type: ignore[arg-type]
        self.reads_back = reads_back

    with monkeypatch.context() as patches:
        patches.setattr(Cluster, "__init__", init)
        world = World(seed)
        return world, world.run().trace_hash


def test_a_trace_does_not_tell_where_entries_were(monkeypatch: pytest.MonkeyPatch) -> None:
    pages = 0
    for seed in SEEDS:
        world, expected = run(seed, False, monkeypatch)
        assert world.cluster.store.pages == 0
        world, found = run(seed, True, monkeypatch)
        assert found == expected, seed
        pages += world.cluster.store.pages
    assert pages > 50, "nearly nothing was read back"
