"""The checker's fast paths agree with its full checks: checks that it skips would have found nothing."""

import pytest

from pulsar_sansio.conformance import Session, Side, Violation, registry
from pulsar_sansio.conformance import conversation as conversations
from pulsar_sansio.conformance.registry import RULES
from pulsar_sansio.model.errors import FrameError
from pulsar_sansio.wire import FrameDecoder, max_frame_size
from tests.conformance.cases import consumers, delivery, handshake, payloads, producers, requests
from tests.conformance.cases.case import CASES, Case
from tests.conformance.recordings.recorded import judge
from tests.conformance.script import Script

_MODULES = (handshake, requests, producers, payloads, consumers, delivery)


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.rule_id}-{case.name}")
def test_rules_asked_of_plain_frames_too_find_nothing_more(
    case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = Script()
    case.tell(script)
    found = judge(script.frames, Session())
    of_all_traits = registry.Selection()
    rules = of_all_traits.rules
    monkeypatch.setattr(of_all_traits, "rules", lambda side, kind, traits: rules(side, kind))
    monkeypatch.setattr(conversations, "_ALL", of_all_traits)
    assert judge(script.frames, Session()) == found


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.rule_id}-{case.name}")
def test_what_is_only_heard_shows_the_other_sides_faults(case: Case) -> None:
    script = Script()
    case.tell(script)
    judged, heard = Session(), Session()
    for connection, side, data in script.frames:
        try:
            found = FrameDecoder().decode(data, 0, max_frame_size(5 * 1024 * 1024))
        except FrameError:
            return  # no frame: nothing that could be heard
        if found is None:
            return  # only the beginning of a frame
        kind, command, _ = found
        everything = judged.frame(connection, side, kind, command)
        expected = [violation for violation in everything if violation.side is not side]
        assert list(heard.conversation(connection).received(side, kind, command)) == expected


def test_a_fault_of_the_receiver_is_heard() -> None:
    """Two SENDs of one sequence id, and a receipt that stores both: the client's fault (INV-P6)."""
    case = next(case for case in CASES if case.rule_id == "INV-P6")
    script = Script()
    case.tell(script)
    session = Session()
    heard: list[Violation] = []
    for connection, side, data in script.frames:
        found = FrameDecoder().decode(data, 0, max_frame_size(5 * 1024 * 1024))
        assert found is not None
        heard += session.conversation(connection).received(side, *found[:2])
    assert [(each.rule_id, each.side) for each in heard] == [("INV-P6", Side.CLIENT)]


def test_only_rules_that_say_so_blame_the_other_side() -> None:
    assert [rule.id for rule in RULES.values() if rule.blames] == ["INV-P6"]
