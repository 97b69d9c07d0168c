"""Sweeps: a sample of every kind passes, every point can be run again by its text, planted bugs are found."""

import json
from collections import Counter
from typing import Any

import pytest

from pulsar_sansio.client.client import Client
from pulsar_sansio.client.producing.producer import Producer
from pulsar_sim import KINDS, SCENARIOS, Outcome
from pulsar_sim.engine.clock import SECOND
from pulsar_sim.engine.nodes.broker_node import BrokerNode
from pulsar_sim.runs.scenarios import Scenario, ScenarioWorld
from pulsar_sim.runs.sweeps.cuts import ENDINGS, Cut, CutWorld, cuts
from pulsar_sim.runs.sweeps.interleavings import Order, Orders, OrderWorld
from pulsar_sim.runs.sweeps.sweep import find, run_point, sweep
from pulsar_sim.runs.sweeps.timers import EARLY, LATE, WHOSE, Nudge, NudgedWorld, nudges
from pulsar_trio_command.command import main
from tests.sim.processes import found_by_one_or_two

SMALL = [each for each in SCENARIOS.values() if each.small]


def every(scenario: Scenario) -> int:
    """Points left out between two that are tried; each scenario has a place of its own to begin."""
    return 1 + list(SCENARIOS).index(scenario.name)


@pytest.mark.parametrize("scenario", SCENARIOS.values(), ids=lambda each: each.name)
def test_scenarios_pass_and_are_always_the_same(scenario: Scenario) -> None:
    first, second = ScenarioWorld(scenario).run(), ScenarioWorld(scenario, keep_trace=True).run()
    assert str(first) == "seed 1 passed"
    assert first.trace_hash == second.trace_hash
    profile = scenario.profile()
    assert first.sent == profile.messages or (profile.ends and 0 < first.sent < profile.messages)
    assert first.events < 400, "short"


def test_there_are_scenarios_of_everything() -> None:
    written: Counter[str] = Counter()
    for scenario in SCENARIOS.values():
        for line in ScenarioWorld(scenario, keep_trace=True).run().transcript:
            _, arrow, frame = line.partition(" <- ")
            if arrow:
                written[frame.split(" ")[0]] += 1
    for kind in ("PRODUCER", "SEND", "SUBSCRIBE", "FLOW", "ACK", "ACK_RESPONSE", "UNSUBSCRIBE", "LOOKUP"):
        assert written[kind], kind
    for kind in ("REDELIVER_UNACKNOWLEDGED_MESSAGES", "CLOSE_PRODUCER", "CLOSE_CONSUMER", "MESSAGE"):
        assert written[kind], kind


def test_a_world_is_not_at_rest_while_a_producer_with_transactions_is_detached() -> None:
    """The broker still asked the connection before, which had ended, when the world was judged (INV-L1)."""
    report = run_point(find("commit-a-transaction"), "wire 1 to broker byte 1637 clean-end")
    assert report.outcome is Outcome.PASSED, str(report)


@pytest.mark.slow
def test_a_sample_of_all_cuts_passes() -> None:
    endings: Counter[str] = Counter()
    for scenario in SCENARIOS.values():
        report = sweep(scenario, "cut", every=499, first=every(scenario))
        assert report.failures == []
        assert 0 < report.runs < report.points
        assert not report.complete
        endings.update(each.ending for each in cuts(scenario)[every(scenario) :: 499])
    assert set(endings) == set(ENDINGS)


@pytest.mark.slow
def test_a_sample_of_all_timers_passes() -> None:
    for scenario in SCENARIOS.values():
        report = sweep(scenario, "timers", every=181, first=every(scenario))
        assert report.failures == []
        assert 0 < report.runs < report.points


@pytest.mark.slow
@pytest.mark.parametrize("scenario", SMALL, ids=lambda each: each.name)
def test_small_scopes_pass_in_every_order(scenario: Scenario) -> None:
    """Any order of the first choices, and any one deviation later."""
    for depth, deviations in ((4, 4), (60, 1)):
        report = sweep(scenario, "interleavings", depth=depth, deviations=deviations)
        assert report.failures == []
        assert report.complete
        assert report.runs == report.points


# --- the points -------------------------------------------------------------------------------------------


