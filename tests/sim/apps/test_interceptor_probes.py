"""Interceptors in a world: one watches, one changes messages, one raises; the checks notice wrong calls."""

from itertools import permutations
from typing import Any

import pytest

from pulsar_sansio.client.client import Client
from pulsar_sansio.client.outputs import SendFailed
from pulsar_sansio.client.producing.interceptors import ProducerInterception
from pulsar_sansio.model.config import BatchingPolicy
from pulsar_sansio.wire import proto
from pulsar_sim import Outcome, SeedReport
from pulsar_sim.engine.profile import Profile
from pulsar_sim.runs.scenarios import Scenario, ScenarioWorld, quiet_profile
from tests.sim.engine.nodes.test_cluster import passed

T = proto.BaseCommand


def intercepted(*kinds: str) -> Profile:
    profile = quiet_profile(consumers=1, messages=12)
    profile.producers[0].interceptors = list(kinds)
    profile.producers[0].burst = 3
    return profile


def world_of(*kinds: str) -> ScenarioWorld:
    def script(world: ScenarioWorld) -> None:
        world.when_written(T.SEND, 3, world.reset_everything)
        world.when_written(T.SEND, 5, lambda: world.apps.producers[0].abandon_and_reopen())

    return ScenarioWorld(Scenario("test", "", lambda: intercepted(*kinds), script), keep_trace=True)


@pytest.mark.parametrize("kinds", list(permutations(("watches", "changes", "raises"))), ids="-".join)
def test_in_every_order(kinds: tuple[str, ...]) -> None:
    report = passed(world_of(*kinds))
    assert any("InterceptorFailed" in line for line in report.transcript)


def test_without_any_nothing_is_told() -> None:
    assert not any("InterceptorFailed" in line for line in passed(world_of()).transcript)


def told_twice(self: Any, message: Any, message_id: Any, error: Any) -> None:
    settled(self, message, message_id, error)
    settled(self, message, message_id, error)


def not_told_of_failures(self: Any, output: Any) -> None:
    if isinstance(output, SendFailed):
        self._emit(output)
    else:
        hear(self, output)


def told_of_nothing(self: Any, ticket: int, message_ids: Any) -> None:
    pass


def changes_are_lost(self: Any, message: Any) -> Any:
    before_send(self, message)
    return before_send(self, message)


def one_id_for_all(self: Any, ticket: int, message_ids: Any) -> None:
    confirmed(self, ticket, [message_ids[0]] * len(message_ids))


def never_closed(self: Any, interceptor: Any, failed: Any) -> None:
    pass


settled, hear, before_send = (
    ProducerInterception.settled,
    ProducerInterception.on_output,
    ProducerInterception.before_send,
)
confirmed = ProducerInterception._confirmed


@pytest.mark.parametrize(
    ("owner", "name", "wrong"),
    [
        (ProducerInterception, "settled", told_twice),
        (ProducerInterception, "on_output", not_told_of_failures),
        (ProducerInterception, "_confirmed", told_of_nothing),
        (ProducerInterception, "before_send", changes_are_lost),
        (ProducerInterception, "_confirmed", one_id_for_all),
        (Client, "_close_interceptor", never_closed),
    ],
    ids=["twice", "no failures", "nothing", "seen twice", "one id", "not closed"],
)
def test_a_wrong_machine_is_noticed(
    monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, wrong: Any
) -> None:
    monkeypatch.setattr(owner, name, wrong)
    profile = intercepted("watches")
    profile.producers[0].send_timeout = 0.05
    profile.producers[0].batching = BatchingPolicy(max_messages=2, max_delay=0.01)

    def script(world: ScenarioWorld) -> None:
        world.when_written(T.SEND, 3, lambda: silence(world))

    def silence(world: ScenarioWorld) -> None:
        for wire in world.network.wires.values():
            wire.half_open(to_broker=True, to_client=True)

    report: SeedReport = ScenarioWorld(Scenario("test", "", lambda: profile, script)).run()
    assert report.outcome is Outcome.INVARIANT
    assert report.rule == "INTC-01"
