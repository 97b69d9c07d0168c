"""Our broker answers all conversations as a real Pulsar has, but for the table in `docs/differences.md`."""

from functools import cache

import pytest

from tests.differential import recorded
from tests.differential.comparison import Comparison, judge, table
from tests.differential.steps import Administer, Frame


@cache
def comparison(name: str) -> Comparison:
    conversation = recorded.conversations()[name]
    return judge(conversation, recorded.answers()[name], recorded.of_machine(conversation))


def test_each_conversation_has_recorded_answers() -> None:
    assert recorded.answers().keys() == recorded.conversations().keys()


@pytest.mark.breaks(
    "BROKER-42",
    "CHECK-84",
    "INV-C5",
    why="clients send requests in wrong order",
)
@pytest.mark.parametrize("name", recorded.conversations())
def test_our_broker_answers_as_a_real_pulsar(name: str) -> None:
    assert not comparison(name).mistakes


@pytest.mark.slow
def test_every_row_of_the_table_is_needed() -> None:
    used = set().union(*(comparison(name).used for name in recorded.conversations()))
    assert used == {row.name for row in table()}


def test_an_answer_that_is_changed_is_found() -> None:
    """The comparison sees a field, a missing answer and one too many."""
    name = "java-consume-individual"
    conversation, answers = recorded.conversations()[name], recorded.answers()[name]
    ours = recorded.of_machine(conversation)
    place = next(index for index, lines in enumerate(ours) if any(" MESSAGE " in line for line in lines))
    [line] = [line for line in ours[place] if " MESSAGE " in line]
    for changed in (line.replace("at=m", "at=m9"), f"{line} redelivery_count=1"):
        [mistake] = judge(conversation, answers, _with(ours, place, line, [changed])).mistakes
        assert (mistake.step, mistake.answer) == (place, "MESSAGE")
    [missing] = judge(conversation, answers, _with(ours, place, line, [])).mistakes
    [extra] = judge(conversation, answers, _with(ours, place, line, [line, line])).mistakes
    assert (missing.what, extra.what) == ("missing", "extra")


def _with(answers: list[list[str]], place: int, line: str, instead: list[str]) -> list[list[str]]:
    """Return the answers with other lines in place of one."""
    rest = [each for each in answers[place] if each != line]
    return [*answers[:place], [*rest, *instead], *answers[place + 1 :]]


def test_the_generated_conversations_use_most_commands() -> None:
    """The generator makes each command of a client that these conversations are about."""
    steps = [step for each in recorded.conversations().values() for step in each.steps]
    numbers = {step.number for step in steps if isinstance(step, Frame)}
    verbs = {step.verb for step in steps if isinstance(step, Administer)}
    assert len(numbers) >= 25
    assert verbs >= {"unload", "terminate", "delete_topic", "create_topic", "create_partitioned_topic"}
