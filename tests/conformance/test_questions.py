"""The questions of a connection: asked, answered, or cancelled."""

from types import SimpleNamespace
from typing import Any

import pytest

from pulsar_sansio.conformance import commands as c
from pulsar_sansio.conformance.memory import Memory
from pulsar_sansio.conformance.questions import answered, ask, cancel
from pulsar_sansio.conformance.state.state import State


def command(request_id: int) -> Any:
    return SimpleNamespace(request_id=request_id)


@pytest.fixture
def state() -> State:
    made = State(Memory())
    made.frame = 5
    return made


@pytest.mark.parametrize("kind", [c.LOOKUP, c.SUBSCRIBE])
def test_an_answered_question_is_outstanding_no_longer(state: State, kind: int) -> None:
    """Lookups count their ids apart from other requests."""
    request = ask(state, kind, command(7))
    assert state.requests_of(kind) == {7: request}
    state.request, state.frame = request, 9
    assert answered(state, command(7)) is request
    assert state.requests_of(kind) == {}
    assert state.answered == {(kind == c.LOOKUP, 7): kind}
    assert state.read_by_broker == 5, "the broker has read the question"


def test_an_answer_without_a_question_is_none(state: State) -> None:
    state.request = None
    assert answered(state, command(7)) is None
    assert state.answered == {}


def test_an_id_that_is_asked_again_is_not_answered_yet(state: State) -> None:
    state.request = ask(state, c.SUBSCRIBE, command(7))
    answered(state, command(7))
    ask(state, c.SUBSCRIBE, command(7))
    assert state.answered == {}


def test_a_cancelled_question_may_be_answered_or_not(state: State) -> None:
    ask(state, c.SUBSCRIBE, command(7))
    cancel(state, 4)
    assert list(state.general) == [7]
    cancel(state, 5)
    assert (list(state.general), list(state.cancelled)) == ([], [(False, 7)])
