"""The conversations that break rules, by module, and the check that each breaks its own rule alone."""

from pathlib import Path
from types import ModuleType

from pulsar_sansio.conformance import RULES, Session
from tests.conformance.cases import (
    consumers,
    delivery,
    handshake,
    payloads,
    producers,
    requests,
    schemas,
    transactions,
)
from tests.conformance.cases.case import CASES, Case
from tests.conformance.recordings.recorded import judge
from tests.conformance.script import Script

MODULES = (handshake, requests, schemas, producers, payloads, consumers, delivery, transactions)


def files_of_cases() -> set[str]:
    """Return the names of the modules here that have cases."""
    files = Path(__file__).parent.glob("*.py")
    return {file.stem for file in files if "\n@breaks(" in file.read_text()}


def cases_of(module: ModuleType) -> list[Case]:
    """Return the cases that break rules of `module`."""
    return [case for case in CASES if RULES[case.rule_id].check.__module__ == module.__name__]


def name_of(case: Case) -> str:
    return f"{case.rule_id}-{case.name}"


def check_broken(case: Case) -> None:
    """All but the last frame is right; the last one breaks the rule of the case and no other."""
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
