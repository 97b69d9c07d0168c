"""Every rule the checker knows has a conversation that breaks it; `rules` tests each conversation."""

import pytest

from pulsar_sansio.conformance import RULES, Session, Side
from tests.conformance.cases.breaking import MODULES, files_of_cases
from tests.conformance.cases.case import CASES
from tests.conformance.recordings.recorded import judge
from tests.conformance.script import Script


def test_every_module_of_cases_is_used() -> None:
    assert {module.__name__.rpartition(".")[2] for module in MODULES} == files_of_cases()


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
