"""`GatheredRequests`: one request to several parts has one outcome."""

from collections.abc import Mapping
from typing import Any

import pytest

from pulsar_sansio.client.joint.gathered_requests import GatheredRequests
from pulsar_sansio.client.outputs import RequestDone, RequestFailed
from pulsar_sansio.model.errors import PulsarError, TimedOut


def no_question() -> None:
    """Ask parts that answer later."""


def as_is(results: Mapping[str, Any]) -> dict[str, Any]:
    return dict(results)


class Gathered:
    """Requests whose outcomes are kept."""

    def __init__(self) -> None:
        self.requests = GatheredRequests()
        self.over: list[RequestDone | RequestFailed] = []
        self.asked_again: list[str] = []

    def ask(self, *names: str, request: int = 1, **options: Any) -> None:
        options = {"question": no_question, "together": as_is, **options}
        self.requests.ask(request, names, on_over=self.over.append, **options)

    def done(self, name: str, result: Any = None, request: int = 1) -> None:
        self.requests.answered(name, RequestDone(request, result))


def test_it_is_over_when_all_parts_have_answered() -> None:
    gathered = Gathered()
    gathered.ask("a", "b")
    gathered.done("b", 2)
    assert gathered.over == []
    gathered.done("a", 1)
    assert gathered.over == [RequestDone(1, {"a": 1, "b": 2})]


def test_the_first_error_is_the_outcome_once_all_have_answered() -> None:
    gathered = Gathered()
    first, second = TimedOut("first"), TimedOut("second")
    gathered.ask("a", "b", "c")
    gathered.requests.answered("b", RequestFailed(1, first))
    gathered.requests.answered("a", RequestFailed(1, second))
    assert gathered.over == []
    gathered.done("c")
    assert gathered.over == [RequestFailed(1, first)]


def test_an_error_from_before_the_first_answer_wins() -> None:
    gathered = Gathered()
    before: PulsarError = TimedOut("before")
    gathered.ask("a", error=before)
    gathered.requests.answered("a", RequestFailed(1, TimedOut("later")))
    assert gathered.over == [RequestFailed(1, before)]


def test_parts_may_answer_while_they_are_asked() -> None:
    gathered = Gathered()

    def question() -> None:
        gathered.done("a", 1)
        gathered.done("b", 2)

    gathered.ask("a", "b", question=question)
    assert gathered.over == [RequestDone(1, {"a": 1, "b": 2})]


def test_without_parts_it_is_over_at_once() -> None:
    gathered = Gathered()
    gathered.ask()
    assert gathered.over == [RequestDone(1, {})]


def test_a_question_that_raises_is_no_request() -> None:
    gathered = Gathered()

    def question() -> None:
        gathered.done("a", 1)
        raise ValueError

    with pytest.raises(ValueError):
        gathered.ask("a", "b", question=question)
    gathered.done("b", 2)
    assert gathered.over == []


def test_second_answers_and_answers_of_others_are_ignored() -> None:
    gathered = Gathered()
    gathered.ask("a", "b")
    gathered.done("a", 1)
    gathered.done("a", 3)
    gathered.done("c", 4)
    gathered.done("b", 5, request=2)
    assert gathered.over == []
    gathered.done("b", 2)
    gathered.done("b", 6)
    assert gathered.over == [RequestDone(1, {"a": 1, "b": 2})]


def test_a_detached_part_is_not_waited_for() -> None:
    gathered = Gathered()
    gathered.ask("a", "b")
    gathered.ask("a", request=2)
    gathered.requests.detach("a")
    assert gathered.over == [RequestDone(2, {})]
    gathered.done("b", 2)
    assert gathered.over[1:] == [RequestDone(1, {"b": 2})]


def test_a_moved_part_that_has_answered_is_asked_again() -> None:
    gathered = Gathered()
    gathered.ask("a", "b", ask_again=gathered.asked_again.append)
    gathered.requests.moved("a")
    assert gathered.asked_again == [], "it has not answered yet"
    gathered.done("a", 1)
    gathered.requests.moved("a")
    assert gathered.asked_again == ["a"]
    gathered.done("b", 2)
    assert gathered.over == []
    gathered.done("a", 3)
    assert gathered.over == [RequestDone(1, {"a": 3, "b": 2})]


def test_an_answer_that_is_not_about_a_position_holds_after_a_move() -> None:
    gathered = Gathered()
    gathered.ask("a", "b")
    gathered.done("a", 1)
    gathered.requests.moved("a")
    gathered.done("b", 2)
    assert gathered.over == [RequestDone(1, {"a": 1, "b": 2})]


def test_a_discarded_request_has_no_outcome() -> None:
    gathered = Gathered()
    gathered.ask("a")
    assert gathered.requests.discard(1)
    assert not gathered.requests.discard(1)
    gathered.done("a")
    assert gathered.over == []
