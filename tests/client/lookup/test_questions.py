"""`LookupQuestion`: one lookup that queries share has one outcome, and makes room for its successor."""

import pytest

from pulsar_sansio.client.lookup.questions import LookupQuestion, Query, Questions
from pulsar_sansio.core.deadlines import Deadlines
from pulsar_sansio.model.errors import PulsarError, TimedOut
from pulsar_sansio.model.topic_name import TopicName

TOPIC = TopicName.parse("demo")


class Asked:
    """One question in flight, and what its queries heard."""

    def __init__(self, *names: str) -> None:
        self.heard: list[tuple[str, object]] = []
        self.among: Questions = {}
        self.deadlines = Deadlines()
        self.question = LookupQuestion(self.among, TOPIC, None)
        self.among[TOPIC, None] = self.question
        self.question.deadline = self.deadlines.slot(lambda: None)
        self.question.deadline.set(5)
        self.queries = {name: self.join(name) for name in names}

    def join(self, name: str) -> Query:
        def done(*result: object) -> None:
            self.heard.append((name, result))

        def failed(error: PulsarError) -> None:
            self.heard.append((name, error))

        query = Query(done, failed)
        self.question.queries.append(query)
        return query


def test_an_answer_reaches_every_query_that_is_not_cancelled() -> None:
    asked = Asked("first", "second", "third")
    asked.queries["second"].cancel()
    asked.question.answer("logical", "physical")
    assert asked.heard == [("first", ("logical", "physical")), ("third", ("logical", "physical"))]


def test_a_failure_reaches_every_query_that_is_not_cancelled() -> None:
    asked = Asked("first", "second", "third")
    asked.queries["first"].cancel()
    error = TimedOut("late")
    asked.question.fail(error)
    assert asked.heard == [("second", error), ("third", error)]


def test_the_first_outcome_is_the_only_one() -> None:
    """A broker may answer after the timeout, and a connection may end after the answer."""
    error = TimedOut("late")
    asked = Asked("first")
    asked.question.answer(3)
    asked.question.answer(4)
    asked.question.fail(error)
    assert asked.heard == [("first", (3,))]
    asked = Asked("first")
    asked.question.fail(error)
    asked.question.fail(TimedOut("later"))
    asked.question.answer(3)
    assert asked.heard == [("first", error)]


@pytest.mark.parametrize("fails", [False, True])
def test_a_question_that_is_over_is_neither_joined_nor_timed(fails: bool) -> None:
    """A query that asks again from its callback begins a new lookup."""
    asked = Asked()
    joined: list[bool] = []

    def look(_: object) -> None:
        joined.append((TOPIC, None) in asked.among)

    asked.question.queries.append(Query(look, look))
    if fails:
        asked.question.fail(TimedOut("late"))
    else:
        asked.question.answer(3)
    assert joined == [False]
    assert asked.deadlines.next() is None
