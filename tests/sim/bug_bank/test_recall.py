"""Recall: what counts as noticed, the sum, and the command."""

import json
from typing import Any

import pytest

from pulsar_sansio.client.delivery.permits import Permits
from pulsar_sim.bug_bank import BANK, PlantedBug
from pulsar_sim.runs.recall import Notice, Recall, Recalled, recall, recall_one, seeds_for
from pulsar_trio_command.command import main
from tests.sim.processes import found_by_one_or_two


def plant(monkeypatch: pytest.MonkeyPatch, name: str, act: Any, caught_by: tuple[str, ...] = ()) -> None:
    """A bug for one test: `act(original, permits, messages)` in the place of `Permits.give_back`."""
    bug = PlantedBug(
        name, "own", f"{name}.", (), caught_by, lambda patches: patches.around(Permits, "give_back", act)
    )
    monkeypatch.setitem(BANK, name, bug)


def harmless(original: Any, self: Any, messages: int) -> None:
    original(self, messages)


def broken(original: Any, self: Any, messages: int) -> None:
    raise AttributeError("the machine has changed")


def misfit(original: Any, self: Any, messages: int) -> None:
    original(self)


def upsets_the_machine(original: Any, self: Any, messages: int) -> None:
    original(self, "many")


def grants_everything(original: Any, self: Any, messages: int) -> None:
    """Grants at once whatever comes back, and nothing too."""
    if self._grant is not None:
        self._grant(messages)


def test_a_bug_that_is_none_is_not_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch, "harmless", harmless)
    recalled = recall_one("harmless", seeds=2, first=3, sample=1)
    assert (recalled.caught, recalled.right, recalled.first) == (False, False, None)
    assert (recalled.seeds, recalled.tried) == (2, 2)
    assert recalled.calls["Permits.give_back"] > 0
    assert recalled.as_json()["caught"] is False


@pytest.mark.parametrize("act", [broken, misfit])
def test_an_error_of_the_bug_itself_does_not_count_as_caught(
    monkeypatch: pytest.MonkeyPatch, act: Any
) -> None:
    plant(monkeypatch, "broken", act, ("INV-C6",))
    recalled = recall_one("broken", seeds=60, sample=60)
    assert not recalled.caught
    assert recalled.tried < 60
    assert "Error" in recalled.broken


def test_an_error_of_the_machine_does(monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch, "upset", upsets_the_machine, ("INV-C6",))
    recalled = recall_one("upset", seeds=60, sample=1)
    assert recalled.caught
    assert not recalled.right
    assert recalled.rules == {"exception": 1}


def test_the_wrong_invariant_counts_as_caught_but_not_as_right(monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch, "flow", grants_everything, ("INV-X1",))
    recalled = recall_one("flow", seeds=60, sample=1)
    assert (recalled.caught, recalled.right) == (True, False)
    assert recalled.first is not None
    assert recalled.first.rule != "INV-X1"


def test_a_sample_is_tried_in_any_case() -> None:
    recalled = recall_one("connection-used-before-connected", seeds=1, sample=3)
    assert (recalled.tried, recalled.seeds) == (3, 1)
    assert recalled.calls["Connection.opened"] == 3
    assert [each.seed for each in recalled.notices] == [0, 1, 2]
    assert recalled.rules == {"CHECK-01": 3}


def test_seeds_that_cannot_show_it_are_passed_over() -> None:
    def some_topics(profile: Any) -> bool:
        return bool(profile.topics > 1)

    bug = PlantedBug("picky", "own", "Picky.", (some_topics,), (), lambda patches: None)
    found = list(seeds_for(bug, 5, 10))
    assert len(found) == 5
    assert found[0] >= 10
    assert found != list(range(10, 15))
    never = PlantedBug("never", "own", "Never.", (lambda profile: False,), (), lambda patches: None)
    assert list(seeds_for(never, 1)) == []


def caught(name: str, origin: str, seeds: int, *notices: Notice) -> Recalled:
    return Recalled(name, origin, f"{name}.", ("INV-P1",), tried=9, seeds=seeds, notices=list(notices))