def test_every_byte_of_both_directions_is_a_place_to_cut() -> None:
    scenario = find("produce-single")
    world = CutWorld(scenario, None)
    world.run()
    (wire,) = [each for each in world.wires if not each.client.name.startswith("auditor")]
    places = {(each.to_broker, each.byte) for each in cuts(scenario)}
    assert places == {
        (pipe.to_broker, byte)
        for pipe in (wire.to_broker, wire.to_client)
        for byte in range(pipe.arrived + 1)
    }
    assert len(cuts(scenario)) == len(places) * 3


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("byte", [0, 1, 150, 400])
def test_a_cut_lets_so_many_bytes_through(byte: int, ending: str) -> None:
    world = CutWorld(find("produce-single"), Cut(1, to_broker=True, byte=byte, ending=ending))
    assert str(world.run()) == "seed 1 passed"
    assert world.wires[0].to_broker.arrived == byte
    assert len(world.wires) > 2, "there is another connection"


def test_points_are_run_again_by_their_text() -> None:
    scenario = find("consume-exclusive")
    for point in (*cuts(scenario)[::511], *nudges(scenario)[::97], Order(((3, 1), (7, 2)))):
        first, second = run_point(scenario, str(point)), run_point(scenario, str(point))
        assert first == second
        assert first.trace_hash != ScenarioWorld(scenario).run().trace_hash
    for point in (Cut(2, False, 17, "half-open"), Nudge(4, "clients", "3s"), Order(((1, 1),)), Order()):
        assert type(point).parse(str(point)) == point


def test_timers_are_fired_at_every_step() -> None:
    scenario = find("produce-single")
    found = nudges(scenario)
    steps = {each.step for each in found}
    assert steps == set(range(len(steps)))
    assert {each.moment for each in found} == {EARLY, *LATE}
    assert {each.whose for each in found} == set(WHOSE)
    assert len(found) == len(steps) * 15


@pytest.mark.parametrize("whose", WHOSE)
def test_timers_are_held_back_for_the_named_machines(whose: str) -> None:
    """Keepalive is due a second after the beginning."""
    world = NudgedWorld(find("produce-single"), Nudge(10, whose, "3s"), keep_trace=True)
    assert str(world.run()) == "seed 1 passed"
    lines = [line.split(" ", 2) for line in world.trace.lines]
    at = next(int(when) for when, _, what in lines if what == f"timers of {whose} 3s")
    soon = range(at + 1, at + 3 * SECOND)
    in_time = {source == "broker-0" for when, source, what in lines if what == "wake" and int(when) in soon}
    assert in_time == {"all": set(), "clients": {True}, "brokers": {False}}[whose]


def test_all_orders_are_different() -> None:
    """Only those that change places with an event that does nothing give the same run."""
    scenario = find("close-while-sending")
    orders = [order for order, _ in Orders(scenario, depth=4, deviations=4)]
    assert len(orders) == len(set(orders))
    report = sweep(scenario, "interleavings", depth=4, deviations=4)
    assert report.runs == len(orders)
    assert 1 < report.distinct <= report.runs
    earliest, other = Order(), Order(((2, 1),))
    assert OrderWorld(scenario, earliest).run().trace_hash == ScenarioWorld(scenario).run().trace_hash
    assert OrderWorld(scenario, other).run().trace_hash != ScenarioWorld(scenario).run().trace_hash


@pytest.mark.parametrize(
    "wrong",
    ["", "wire 1", "wire 1 to broker byte 3 loudly", "step 3 timers of all soon", "step x", "order a:b"],
)
def test_what_is_no_point(wrong: str) -> None:
    with pytest.raises(ValueError):
        run_point(find("produce-single"), wrong)


def test_what_is_no_scenario() -> None:
    with pytest.raises(ValueError, match="no scenario 'x'; there are produce-single"):
        find("x")


# --- planted bugs -------------------------------------------------------------------------------------------


def without_the_oldest(original: Any) -> Any:
    """A producer that forgets to send the oldest of several messages again."""

    def send_again(self: Any, connection: Any) -> None:
        entries = self._window.entries
        oldest = entries.popleft() if len(entries) > 1 else None
        original(self, connection)
        if oldest is not None:
            entries.appendleft(oldest)

    return send_again


@pytest.mark.slow
@pytest.mark.parametrize("ending", range(len(ENDINGS)))
def test_a_cut_finds_a_message_that_is_not_sent_again(ending: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Producer, "_send_again", without_the_oldest(Producer._send_again))
    scenario = find("unload-while-sending")
    with pytest.raises(ValueError, match="fails by itself: INV-P6"):
        cuts(scenario)
    scenario = find("produce-deduplicated")
    third = len(cuts(scenario)) // 3
    found: Counter[str] = Counter()
    for each in cuts(scenario)[ending * third : (ending + 1) * third : 11]:
        found[run_point(scenario, str(each)).rule] += 1
    assert set(found) == {"", "INV-P6"}


