"""Clients' questions for definitions: when one has failed, and when it may be asked."""

import pytest

from pulsar_sim.engine.clock import SECOND, Clock
from pulsar_sim.engine.failures import ViolationError
from pulsar_sim.model.schemas.questions import PAUSE, Questions

TOPIC = "persistent://public/default/t"
VERSION = bytes(8)


class Client:
    """A client with a consumer of one partition, and five seconds for each question."""

    def __init__(self) -> None:
        self.clock = Clock(0)
        self.questions = Questions(5 * SECOND, self.clock)
        self.questions.subscribes("consumer", "client", f"{TOPIC}-partition-1", True)
        self.consumer_is_open = True
        self._next = 0

    def ask(self, wire: int = 1) -> int:
        self._next += 1
        self.questions.asked(wire, self._next, "client", TOPIC, VERSION)
        return self._next

    def answer(self, question: int, failed: bool = False) -> None:
        self.questions.answered(1, question, failed, lambda _: [lambda: self.consumer_is_open])

    def wait(self, seconds: float) -> None:
        self.clock.run_until(self.clock.now + round(seconds * SECOND), 1000)

    def failed_since(self, at: int) -> bool:
        return self.questions.failed_since("consumer", f"{TOPIC}-partition-1", VERSION, at)

    @property
    def settled(self) -> bool:
        return not self.questions.is_unsettled("consumer", f"{TOPIC}-partition-1", VERSION)


def test_a_refusal_is_a_failure_for_a_second() -> None:
    """INV-S3: messages that arrive later wait for another question."""
    client = Client()
    client.wait(1)
    question = client.ask()
    client.wait(1)
    assert not client.settled
    client.answer(question, failed=True)
    assert client.failed_since(2 * SECOND + PAUSE)
    assert not client.failed_since(2 * SECOND + PAUSE + 1)
    assert client.settled
    client.ask()


def test_a_question_without_an_answer_fails_in_time() -> None:
    """INV-S3"""
    client = Client()
    client.ask()
    client.wait(4.9)
    assert not client.failed_since(0)
    client.wait(0.1)
    assert client.failed_since(5 * SECOND)
    client.ask()


def test_a_late_answer_does_not_undo_the_failure() -> None:
    client = Client()
    question = client.ask()
    client.wait(6)
    client.answer(question)
    assert client.failed_since(5 * SECOND)


@pytest.mark.parametrize(("seconds", "failed"), [(1, False), (5, True)])
def test_a_lost_connection_alone_fails_no_question(seconds: int, failed: bool) -> None:
    """INV-S3"""
    client = Client()
    client.ask()
    client.wait(seconds)
    client.questions.lost(1)
    client.wait(10)
    assert client.failed_since(0) is failed
    client.ask(wire=2)


def test_a_question_is_asked_once_at_a_time() -> None:
    """INV-S4"""
    client = Client()
    client.ask()
    with pytest.raises(ViolationError, match="INV-S4"):
        client.ask(wire=2)


def test_a_definition_is_kept_while_a_consumer_is_open() -> None:
    """INV-S4"""
    client = Client()
    client.answer(client.ask())
    with pytest.raises(ViolationError, match="and has it"):
        client.ask()
    client.consumer_is_open = False
    client.ask()


def test_another_process_asks_for_itself() -> None:
    client = Client()
    client.ask()
    client.questions.asked(7, 1, "another", TOPIC, VERSION)


def test_an_old_broker_answers_nothing() -> None:
    """INV-S3"""
    client = Client()
    client.questions.subscribes("old", "client", TOPIC, False)
    assert client.questions.failed_since("old", TOPIC, VERSION, 10 * SECOND)
    assert not client.questions.is_unsettled("old", TOPIC, VERSION)
    assert client.questions.has_failed("old", TOPIC)
    assert not client.questions.has_failed("consumer", f"{TOPIC}-partition-1")


def test_a_message_waits_from_its_first_arrival_on() -> None:
    client = Client()
    client.wait(1)
    client.questions.arrived("consumer", TOPIC, (1, 0))
    client.wait(1)
    client.questions.arrived("consumer", TOPIC, (1, 0))
    assert client.questions.taken("consumer", TOPIC, (1, 0)) == SECOND