def test_what_noticed_it() -> None:
    follows, quick, slow = (
        Notice(4, "INV-N5", "not done", 10),
        Notice(6, "INV-P1", "twice", 70),
        Notice(8, "INV-P1", "twice", 900),
    )
    bug = caught("a", "own", 3, follows, slow, quick)
    assert bug.rules == {"INV-P1": 2, "INV-N5": 1}
    assert bug.first is follows
    assert bug.quickest is quick
    assert bug.right
    found = bug.as_json()
    assert (found["noticed"], found["tried"], found["seeds"]) == (3, 9, 3)
    assert (found["first_seed"], found["quickest_seed"], found["quickest_rule"]) == (4, 6, "INV-P1")
    assert not caught("b", "own", 1, follows).right


def test_the_sum() -> None:
    early = caught("a", "own", 3, Notice(7, "INV-P1", "", 1))
    late = caught("b", "BUG-001", 5, Notice(9, "INV-P2", "", 1))
    missed = Recalled("c", "own", "C.", (), tried=200, seeds=200)
    found = Recall([early, late, missed])
    assert found.survivors == [missed]
    result = found.as_json()
    assert (result["planted"], result["caught"], result["right"], result["historical"]) == (3, 2, 1, 1)
    assert (result["median_seeds"], result["most_seeds"]) == (5, 200)
    assert [each["name"] for each in result["bugs"]] == ["a", "b", "c"]
    assert Recall([]).as_json()["median_seeds"] == 0


def test_by_names() -> None:
    (found,) = recall(["connection-used-before-connected"], seeds=3, sample=1)
    assert found.right
    assert found.rules == {"CHECK-01": 1}


# --- the command ----------------------------------------------------------------------------------------


def test_the_command_prints_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    bugs = ["--bug", "flow-of-zero", "--bug", "connection-used-before-connected"]
    assert main(["simulate", "recall", "--sample", "1", *bugs]) == 0
    head, first, second, total = capsys.readouterr().out.splitlines()
    assert head.split() == ["bug", "origin", "first", "noticed", "by"]
    assert first.split() == ["connection-used-before-connected", "own", "1", "1/1", "CHECK-01×1"]
    assert second.split()[:2] == ["flow-of-zero", "BUG-032"]
    assert total.startswith("2 planted, 2 caught, 2 of them by an invariant that is right")


def test_the_command_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", "recall", "--bug", "BUG-032", "--seeds", "60", "--sample", "1", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert (result["planted"], result["caught"]) == (1, 1)
    (bug,) = result["bugs"]
    assert (bug["name"], bug["origin"], bug["rules"]) == ("flow-of-zero", "BUG-032", {"FLOW-08": 1})
    assert (bug["noticed"], bug["tried"]) == (1, bug["seeds"])


def test_bugs_that_there_is_no_time_for_are_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    bugs = ["--bug", "flow-of-zero", "--bug", "connection-used-before-connected"]
    for limit, planted in (("0.000001", 0), ("1000", 2)):
        assert main(["simulate", "recall", "--sample", "1", *bugs, "--seconds", limit, "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["planted"] == planted


def test_an_invariant_that_is_not_expected_is_marked(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    plant(monkeypatch, "upset", upsets_the_machine, ("INV-C6",))
    assert main(["simulate", "recall", "--bug", "upset", "--sample", "1"]) == 0
    text = capsys.readouterr().out
    assert "exception?×1" in text
    assert "1 caught, 0 of them by an invariant that is right" in text


def test_a_survivor_is_told_and_costs_the_exit_code(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    plant(monkeypatch, "harmless", harmless)
    assert (
        main(["simulate", "recall", "--bug", "harmless", "--seeds", "1", "--sample", "1", "--seed", "3"]) == 5
    )
    text = capsys.readouterr().out
    assert "0/1" in text
    assert "not caught: harmless: harmless." in text


def test_a_bug_that_fits_no_more_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    plant(monkeypatch, "broken", broken)
    assert main(["simulate", "recall", "--bug", "broken"]) == 5
    assert "AttributeError: the machine has changed" in capsys.readouterr().out


def test_no_such_bug(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", "recall", "--bug", "nothing-like-it"]) == 2
    assert "no bug is called 'nothing-like-it'" in capsys.readouterr().err


def test_the_list(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", "recall", "--list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(BANK)
    assert any(line.startswith("close-unsubscribes") and "BUG-004" in line for line in lines)


@pytest.mark.slow
def test_processes_do_not_change_the_result(capsys: pytest.CaptureFixture[str]) -> None:
    found = found_by_one_or_two(capsys, "recall", "--bug", "BUG-032", "--bug", "BUG-004", "--sample=2")
    assert found["planted"] > 1
