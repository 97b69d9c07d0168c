"""`JointLife`: several parts open, fail and close as one, with one end."""

from collections.abc import Callable
from itertools import product

import pytest

from pulsar_sansio.client.joint import joint_states as states
from pulsar_sansio.client.joint.joint_life import JointLife
from pulsar_sansio.client.joint.joint_states import TRANSITIONS, JointInput, JointState
from pulsar_sansio.client.outputs import Closed, ConsumerFailed, Output
from pulsar_sansio.core.context import Context
from pulsar_sansio.core.transitions import IllegalMove
from pulsar_sansio.model.errors import ClosedError, ConsumerBusy, PulsarError, TopicTerminated

HANDLE, REQUEST = 7, 3
BUSY, TERMINATED = ConsumerBusy("busy"), TopicTerminated("terminated")


class Whole:
    """A consumer of several parts."""

    def __init__(self) -> None:
        self.context: Context[Output] = Context(0, seed=1)
        self.ends: list[PulsarError | None] = []
        self.life = JointLife(self.context, HANDLE, ConsumerFailed, lambda _, error: self.ends.append(error))


def fail(life: JointLife) -> None:
    life.fail(BUSY)


def unsubscribe(life: JointLife) -> None:
    life.became_ready()
    life.unsubscribe(REQUEST)


def close_early(life: JointLife) -> None:
    life.close()


def close_ready(life: JointLife) -> None:
    life.became_ready()
    life.close()


def end(life: JointLife) -> None:
    life.became_ready()
    life.over(None, "closed")


REACH: dict[type, Callable[[JointLife], None]] = {
    states.Opening: lambda life: None,
    states.Ready: lambda life: life.became_ready(),
    states.Failing: fail,
    states.Unsubscribing: unsubscribe,
    states.Closing: close_early,
    states.Over: end,
}

INPUTS: dict[JointInput, Callable[[JointLife], None]] = {
    JointInput.ALL_READY: lambda life: life.became_ready(),
    JointInput.PART_FAILED: fail,
    JointInput.UNSUBSCRIBE: lambda life: life.unsubscribe(REQUEST),
    JointInput.REFUSED: lambda life: life.refused(),
    JointInput.CLOSE: lambda life: life.close(),
    JointInput.ALL_GONE: lambda life: life.over(None, "closed"),
}


@pytest.mark.parametrize("state", REACH, ids=lambda state: state.__name__)
@pytest.mark.parametrize("event", INPUTS, ids=lambda event: event.name)
def test_moves_of_the_table_are_taken_and_others_refused(state: type, event: JointInput) -> None:
    whole = Whole()
    REACH[state](whole.life)
    before: JointState = whole.life.state
    assert type(before) is state
    target = TRANSITIONS.table.get((state, event))
    outputs = list(whole.context.outputs)
    if target is None:
        with pytest.raises(IllegalMove):
            INPUTS[event](whole.life)
        assert whole.life.state is before
        assert list(whole.context.outputs) == outputs
    else:
        INPUTS[event](whole.life)
        assert type(whole.life.state) is target


def test_the_table_knows_every_state_and_input() -> None:
    assert TRANSITIONS.states == set(REACH)
    assert {event for _, event in TRANSITIONS.table} == set(JointInput) == set(INPUTS)
    assert not [pair for pair in product([states.Over], JointInput) if pair in TRANSITIONS.table]


def test_a_whole_that_was_ready_is_closed() -> None:
    whole = Whole()
    close_ready(whole.life)
    whole.life.over(None, "closed")
    assert list(whole.context.outputs) == [Closed(HANDLE, None)]
    assert whole.ends == [None]


def test_a_whole_whose_parts_all_end_is_closed_with_the_cause() -> None:
    whole = Whole()
    whole.life.became_ready()
    whole.life.over(TERMINATED, "closed")
    assert list(whole.context.outputs) == [Closed(HANDLE, TERMINATED)]
    assert whole.ends == [TERMINATED]


def test_a_whole_that_was_never_ready_has_failed_with_the_error_of_the_part() -> None:
    whole = Whole()
    fail(whole.life)
    whole.life.over(None, "closed")
    assert list(whole.context.outputs) == [ConsumerFailed(HANDLE, BUSY)]
    assert whole.ends == [BUSY]


def test_an_application_that_closes_first_gets_its_text_and_no_error() -> None:
    whole = Whole()
    close_early(whole.life)
    whole.life.over(None, "the consumer was closed")
    (output,) = whole.context.outputs
    assert isinstance(output, ConsumerFailed)
    assert isinstance(output.error, ClosedError)
    assert str(output.error) == "the consumer was closed"
    assert whole.ends == [None]


@pytest.mark.parametrize("state", REACH, ids=lambda state: state.__name__)
def test_commands_are_taken_until_the_whole_fails_or_closes(state: type) -> None:
    whole = Whole()
    REACH[state](whole.life)
    if state in (states.Opening, states.Ready, states.Unsubscribing):
        whole.life.check_open("closed")
        return
    with pytest.raises(ClosedError, match="closed") as caught:
        whole.life.check_open("closed")
    assert caught.value.__cause__ is (BUSY if state is states.Failing else None)


def test_only_the_request_that_unsubscribes_is_known() -> None:
    whole = Whole()
    unsubscribe(whole.life)
    assert whole.life.is_unsubscribing(REQUEST)
    assert not whole.life.is_unsubscribing(REQUEST + 1)
    whole.life.refused()
    assert not whole.life.is_unsubscribing(REQUEST)
