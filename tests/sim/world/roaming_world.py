"""Runs a world with a client that changes between two clusters."""

from pulsar_sim import Outcome
from pulsar_sim.engine.profile import Profile
from pulsar_sim.world.world import World


def run_roaming(profile: Profile) -> tuple[World, list[str]]:
    """Run a world that passes; return the brokers that took its roaming producer, in their order."""
    world = World(1, profile, keep_trace=True)
    report = world.run()
    assert report.outcome is Outcome.PASSED, report
    answers = [line.split() for line in report.transcript if "<- PRODUCER_SUCCESS" in line]
    wires = {line.split()[3] for line in report.transcript if "wire" in line and "roaming" in line}
    return world, [line[1] for line in answers if line[3] in wires]
