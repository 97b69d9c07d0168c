"""Every rule the checker knows has a conversation that breaks it, and nothing else."""

from pathlib import Path

import pytest

from pulsar_sansio.conformance import RULES, Session, Side
from tests.conformance import (
    cases_consumers,
    cases_delivery,
    cases_handshake,
    cases_payloads,
    cases_producers,
    cases_requests,
)
from tests.conformance.cases import CASES, Case
from tests.conformance.recorded import judge
from tests.conformance.script import Script

_MODULES = (cases_handshake, cases_requests, cases_producers, cases_payloads, cases_consumers, cases_delivery)


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.rule_id}-{case.name}")
def test_a_broken_rule_is_found(case: Case) -> None:
    script = Script()
    case.tell(script)
    *before, (connection, side, last) = script.frames
    session = Session()
    assert judge(before, session) == []
    number = session.conversations[connection].frames if connection in session.conversations else 0
    found = session.feed(connection, side, last)
    assert {violation.rule_id for violation in found} == {case.rule_id, *case.also}
    for violation in found:
        assert (violation.side, violation.frame_number) == (case.blamed or (side, number))
        assert violation.connection == connection
        assert violation.text


def test_every_module_of_cases_is_used() -> None:
    stems = {module.__name__.rpartition(".")[2] for module in _MODULES}
    assert stems == {file.stem for file in Path(__file__).parent.glob("cases_*.py")}


def test_every_rule_has_a_conversation_that_breaks_it() -> None:
    assert RULES.keys() - {case.rule_id for case in CASES} == set()


def test_both_sides_are_judged() -> None:
    blamed = set()
    for case in CASES:
        script = Script()
        case.tell(script)
        blamed.add(script.frames[-1][1])
    assert blamed == set(Side)


@pytest.mark.parametrize("rule_id", sorted({case.rule_id for case in CASES}))
def test_a_rule_left_out_says_nothing(rule_id: str) -> None:
    case = next(case for case in CASES if case.rule_id == rule_id)
    script = Script()
    case.tell(script)
    found = judge(script.frames, Session(RULES.keys() - {rule_id}))
    assert {violation.rule_id for violation in found} == set(case.also)