def test_a_late_timer_finds_code_that_trusts_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that believes to be woken only when something is due."""

    def handle_deadline(self: Any, now: int) -> None:
        deadline = self.next_deadline()
        assert deadline is None or now >= deadline, "woken too early"
        handled(self, now)

    handled = Client.handle_deadline
    monkeypatch.setattr(Client, "handle_deadline", handle_deadline)
    report = sweep(find("produce-single"), "timers", every=19)
    assert report.outcome is Outcome.EXCEPTION
    assert all(EARLY in point for point, _ in report.failures)


def test_an_order_finds_code_that_believes_there_is_only_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """A broker that gives its disk no more than two milliseconds."""

    def synced(self: Any, incarnation: int, write: int) -> None:
        assert self.world.clock.now - self.asked <= 2_000_000, "no request has to wait for a disk so long"
        original(self, incarnation, write)

    def persist(self: Any, output: Any) -> None:
        self.asked = self.world.clock.now
        persisted(self, output)

    original, persisted = BrokerNode._synced, BrokerNode._persist
    monkeypatch.setattr(BrokerNode, "_synced", synced)
    monkeypatch.setattr(BrokerNode, "_persist", persist)
    report = sweep(find("produce-single"), "interleavings", deviations=1)
    assert report.failures
    assert report.complete


# --- the command ----------------------------------------------------------------------------------------


def test_the_command_sweeps(capsys: pytest.CaptureFixture[str]) -> None:
    chosen = ["--scenario", "produce-single", "--kind", "all", "--every", "90", "--deviations", "0"]
    assert main(["simulate", "sweep", *chosen, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [each["kind"] for each in found["sweeps"]] == list(KINDS)
    assert found["violations"] == 0
    assert found["runs"] == sum(each["runs"] for each in found["sweeps"])
    assert all(each["runs"] for each in found["sweeps"])
    assert main(["simulate", "sweep", *chosen]) == 0
    assert "0 failures" in capsys.readouterr().out


@pytest.mark.slow
def test_processes_do_not_change_the_result(capsys: pytest.CaptureFixture[str]) -> None:
    found = found_by_one_or_two(capsys, "sweep", "--kind", "all", "--every", "900", "--deviations", "0")
    kinds = Counter(each["kind"] for each in found["sweeps"])
    assert kinds == {
        "credentials": len(SCENARIOS),
        "restarts": len(SCENARIOS),
        "cut": len(SCENARIOS),
        "timers": len(SCENARIOS),
        "interleavings": len(SMALL),
    }


def test_what_there_is_no_time_for_is_left_out(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = iter(range(1000))
    monkeypatch.setattr("pulsar_sim.command.sweep._over", lambda _: next(asked) > 2)
    assert main(["simulate", "sweep", "--json"]) == 0
    (report,) = json.loads(capsys.readouterr().out)["sweeps"]
    assert (report["scenario"], report["complete"]) == ("produce-single", False)
    assert report["runs"] == 2


def test_the_command_shows_a_point(capsys: pytest.CaptureFixture[str]) -> None:
    point = ["--scenario", "produce-single", "--point", "wire 1 from broker byte 100 clean-end"]
    assert main(["simulate", "sweep", *point]) == 0
    assert "cut at wire 1 from broker byte 100 clean-end" in capsys.readouterr().out
    assert main(["simulate", "sweep", *point, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["outcome"] == "passed"
    assert main(["simulate", "sweep", "--list"]) == 0
    assert "produce-single" in capsys.readouterr().out


def test_the_command_knows_its_scenarios(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", "sweep", "--scenario", "nothing"]) == 2
    assert "no scenario 'nothing'" in capsys.readouterr().err


def test_a_failure_of_a_sweep_is_the_exit_code(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def cut_short(pipe: Any) -> None:
        raise RuntimeError("no such thing as a reset")

    monkeypatch.setitem(ENDINGS, "reset", cut_short)
    chosen = ["--scenario", "produce-single", "--every", "500"]
    assert main(["simulate", "sweep", *chosen]) == 1
    assert "'wire 1 to broker byte 0 reset': exception in phase run" in capsys.readouterr().out
