"""A conversation's own work: cutting, order, blame, selection, memory; and that no bytes can upset it."""

from random import Random

import pytest

from pulsar_sansio.conformance import RULES, Conversation, Session, Side, check
from pulsar_sansio.conformance import commands as c
from pulsar_sansio.conformance.memory import BoundedDict
from tests.conformance.recordings.recorded import NAMES, frames
from tests.conformance.script import Script, stored


def spoken(script: Script) -> list[tuple[Side, bytes]]:
    return [(side, data) for _, side, data in script.frames]


def test_check_judges_one_conversation_from_beginning_to_end() -> None:
    script = Script()
    script.connect()
    script.consumer()
    script.flow(0)
    script.flow(0)
    found = check(spoken(script))
    assert [str(violation) for violation in found] == [
        "FLOW-08 broken by the client (frame 5): FLOW with 0 permits",
        "FLOW-08 broken by the client (frame 6): FLOW with 0 permits",
    ]


def test_violations_come_with_the_piece_that_shows_them() -> None:
    script = Script()
    script.connect()
    script.consumer()
    script.flow(0)
    conversation = Conversation()
    *before, (side, last) = spoken(script)
    for piece in before:
        assert conversation.feed(*piece) == []
    assert conversation.feed(side, last[:-1]) == []
    assert [violation.rule_id for violation in conversation.feed(side, last[-1:])] == ["FLOW-08"]


def test_a_violation_names_its_connection() -> None:
    script = Script()
    script.connect()
    session = Session()
    session.feed(7, *spoken(script)[0])
    (violation,) = session.feed(7, *spoken(script)[0])
    assert (violation.rule_id, violation.connection) == ("CHECK-03", 7)
    assert str(violation) == "CHECK-03 broken by the client (connection 7, frame 1): a second CONNECT"


def test_the_rest_of_an_unreadable_stream_is_not_looked_at() -> None:
    conversation = Conversation()
    assert [each.rule_id for each in conversation.feed(Side.CLIENT, b"\xff" * 8)] == ["GAP-06"]
    assert conversation.feed(Side.CLIENT, b"\xff" * 100) == []
    assert [each.rule_id for each in conversation.feed(Side.BROKER, b"\xff" * 8)] == ["GAP-06"]


def test_some_rules_can_be_chosen() -> None:
    script = Script()
    script.flow(0)
    pieces = spoken(script)
    assert {violation.rule_id for violation in check(pieces)} == {"CONN-01", "FLOW-08", "CHECK-57"}
    assert [violation.rule_id for violation in check(pieces, ["FLOW-08"])] == ["FLOW-08"]
    assert check(pieces, []) == []


def test_a_rule_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match="no-such-rule"):
        check([], ["FLOW-08", "no-such-rule"])


def test_every_rule_says_its_fact_in_one_sentence() -> None:
    for rule in RULES.values():
        assert rule.fact.endswith(".") or ":" in rule.fact, rule.id
        assert len(rule.fact) < 110


def test_no_side_answers_for_what_the_other_side_made_unreadable() -> None:
    """The checker cannot know how many permits a spoilt entry has cost."""
    script = Script()
    script.connect()
    script.consumer(permits=4)
    script.message(0, stored(0)[:-1] + b"y", ack_set=0b110)
    script.flow(2)
    assert [(each.rule_id, each.side) for each in check(spoken(script))] == [("GAP-02", Side.BROKER)]


def test_what_cannot_be_read_is_discarded_while_closing_too() -> None:
    script = Script()
    script.connect()
    script.consumer()
    script.ask(c.CLOSE_CONSUMER, consumer_id=0)
    script.message(0, stored(0)[:-1] + b"y")
    script.ack(0, validation_error=2)
    assert [(each.rule_id, each.side) for each in check(spoken(script))] == [("GAP-02", Side.BROKER)]


def test_a_broker_confirms_what_is_open_already() -> None:
    """The client is wrong to ask again; the broker's answer and its receipts are in order."""
    script = Script()
    script.connect()
    script.producer()
    script.consumer()
    script.send(0)
    again = script.open_producer(producer_name="p", epoch=1, producer_access_mode=1)
    script.receipt(0)
    script.producer_success(again)
    script.success(script.subscribe())
    script.message(0)
    found = [(each.rule_id, each.side) for each in check(spoken(script))]
    assert found == [("CHECK-23", Side.CLIENT), ("CHECK-55", Side.CLIENT)]


# --- memory ----------------------------------------------------------------------------------------


def test_nothing_is_kept_of_what_is_answered_and_acknowledged() -> None:
    script = Script()
    script.connect()
    script.producer()
    script.consumer(permits=1000)
    for number in range(300):
        script.stored_message(number, number)
        script.message(number)
        script.ack(number)
    conversation = Conversation()
    for piece in spoken(script):
        assert conversation.feed(*piece) == []
    state = conversation.state
    assert not state.general
    assert not state.lookups
    assert not state.producers[0].pending
    assert not state.consumers[0].delivered
    closing = Script()
    closing.close_producer()
    closing.close_consumer()
    for piece in spoken(closing):
        assert conversation.feed(*piece) == []
    assert not state.producers
    assert not state.consumers
    assert not state.memory.producers
    assert not state.memory.consumers


def test_a_bounded_dictionary_forgets_the_oldest_and_says_so() -> None:
    numbers: BoundedDict[int, str] = BoundedDict(2)
    numbers[1] = "a"
    numbers[2] = "b"
    numbers[1] = "c"
    assert not numbers.overflowed
    numbers[3] = "d"
    assert numbers == {2: "b", 3: "d"}
    assert numbers.overflowed


def test_answers_to_forgotten_questions_are_not_missed() -> None:
    """A client asks without end: the checker is lenient about questions that it has forgotten."""
    conversation = Conversation()
    script = Script()
    script.connect()
    for piece in spoken(script):
        conversation.feed(*piece)
    conversation.state.general.limit = 3
    asking = Script()
    questions = [asking.open_producer(number) for number in range(5)]
    asking.error(questions[0])
    for piece in spoken(asking):
        assert conversation.feed(*piece) == []
    assert len(conversation.state.general) == 3


# --- any bytes -------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(20))
def test_no_disorder_upsets_it(seed: int) -> None:
    """Frames of a recording shuffled, left out, strange or damaged: violations, and nothing raised."""
    random = Random(seed)
    conversation = list(frames(random.choice(NAMES)))
    strangers = frames(random.choice(NAMES))
    match seed % 4:
        case 0:
            random.shuffle(conversation)
        case 1:
            conversation = [frame for frame in conversation if random.random() < 0.7]
        case 2:
            for frame in random.sample(strangers, 8):
                conversation.insert(random.randrange(len(conversation)), frame)
        case _:
            for index in random.sample(range(len(conversation)), 5):
                connection, side, data = conversation[index]
                at = random.randrange(4, len(data))
                damaged = data[:at] + bytes([random.randrange(256)]) + data[at + 1 :]
                conversation[index] = (connection, side, damaged)
    session = Session()
    found = [violation for frame in conversation for violation in session.feed(*frame)]
    assert found or seed % 4 == 3
    assert all(violation.rule_id in RULES for violation in found)


def test_the_answer_of_a_consumer_of_another_kind() -> None:
    """A command that names what does not exist changes nothing, in any order."""
    script = Script()
    script.connect()
    script.broker(c.SEND_ERROR, producer_id=9, sequence_id=0, error=2, message="")
    script.success(9)
    script.ack(0, consumer_id=9)
    found = check(spoken(script))
    assert [violation.rule_id for violation in found] == ["CHECK-33", "CONN-07", "CHECK-57"]
